from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hipport.report.diff import file_diff, hunks, new_file_diff
from hipport.report.model import FilePlan, FileStatus
from hipport.source import Change, Edit, EditSet
from tests.project.tree import git, put


def patch(old: bytes, diff: bytes) -> bytes:
    """Apply hunks as a strict patch tool does: every line of the old side has to match."""
    lines = old.split(b"\n")
    whole = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    out: list[bytes] = []
    at = 0
    body: list[bytes] = []
    for line in diff.split(b"\n")[:-1]:
        if line.startswith(b"\\"):
            body[-1] = body[-1][:-1]
        else:
            body.append(line + b"\n")
    left = [0, 0]
    for line in body:
        if line.startswith(b"@@ "):
            assert left == [0, 0]
            old_range, new_range = line.split(b" ")[1:3]
            start, _, count = old_range[1:].partition(b",")
            new_start, _, new_count = new_range[1:].partition(b",")
            left = [int(count or b"1"), int(new_count or b"1")]
            first = int(start) - (1 if left[0] else 0)
            out += whole[at:first]
            at = first
            assert len(out) == int(new_start) - (1 if left[1] else 0)
            continue
        if line[:1] in b" -":
            assert whole[at] == line[1:]
            at += 1
            left[0] -= 1
        if line[:1] in b" +":
            out.append(line[1:])
            left[1] -= 1
    assert left == [0, 0]
    return b"".join(out + whole[at:])


TEXT = st.lists(
    st.sampled_from([b"a", b"b", b"\n", b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"cudaFree"])
).map(b"".join)


@st.composite
def edited(draw: st.DrawFn) -> tuple[bytes, EditSet]:
    old = draw(TEXT)
    edits = EditSet(len(old))
    for _ in range(draw(st.integers(0, 5))):
        start = draw(st.integers(0, len(old)))
        end = draw(st.integers(start, min(len(old), start + 6)))
        edits.add(Change((Edit.replace(start, end, draw(TEXT)),)))
    return old, edits


@given(edited())
@settings(max_examples=300, deadline=None)
def test_a_diff_made_from_edits_patches_the_old_into_the_new(case: tuple[bytes, EditSet]) -> None:
    old, edits = case
    new = edits.apply(old)
    diff = b"".join(hunks(old, new, edits.ordered()))
    assert patch(old, diff) == new
    assert bool(diff) == (old != new)


@given(TEXT, TEXT)
@settings(max_examples=100, deadline=None)
def test_a_diff_without_edits(old: bytes, new: bytes) -> None:
    assert patch(old, b"".join(hunks(old, new))) == new


def test_git_takes_hard_names_and_bytes(tmp_path: Path) -> None:
    old = {
        "with space.cu": b"a\nb\nc\r\nd",
        'q"uote\\.cu': b"\xff\x00\n\n",
        "ünï\n.cu": b"x\n" * 30,
        "crlf.h": b"a\r\nb\r\n",
    }
    git(put(tmp_path, old), "init", "-q")
    pieces: list[bytes] = []
    new: dict[str, bytes] = {}
    for name, data in old.items():
        new[name] = data[:1] + b"++" + data[1:]
        edits = (Edit.insert(1, b"++"),)
        plan = FilePlan(name, FileStatus.CONVERTED, edits=edits, output=new[name])
        pieces += file_diff(plan, data)
    pieces += new_file_diff("added here.h", b"int x;\n")
    (tmp_path / "d.patch").write_bytes(b"".join(pieces))
    git(tmp_path, "apply", "d.patch")
    for name, data in new.items():
        assert (tmp_path / name).read_bytes() == data
    assert (tmp_path / "added here.h").read_bytes() == b"int x;\n"


def test_a_rename_alone() -> None:
    plan = FilePlan("a.cu", FileStatus.UNTOUCHED, renamed="a.hip")
    assert b"".join(file_diff(plan, b"x")) == (
        b"diff --git a/a.cu b/a.hip\nrename from a.cu\nrename to a.hip\n"
    )
