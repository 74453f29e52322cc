"""The benchmark's own checks, on a small corpus of ours, and that each of them can fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convert
import pytest
from corpus import Pin

PARTICLES = Path(__file__).resolve().parents[2] / "fixtures" / "repos" / "particles"
PIN = Pin("particles", "1", "0" * 64)


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convert, "ensure", lambda pin: PARTICLES)


@pytest.mark.usefixtures("corpus")
def test_a_small_corpus_passes(tmp_path: Path) -> None:
    outcome = convert.convert(PIN, tmp_path, None, 1, None)
    assert outcome.failures == []
    assert outcome.files == 10
    assert outcome.converted == 9
    assert outcome.without_cuda == 1
    assert outcome.edits > 50
    assert outcome.prose_changed == []


def _pretend(monkeypatch: pytest.MonkeyPatch, change: Callable[[Path, int], None]) -> None:
    """Stand in for hipport: a copy that `change` spoils, told the number of the run."""
    runs: list[int] = []

    def run(source: Path, target: Path, report: Path, *_: Any) -> tuple[float, Any, str]:
        runs.append(1)
        shutil.copytree(source, target)
        for path in target.rglob("*"):
            if path.is_file() and len(runs) == 1 and "tinyfmt" not in path.name:
                text = path.read_text().replace("cuda", "hip").replace("cublas", "hipblas")
                path.write_text(text.replace("CUBLAS", "HIPBLAS"))
        change(target, len(runs))
        summary = {"edits": {"runtime": 1}, "unparsed": {"bytes": 0}}
        return 0.1, {"findings": [], "summary": summary}, ""

    monkeypatch.setattr(convert, "run_hipport", run)
    monkeypatch.setattr(convert, "_counterparts", lambda rocm: {"cudaFree": "hipFree"})


def _failures(tmp_path: Path) -> list[str]:
    return convert.convert(PIN, tmp_path, None, 1, None).failures


@pytest.mark.usefixtures("corpus")
def test_a_name_that_is_left_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def leave(target: Path, run: int) -> None:
        with (target / "src/main.cu").open("a") as stream:
            stream.write("void f(void* p) { cudaFree(p); }\n")

    _pretend(monkeypatch, leave)
    assert any("cudaFree (hipFree)" in text for text in _failures(tmp_path))


@pytest.mark.usefixtures("corpus")
def test_a_second_change_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def again(target: Path, run: int) -> None:
        if run == 2:
            (target / "src/main.cu").write_text("int main() {}\n")

    _pretend(monkeypatch, again)
    assert "changed again: src/main.cu" in _failures(tmp_path)


@pytest.mark.usefixtures("corpus")
def test_a_changed_file_without_cuda_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def touch(target: Path, run: int) -> None:
        with (target / "third_party/tinyfmt/tinyfmt.h").open("ab") as stream:
            stream.write(b"\n")

    _pretend(monkeypatch, touch)
    assert "changed without CUDA: third_party/tinyfmt/tinyfmt.h" in _failures(tmp_path)


@pytest.mark.usefixtures("corpus")
def test_a_lost_file_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _pretend(monkeypatch, lambda target, run: (target / "src/forces.cu").unlink(missing_ok=True))
    assert "lost: src/forces.cu" in _failures(tmp_path)


@pytest.mark.usefixtures("corpus")
def test_a_crash_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(convert, "run_hipport", lambda *_: (0.1, {}, "exit status 2: oh"))
    assert _failures(tmp_path) == ["crash: exit status 2: oh"]


def test_a_lost_comment_is_seen(tmp_path: Path) -> None:
    for name, text in (("a", "f(1 /* one */); // two"), ("b", "f(1); // two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.cu").write_text(text)
    changes = convert.prose_changes(tmp_path / "a", tmp_path / "b", [("x.cu", "x.cu")])
    assert changes == ["x.cu: '/* one */'"]


def test_the_page_has_a_row_for_each_corpus_and_the_total() -> None:
    outcomes = [convert.Outcome("one", "1", files=2), convert.Outcome("two", "2", files=3)]
    page = convert.page(outcomes, "command")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[1] for row in rows[1:4]] == ["2", "3", "5"]
    assert json.dumps(page)
    assert "`command`" in page
