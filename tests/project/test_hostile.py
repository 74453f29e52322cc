"""A tree of everything that tools trip over: converted or named in the report, never a crash."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hipport.cli.main import guarded
from tests.project.make_hostile import Hostile, make, unlock
from tests.project.tree import snapshot


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    made = make(tmp_path_factory.mktemp("hostile") / "tree", megabytes=0, depth=1000)
    yield made
    unlock(made)


def _ascii(data: bytes) -> bytes:
    """The text of a file of any of the encodings, as far as ASCII goes."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if data.startswith(mark):
            return data[2:].decode(encoding).encode("ascii", "replace")
    return data


def test_hostile_tree(hostile: Hostile, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    report_file = tmp_path / "r.json"
    status = guarded(
        [
            "convert",
            str(hostile.root),
            "--out",
            str(out),
            "--json",
            str(report_file),
            "--color=never",
        ]
    )
    text, err = capfd.readouterr()
    assert status == 3
    assert err == ""
    assert "Traceback" not in text
    assert "internal error" not in text
    report = json.loads(report_file.read_text())
    files = {item["path"]: item for item in report["files"]}

    for name in hostile.convertible:
        old, new = (hostile.root / name).read_bytes(), (out / name).read_bytes()
        expected = (
            _ascii(old)
            .replace(b"cuda_runtime.h", b"hip/hip_runtime.h")
            .replace(b"cudaMalloc(", b"hipMalloc(")
            .replace(b"cudaMalloc\\", b"hipMalloc\\")
            .replace(b"cudaFree", b"hipFree")
        )
        assert _ascii(new) == expected, name
        assert new[:2] == old[:2], name
    for name in hostile.untouched:
        assert (out / name).read_bytes() == (hostile.root / name).read_bytes(), name
    for name in hostile.refused:
        assert files[name]["status"] == "unreadable"
        assert files[name]["note"]
    for name in hostile.survives:
        assert name in files, name
    unread = {path: item["note"] for path, item in files.items() if item["status"] == "unreadable"}
    assert unread["dangling.cu"] == "dangling link"
    assert unread["loop/back.cu"] == "link loop"
    assert "UTF-16" in unread["truncated_utf16.cu"]
    assert set(unread) - {"locked.cu", "locked_folder"} == {
        "dangling.cu",
        "loop/back.cu",
        "truncated_utf16.cu",
    }
    assert files["pipe.cu"]["status"] == "skipped"
    assert os.readlink(out / "linked.cu") == "utf8.cu"

    before = snapshot(out)
    # The generated source is the same two lines many times over; once is enough of them.
    again = ["convert", str(out), "--force", "-qq", "--exclude", "generated.cu"]
    assert guarded(again) == 3
    assert snapshot(out) == before


def test_the_report_names_each_unread_file_on_one_line(
    hostile: Hostile, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [str(hostile.root / name) for name in ("dangling.cu", "truncated_utf16.cu", "bom.cu")]
    assert guarded(["check", *names, "--color=never"]) == 3
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("unread ")]
    assert len(lines) == 2
