"""`hipport convert` and `check` end to end, on small trees."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from hipport.cli.main import guarded
from hipport.project.discover import OUTPUT_MARK
from tests.project.tree import CUDA, HIP, commit, git, put, snapshot

UNMAPPED = b"void g() { cudaDeviceFlushGPUDirectRDMAWrites(0, 0); }"


def run(capfd: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command line."""
    status = guarded([os.fspath(a) if isinstance(a, Path) else str(a) for a in arguments])
    out, err = capfd.readouterr()
    return status, out, err


def refused(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line with which a command line is refused."""
    status, out, err = run(capfd, *arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("hipport: ")
    assert err.count("\n") == 1
    return err


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return commit(tmp_path / "r", {"a.cu": CUDA, "src/b.cpp": CUDA, "plain.cpp": b"int x;\r\n"})


def test_in_place(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = snapshot(repo)
    (repo / "a.cu").chmod(0o600)
    status, out, err = run(capfd, "convert", repo)
    assert (status, err) == (0, "")
    assert snapshot(repo) == {**before, "a.cu": HIP, "src/b.cpp": HIP}
    assert "2 converted" in out
    assert f"git -C {repo} diff" in out
    assert stat.S_IMODE((repo / "a.cu").stat().st_mode) == 0o600
    assert git(repo, "status", "--porcelain").splitlines() == [" M a.cu", " M src/b.cpp"]


def test_twice_changes_nothing(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run(capfd, "convert", repo)
    after = snapshot(repo)
    assert run(capfd, "convert", repo, "--force")[0] == 0
    assert snapshot(repo) == after


def test_refuses_a_dirty_tree(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(repo, {"plain.cpp": b"int y;\n"})
    before = snapshot(repo)
    line = refused(capfd, "convert", repo)
    for word in ("uncommitted", "plain.cpp", "--out", "--diff", "--force"):
        assert word in line
    assert snapshot(repo) == before
    assert run(capfd, "convert", repo, "--force")[0] == 0
    assert (repo / "a.cu").read_bytes() == HIP


def test_refuses_outside_git(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, {"a.cu": CUDA})
    line = refused(capfd, "convert", tmp_path)
    assert "not inside a git work tree" in line
    assert (tmp_path / "a.cu").read_bytes() == CUDA


def test_refuses_to_lose_what_git_does_not_hold(
    repo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    put(repo, {"notes.md": b"untracked, but not written either"})
    assert run(capfd, "check", repo)[0] == 0
    put(repo, {"new.cu": CUDA})
    line = refused(capfd, "convert", repo)
    assert "new.cu" in line
    assert (repo / "a.cu").read_bytes() == CUDA
    (repo / "new.cu").unlink()
    git(repo, "update-index", "--assume-unchanged", "a.cu")
    put(repo, {"a.cu": CUDA + b"// precious\n"})
    assert "a.cu" in refused(capfd, "convert", repo)
    assert (repo / "a.cu").read_bytes() == CUDA + b"// precious\n"


def test_check_writes_nothing(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = snapshot(repo)
    status, out, _ = run(capfd, "check", repo)
    assert status == 0
    assert "2 to convert" in out
    assert snapshot(repo) == before


def test_out(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = put(tmp_path / "t", {"a.cu": CUDA, "sub/b.bin": b"\0\1", "run.sh": b"#!/bin/sh\n"})
    (root / "run.sh").chmod(0o755)
    (root / "alias.cu").symlink_to("a.cu")
    (root / "sub" / "absolute.cu").symlink_to(root / "a.cu")
    (root / "data.cu").symlink_to("sub/x.dat")
    put(root, {"sub/x.dat": CUDA})
    before = snapshot(root)
    out = tmp_path / "o"
    status, text, _ = run(capfd, "convert", root, "--out", out)
    assert status == 0
    assert str(out) in text
    assert snapshot(root) == before
    made = snapshot(out)
    made.pop(OUTPUT_MARK)
    assert made == {**before, "a.cu": HIP, "sub/x.dat": HIP}
    assert (out / "run.sh").stat().st_mode & 0o111
    assert os.readlink(out / "alias.cu") == "a.cu"
    assert os.readlink(out / "sub" / "absolute.cu") == "../a.cu"
    assert (out / "data.cu").read_bytes() == HIP


def test_out_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = put(tmp_path / "t", {"a.cu": CUDA, "old/b.cu": CUDA})
    out = tmp_path / "o"
    assert run(capfd, "convert", root, "--out", out)[0] == 0
    (root / "old" / "b.cu").unlink()
    put(out, {"mine.txt": b"kept"})
    assert run(capfd, "convert", root, "--out", out)[0] == 0
    assert set(snapshot(out)) == {OUTPUT_MARK, "a.cu", "mine.txt"}
    assert not (out / "old").exists()
    put(out, {"a.cu": b"edited by hand"})
    assert "a.cu changed since" in refused(capfd, "convert", root, "--out", out)
    assert run(capfd, "convert", root, "--out", out, "--force")[0] == 0
    assert (out / "a.cu").read_bytes() == HIP


def test_out_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = put(tmp_path / "t", {"a.cu": CUDA})
    full = put(tmp_path / "full", {"x": b""})
    (tmp_path / "sneaky").symlink_to(root / "sub")
    assert "not empty" in refused(capfd, "convert", root, "--out", full)
    assert "inside the source" in refused(capfd, "convert", root, "--out", root / "sub")
    assert "inside the source" in refused(capfd, "convert", root, "--out", root)
    assert "inside the source" in refused(capfd, "convert", root, "--out", tmp_path / "sneaky")
    assert "holds the source" in refused(capfd, "convert", root, "--out", tmp_path, "--force")
    assert "not a folder" in refused(capfd, "convert", root, "--out", full / "x")
    assert snapshot(root) == {"a.cu": CUDA}
    assert snapshot(full) == {"x": b""}


def test_diff_applies(
    repo: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    latin = CUDA.replace(b"\n", b" // gr\xf6\xdfe\r\n")
    commit(repo, {"latin.cu": latin, "with space.cu": CUDA[:-1], "caf\u00e9.cu": CUDA})
    before = snapshot(repo)
    assert guarded(["convert", str(repo), "--diff", "-q"]) == 0
    diff, talk = capfdbinary.readouterr()
    assert b"5 to convert" in talk
    assert snapshot(repo) == before
    (tmp_path / "d.patch").write_bytes(diff)
    git(repo, "apply", str(tmp_path / "d.patch"))
    patched = snapshot(repo)
    git(repo, "checkout", "-q", ".")
    assert guarded(["convert", str(repo), "-qq"]) == 0
    assert snapshot(repo) == patched
    assert patched["latin.cu"] == HIP.replace(b"\n", b" // gr\xf6\xdfe\r\n")
    assert patched["with space.cu"] == HIP[:-1]


def test_rename(repo: Path, capfd: pytest.CaptureFixture[str]) -> None:
    commit(
        repo,
        {
            "sub/impl.cu": b"// no CUDA here\nint helper();\n",
            "a.cu": CUDA + b'#include "sub/impl.cu"\n#include "kernels.cuh"\n',
            "kernels.cuh": CUDA,
            "taken.cu": CUDA,
            "taken.hip": b"",
            "CMakeLists.txt": b"add_library(x ${CMAKE_CURRENT_SOURCE_DIR}/sub/impl.cu a.cu b.cu)\n"
            b"add_custom_target(y DEPENDS other/a.cu.o xa.cuh)\n",
            "setup.py": b"files = ['sub/impl.cu'] + glob('sub/*.cu')\r\n",
        },
    )
    status, out, _ = run(capfd, "convert", repo, "--rename")
    assert status == 1
    after = snapshot(repo)
    assert after["a.hip"] == HIP + b'#include "sub/impl.hip"\n#include "kernels.cuh"\n'
    assert after["sub/impl.hip"] == b"// no CUDA here\nint helper();\n"
    assert after["taken.cu"] == HIP
    assert after["kernels.cuh"] == HIP
    assert not {"a.cu", "sub/impl.cu"} & set(after)
    assert (
        after["CMakeLists.txt"]
        == b"add_library(x ${CMAKE_CURRENT_SOURCE_DIR}/sub/impl.hip a.hip b.cu)\n"
        b"set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/sub/impl.hip a.hip b.cu "
        b"PROPERTIES LANGUAGE HIP)\n"
        b"add_custom_target(y DEPENDS other/a.cu.o xa.cuh)\n"
    )
    assert after["setup.py"] == b"files = ['sub/impl.hip'] + glob('sub/*.cu')\r\n"
    assert "taken.hip exists" in out
    assert "renamed-source-pattern" in out
    states = git(repo, "status", "--porcelain", "-M").splitlines()
    assert any(line.startswith("R") and "a.cu -> a.hip" in line for line in states)


def test_rename_as_a_diff(
    repo: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert guarded(["convert", str(repo), "--diff", "--rename", "-qq"]) == 0
    (tmp_path / "d.patch").write_bytes(capfdbinary.readouterr().out)
    git(repo, "apply", str(tmp_path / "d.patch"))
    assert (repo / "a.hip").read_bytes() == HIP
    assert not (repo / "a.cu").exists()


def test_a_linked_file_is_written_through_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = commit(tmp_path / "r", {"a.cu": CUDA, "x.dat": CUDA})
    put(tmp_path, {"far.cu": CUDA})
    (root / "alias.cu").symlink_to("a.cu")
    (root / "data.cu").symlink_to("x.dat")
    (root / "far.cu").symlink_to("../far.cu")
    commit(root)
    assert run(capfd, "convert", root)[0] == 0
    assert (root / "alias.cu").is_symlink()
    assert (root / "data.cu").is_symlink()
    assert (root / "a.cu").read_bytes() == HIP
    assert (root / "x.dat").read_bytes() == HIP
    assert (tmp_path / "far.cu").read_bytes() == CUDA


def test_a_file_that_changes_meanwhile_is_kept(
    repo: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hipport.convert import output

    real = output.in_place

    def later(discovery: object, report: object) -> object:
        put(repo, {"a.cu": b"edited\n"})
        (repo / "src" / "b.cpp").unlink()
        return real(discovery, report)  # type: ignore[arg-type]

    monkeypatch.setattr(output, "in_place", later)
    status, out, _ = run(capfd, "convert", repo)
    assert status == 3
    assert (repo / "a.cu").read_bytes() == b"edited\n"
    assert not (repo / "src" / "b.cpp").exists()
    assert out.count("changed while hipport ran") == 2


def test_unreadable_input_is_named_and_the_rest_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = put(tmp_path / "t", {"a.cu": CUDA, "bad.cu": b"\xff\xfe\x00\xd8"})
    (root / "gone.cu").symlink_to("nowhere")
    status, out, _ = run(capfd, "convert", root, "--out", tmp_path / "o")
    assert status == 3
    assert "unread bad.cu: " in out
    assert "unread gone.cu: dangling link" in out
    assert (tmp_path / "o" / "a.cu").read_bytes() == HIP
    assert (tmp_path / "o" / "bad.cu").read_bytes() == b"\xff\xfe\x00\xd8"
    assert os.readlink(tmp_path / "o" / "gone.cu") == "nowhere"


def test_generated_hip_is_left_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    banner = b"// !!! This is a file automatically generated by hipify!!!\n"
    root = commit(tmp_path / "r", {"hip/a.cu": CUDA, "x_hip.cpp": banner + CUDA})
    status, out, _ = run(capfd, "convert", root)
    assert status == 0
    assert snapshot(root) == {"hip/a.cu": HIP, "x_hip.cpp": banner + CUDA}
    assert "skipped x_hip.cpp: " in out


def test_json_and_talk_do_not_mix(
    repo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capfd, "check", repo, "--json", "-")
    data = json.loads(out)
    assert data["exit_code"] == status == 0
    assert "to convert" in err
    status, out, err = run(capfd, "check", repo, "--json", tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["summary"]["files"]["seen"] == 3
    assert err == ""
    assert "--json" in refused(capfd, "check", repo, "--json", tmp_path / "no" / "r.json")


def test_findings_decide_the_exit_status(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, {"a.cu": CUDA + UNMAPPED + b"\n"})
    status, out, _ = run(capfd, "check", tmp_path)
    assert status == 1
    assert "no-hip-equivalent" in out
    assert "a.cu:3:12" in out


def test_hard_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9\x1b[31m\n.cu"
    with open(raw, "wb") as file:
        file.write(CUDA + UNMAPPED + b" // \x1b[2J\n")
    status, out, _ = run(capfd, "check", tmp_path, "--json", tmp_path / "r.json", "--color=never")
    assert status == 1
    assert "\x1b" not in out
    assert "caf\\xe9\\x1b[31m\\n.cu:3:12" in out
    text = (tmp_path / "r.json").read_text(encoding="ascii")
    assert json.loads(text)["files"][0]["path"] == "caf\\xe9\\x1b[31m\\n.cu"


def test_an_assisted_rewrite_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    guard = b"#if __CUDA_ARCH__ >= 600\nint x;\n#endif\n"
    put(tmp_path, {"a.cu": CUDA + guard})
    status, out, _ = run(capfd, "check", tmp_path)
    assert status == 1
    assert "--assist cuda-arch-guard" in out
    for name in ("cuda-arch-guard", "HP4001", "all"):
        status, out, _ = run(capfd, "convert", tmp_path, "--diff", "--assist", name)
        assert status == 0
        assert "+#if" in out


def test_a_submodule_is_guarded_by_its_own_repository(
    repo: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inner = commit(tmp_path / "inner", {"i.cu": CUDA})
    git(repo, "submodule", "add", "-q", str(inner), "dep")
    commit(repo)
    put(repo / "dep", {"i.cu": CUDA + b"// mine\n"})
    assert "dep: the work tree has uncommitted changes" in refused(capfd, "convert", repo)
    assert (repo / "a.cu").read_bytes() == CUDA
    git(repo / "dep", "checkout", "-q", ".")
    assert run(capfd, "convert", repo, "--rename")[0] == 0
    assert (repo / "dep" / "i.hip").read_bytes() == HIP
    assert "i.cu -> i.hip" in git(repo / "dep", "status", "--porcelain", "-M")
