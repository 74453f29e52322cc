from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hipport.project import write
from hipport.project.write import ChangedMeanwhile, digest_of, remove_strays, write_atomic


def test_content_and_mode(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_bytes(b"old")
    file.chmod(0o754)
    write_atomic(file, b"new", expect=digest_of(b"old"))
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o7777 == 0o754
    assert os.listdir(tmp_path) == ["a.cu"]


def test_a_new_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "n", b"x", mode=0o755)
    assert (tmp_path / "n").stat().st_mode & 0o7777 == 0o755


def test_a_changed_file_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_bytes(b"edited")
    with pytest.raises(ChangedMeanwhile):
        write_atomic(file, b"new", expect=digest_of(b"old"))
    assert file.read_bytes() == b"edited"
    file.unlink()
    with pytest.raises(ChangedMeanwhile):
        write_atomic(file, b"new", expect=digest_of(b"old"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    file = tmp_path / "a.cu"
    file.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_atomic(file, b"new", expect=digest_of(b"old"))
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.cu"]


_WRITER = """
import sys
from pathlib import Path
from hipport.project.write import write_atomic
a, b = b"a" * 3_000_000, b"b" * 3_000_000
print("ready", flush=True)
while True:
    write_atomic(Path(sys.argv[1]), a)
    write_atomic(Path(sys.argv[1]), b)
"""


def test_a_kill_leaves_the_file_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    seen = set()
    for pause in (0.0, 0.011, 0.023, 0.037, 0.05):
        file.write_bytes(b"b" * 3_000_000)
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(file)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(pause)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        data = file.read_bytes()
        assert len(data) == 3_000_000
        assert len(set(data)) == 1
        seen.update(os.listdir(tmp_path))
    remove_strays({tmp_path})
    assert os.listdir(tmp_path) == ["a.cu"]


def test_a_living_writers_part_is_kept(tmp_path: Path) -> None:
    living = tmp_path / f".a.cu.{os.getpid()}-x1{write._PART}"
    living.write_bytes(b"")
    assert remove_strays({tmp_path}) == 0
    assert living.exists()
