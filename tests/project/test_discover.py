from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hipport.errors import UsageError
from hipport.project.discover import OUTPUT_MARK, Discovery, discover
from hipport.project.generated import generated_hip, twins
from hipport.project.git import TreeState
from hipport.project.kinds import Kind, kind_of
from tests.project.tree import CUDA, HIP, commit, git, put


def paths(found: Discovery) -> list[str]:
    return [entry.path for entry in found.files]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.cu", Kind.CUDA),
        ("A.CU", Kind.CUDA),
        ("x/a.cuh", Kind.CUDA),
        ("a.hip", Kind.CUDA),
        ("a.cpp", Kind.SOURCE),
        ("a.c", Kind.SOURCE),
        ("a.tpp", Kind.HEADER),
        ("a.inl", Kind.HEADER),
        ("config.h.in", Kind.HEADER),
        ("kernel.cu.in", Kind.CUDA),
        ("CMakeLists.txt", Kind.CMAKE),
        ("CMakeLists.txt.in", Kind.CMAKE),
        ("Makefile", Kind.MAKE),
        ("setup.py", Kind.PYTHON),
        ("a.txt", Kind.OTHER),
        ("a.in", Kind.OTHER),
        ("cu", Kind.OTHER),
        ("a.cu.bak", Kind.OTHER),
    ],
)
def test_kinds(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


def test_outside_git(tmp_path: Path) -> None:
    put(tmp_path, {"b.cu": CUDA, "sub/a.h": CUDA, "notes.txt": b"", ".hidden/c.cu": CUDA})
    found = discover([tmp_path])
    assert paths(found) == ["b.cu", "sub/a.h"]
    assert [e.path for e in found.others] == [".hidden/c.cu", "notes.txt"]
    assert any(note.startswith(".hidden: hidden") for note in found.notes)
    assert paths(discover([tmp_path / ".hidden"])) == ["c.cu"]
    assert found.root == tmp_path.resolve()
    assert found.tree is None
    assert "not inside" in found.outside


def test_ignore_files_nest_and_tracked_files_win(tmp_path: Path) -> None:
    root = commit(tmp_path / "r", {"out/kept.cu": CUDA, "a.cu": CUDA, "sub/tracked.cu": CUDA})
    put(
        root,
        {
            ".gitignore": b"out/\n*.gen.cu\n!sub/\n",
            "sub/.gitignore": b"!keep.gen.cu\ntracked.cu\nlocal.cu\n",
            "x.gen.cu": CUDA,
            "sub/keep.gen.cu": CUDA,
            "sub/local.cu": CUDA,
            "out/dropped.cu": CUDA,
            "private.cu": CUDA,
            "new.cu": CUDA,
        },
    )
    put(root, {".git/info/exclude": b"private.cu\n"})
    found = discover([root])
    expected = ["a.cu", "new.cu", "out/kept.cu", "sub/keep.gen.cu", "sub/tracked.cu"]
    assert paths(found) == expected
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.cu").split()
    assert sorted(listed) == expected
    assert any("left out by .gitignore" in note for note in found.notes)
    everything = discover([root], respect_gitignore=False)
    assert {"x.gen.cu", "out/dropped.cu", "private.cu"} <= set(paths(everything))


def test_a_file_that_is_named_is_taken_although_ignored(tmp_path: Path) -> None:
    root = commit(tmp_path / "r", {".gitignore": b"*.cu\nkernel.txt\n"})
    put(root, {"a.cu": CUDA, "kernel.txt": CUDA})
    assert paths(discover([root])) == []
    found = discover([root / "a.cu", root / "kernel.txt"])
    assert paths(found) == ["a.cu", "kernel.txt"]
    assert all(entry.given for entry in found.files)


def test_root_is_the_top_of_the_work_tree(tmp_path: Path) -> None:
    root = commit(tmp_path / "r", {"src/a.cu": CUDA, "other/b.cu": CUDA, "lib/c.cu": CUDA})
    found = discover([root / "src", root / "lib", root / "src" / "a.cu"])
    assert found.root == root.resolve()
    assert paths(found) == ["lib/c.cu", "src/a.cu"]


def test_root_of_several_trees_is_their_parent(tmp_path: Path) -> None:
    commit(tmp_path / "r", {"a.cu": CUDA})
    commit(tmp_path / "s", {"b.cu": CUDA})
    found = discover([tmp_path / "r", tmp_path / "s"])
    assert paths(found) == ["r/a.cu", "s/b.cu"]
    assert found.tree is None
    assert "different" in found.outside


def test_include_and_exclude(tmp_path: Path) -> None:
    put(tmp_path, {"src/a.cu": CUDA, "src/b.cpp": CUDA, "lib/c.cu": CUDA})
    assert paths(discover([tmp_path], include=("*.cu",))) == ["lib/c.cu", "src/a.cu"]
    assert paths(discover([tmp_path], exclude=("lib/",))) == ["src/a.cu", "src/b.cpp"]
    both = discover([tmp_path], include=("src/",), exclude=("*.cpp",))
    assert paths(both) == ["src/a.cu"]
    assert {e.path for e in both.others} == {"src/b.cpp", "lib/c.cu"}
    named = discover([tmp_path / "lib" / "c.cu"], exclude=("c.cu",))
    assert paths(named) == []
    assert [item.path for item in named.skipped] == ["c.cu"]


def test_a_bad_glob_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--exclude"):
        discover([tmp_path], exclude=("!",))


def test_no_such_path(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nope: no such file or folder"):
        discover([tmp_path / "nope"])


def test_folders_that_hold_no_sources(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "a.cu": CUDA,
            "b/CMakeCache.txt": b"",
            "b/x.cu": CUDA,
            "v/pyvenv.cfg": b"",
            "v/x.cu": CUDA,
            "node_modules/x.cu": CUDA,
            "earlier/" + OUTPUT_MARK: b"{}",
            "earlier/x.cu": CUDA,
            "build/x.cu": CUDA,
        },
    )
    found = discover([tmp_path])
    assert paths(found) == ["a.cu", "build/x.cu"]
    notes = "\n".join(found.notes)
    assert all(f"{name}:" in notes for name in ("b", "v", "node_modules", "earlier"))
    assert paths(discover([tmp_path / "b"])) == ["x.cu"]


def test_submodules_follow_their_own_repository(tmp_path: Path) -> None:
    inner = commit(tmp_path / "inner", {"i.cu": CUDA, ".gitignore": b"made.cu\n"})
    root = commit(tmp_path / "r", {"a.cu": CUDA, ".gitignore": b"i.cu\nscratch/\n"})
    git(root, "submodule", "add", "-q", str(inner), "dep")
    commit(root)
    commit(root / "loose", {"l.cu": CUDA})
    commit(root / "scratch", {"s.cu": CUDA})
    put(root, {"dep/made.cu": CUDA, "broken/.git": b"gitdir: ../nowhere\n", "broken/b.cu": CUDA})
    found = discover([root])
    assert paths(found) == ["a.cu", "broken/b.cu", "dep/i.cu", "loose/l.cu"]
    assert set(found.inner) == {"dep", "loose"}
    assert any(note.startswith("dep: a git repository of its own") for note in found.notes)
    tree, path = found.tree_of("dep/i.cu")
    assert tree is found.inner["dep"]
    assert path == "i.cu"
    assert tree.protects("i.cu")
    assert found.tree_of("a.cu") == (found.tree, "a.cu")
    named = discover([root / "dep"])
    assert paths(named) == ["i.cu"]
    assert named.root == (root / "dep").resolve()
    assert named.tree is not None
    assert named.tree.state is TreeState.CLEAN


def test_links(tmp_path: Path) -> None:
    put(tmp_path, {"out/far.cu": CUDA, "t/a.cu": CUDA, "t/sub/x.dat": CUDA, "t/plain.txt": b""})
    root = tmp_path / "t"
    (root / "alias.cu").symlink_to("a.cu")
    (root / "far.cu").symlink_to("../out/far.cu")
    (root / "data1.cu").symlink_to("sub/x.dat")
    (root / "data2.cu").symlink_to("sub/x.dat")
    (root / "gone.cu").symlink_to("nowhere")
    (root / "gone.txt").symlink_to("nowhere")
    (root / "me.cu").symlink_to("me.cu")
    (root / "again").symlink_to(".")
    (root / "sub" / "up").symlink_to("..")
    found = discover([root])
    assert paths(found) == ["a.cu", "data1.cu"]
    assert found.by_path["data1.cu"].real == (root / "sub" / "x.dat").resolve()
    assert {i.path: i.note for i in found.unreadable} == {
        "gone.cu": "dangling link",
        "me.cu": "link loop",
    }
    assert [i.path for i in found.skipped] == ["far.cu"]
    assert sum("not followed" in note for note in found.notes) == 2


def test_special_files_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.cu")
    found = discover([tmp_path])
    assert paths(found) == []
    assert [(i.path, i.note) for i in found.skipped] == [("pipe.cu", "not a regular file")]


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system takes only UTF-8 names")
def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/caf\xe9.cu"
    with open(raw, "wb") as file:
        file.write(CUDA)
    found = discover([tmp_path])
    assert os.fsencode(found.files[0].path) == b"caf\xe9.cu"
    assert found.files[0].real.read_bytes() == CUDA


def test_a_folder_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, {"a.cu": CUDA, "locked/b.cu": CUDA})
    scandir = os.scandir

    def refusing(path: str | Path) -> object:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = discover([tmp_path])
    assert paths(found) == ["a.cu"]
    assert [i.path for i in found.unreadable] == ["locked"]


def test_generated_hip() -> None:
    banner = b"// !!! This is a file automatically generated by hipify!!!\n"
    assert generated_hip(banner + CUDA, has_twin=False)
    assert generated_hip(HIP, has_twin=True)
    assert not generated_hip(HIP, has_twin=False)
    assert not generated_hip(CUDA, has_twin=True)
    assert not generated_hip(HIP + CUDA, has_twin=True)


def test_twins() -> None:
    listed = [
        "a.cpp",
        "a_hip.cpp",
        "b_hip.h",
        "src/cuda/k.cu",
        "src/hip/k.hip",
        "src/hip/own.cu",
        "hip/x.cu",
    ]
    assert twins(listed) == {"a_hip.cpp", "src/hip/k.hip"}
