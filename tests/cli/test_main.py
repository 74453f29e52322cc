from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from hipport import __version__
from hipport.cli import main
from hipport.cli.main import COMMANDS, guarded
from tests.project.tree import CUDA, HIP, commit, snapshot


def command(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hipport", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **more,  # type: ignore[call-overload]
    )


def test_version_imports_almost_nothing() -> None:
    probe = (
        "import sys; from hipport.cli.main import guarded; code = guarded(['--version']); "
        "heavy = {'rich', 'tree_sitter', 'yaml', 'git', 'pathspec', 'hipport.rules', "
        "'hipport.checks', 'hipport.parse'} & set(sys.modules); print(sorted(heavy)); "
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"hipport {__version__}", "[]"]


def test_help_lists_only_what_is_there(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "absent", ("hipport.cli.absent", "absent", "Not there."))
    assert guarded(["--help"]) == 0
    text = capfd.readouterr().out
    assert "convert" in text
    assert "absent" not in text
    assert guarded(["absent"]) == 2


@pytest.mark.parametrize("name", [n for n, (m, _, _) in COMMANDS.items() if main._exists(m)])
def test_every_command_has_help(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded([name, "--help"]) == 0
    assert f"hipport {name}" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["conver", "."], "did you mean 'convert'"),
        (["zzz"], "hipport --help"),
        (["check"], "PATH"),
        (["check", ".", "--jobs", "0"], "--jobs"),
        (["check", ".", "--nope"], "--nope"),
        (["check", ".", "--rocm", "new"], "not a version"),
        (["check", ".", "--rocm", "1.0.0.0"], "not a version"),
        (["check", ".", "--target", "sm_90"], "gfx90a"),
        (["check", ".", "--assist", "no-such-rule"], "no-such-rule"),
        (["check", "./does-not-exist"], "no such file"),
        (["check", ".", "--exclude", "!"], "--exclude"),
        (["convert", ".", "--diff", "--out", "x"], "--diff"),
        (["convert", ".", "--diff", "--json", "-"], "--json"),
        (["rule", "no-hip-equivalen"], "did you mean no-hip-equivalent"),
        (["rule", "HP9999"], "no rule"),
    ],
)
def test_bad_usage_is_one_line(
    arguments: list[str],
    words: str,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert guarded(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


def test_no_traceback(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("first\nsecond")

    monkeypatch.delenv("HIPPORT_DEBUG", raising=False)
    monkeypatch.setattr(main.cli, "main", broken)
    assert guarded(["check", "."]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert "internal error: ValueError: first second" in err
    monkeypatch.setenv("HIPPORT_DEBUG", "1")
    assert guarded(["check", "."]) == 2
    assert "Traceback" in capfd.readouterr().err


def test_interruption(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise click.Abort

    monkeypatch.setattr(main.cli, "main", stopped)
    assert guarded([]) == 130
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_leaves_whole_files_and_no_workers(tmp_path: Path, how: signal.Signals) -> None:
    body = CUDA + b"void g(void *p) { cudaFree(p); }\n" * 400
    root = commit(tmp_path / "r", {f"f{n}.cu": body for n in range(80)})
    before = snapshot(root)
    running = subprocess.Popen(
        [sys.executable, "-m", "hipport", "convert", str(root)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    time.sleep(1.0)
    if how is signal.SIGINT:
        os.killpg(running.pid, how)
    else:
        running.send_signal(how)
    _, err = running.communicate(timeout=60)
    if running.returncode == 130:
        assert err.count("\n") == 1
    else:
        assert err == ""
    converted = body.replace(CUDA, HIP).replace(b"cudaFree", b"hipFree")
    after = {path: data for path, data in snapshot(root).items() if path.endswith(".cu")}
    assert set(after) == set(before)
    assert all(data in (body, converted) for data in after.values())
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("workers outlived the run")


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    commit(tmp_path / "r", {f"f{n}.cu": CUDA for n in range(3)})
    running = subprocess.Popen(
        [sys.executable, "-m", "hipport", "convert", str(tmp_path / "r"), "--diff"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    running.stdout.close()
    assert running.stderr is not None
    err = running.stderr.read()
    running.stderr.close()
    assert running.wait() in (0, 141)
    assert "Traceback" not in err
    assert "Exception" not in err


def test_colour(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_bytes(CUDA)
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    assert "\x1b[" not in command("check", str(tmp_path), env=plain).stdout
    always = command("check", str(tmp_path), "--color=always", env=plain)
    assert "\x1b[" in always.stdout
    never = command("check", str(tmp_path), "--color=never", env={**plain, "FORCE_COLOR": "1"})
    assert "\x1b[3" not in never.stdout
    quiet = command("check", str(tmp_path), "-q", env=plain)
    assert quiet.stdout.count("\n") == 1
    assert command("check", str(tmp_path), "-qq", env=plain).stdout == ""


def test_rule_pages(capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded(["rule", "hp1001"]) == 0
    by_code = capfd.readouterr().out
    assert guarded(["rule", "unparsed"]) == 0
    assert capfd.readouterr().out == by_code
    assert "unparsed" in by_code
    assert guarded(["rule"]) == 0
    assert "HP1001" in capfd.readouterr().out
