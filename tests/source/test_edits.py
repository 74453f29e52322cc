"""Properties of the edit engine, against a slow model of it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hipport.source import Change, Edit, EditSet, SourceFile, Span

DATA = st.binary(max_size=24)
MARKS = st.binary(max_size=4)


@st.composite
def changes(draw: st.DrawFn, size: int) -> Change:
    edits = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, size))
        end = draw(st.integers(start, min(size, start + 5)))
        if draw(st.booleans()):
            edits.append(Edit.replace(start, end, draw(MARKS)))
        else:
            edits += Edit.wrap(Span(start, end), draw(MARKS), draw(MARKS))
    return Change(tuple(edits), priority=draw(st.sampled_from([0, 10])))


@st.composite
def cases(draw: st.DrawFn) -> tuple[bytes, list[Change]]:
    data = draw(DATA)
    return data, draw(st.lists(changes(len(data)), max_size=6))


def meet(a: Span, b: Span) -> bool:
    """Whether two edits cannot both be made: shared bytes, or an insertion inside a replacement."""
    if len(a) and len(b):
        return max(a.start, b.start) < min(a.end, b.end)
    if len(a) or len(b):
        inner, outer = (a, b) if not len(a) else (b, a)
        return outer.start < inner.start < outer.end
    return False


@given(cases())
@settings(max_examples=300, deadline=None)
def test_a_change_is_taken_whole_exactly_when_it_meets_nothing(
    case: tuple[bytes, list[Change]],
) -> None:
    data, listed = case
    edits = EditSet(len(data))
    held: list[Span] = []
    for change in listed:
        own = [e.span for e in change.edits]
        clash = any(meet(a, b) for a in own for b in held) or any(
            meet(a, b) for i, a in enumerate(own) for b in own[i + 1 :]
        )
        assert edits.add(change) is not clash
        if not clash:
            held += own
    assert len(edits) == len(held)
    assert sorted(e.span for e in edits.ordered()) == sorted(held)


@given(cases())
@settings(max_examples=300, deadline=None)
def test_bytes_that_no_edit_names_stay(case: tuple[bytes, list[Change]]) -> None:
    data, listed = case
    edits = EditSet(len(data))
    edits.extend(listed)
    kept = [True] * len(data)
    for edit in edits.ordered():
        for at in range(edit.span.start, edit.span.end):
            kept[at] = False
    rest = bytes(byte for byte, stays in zip(data, kept, strict=True) if stays)
    silent = EditSet(len(data))
    for edit in edits.ordered():
        assert silent.add(Change((Edit(edit.span, b"", edit.extent),)))
    assert silent.apply(data) == rest
    texts = sum(len(edit.text) for edit in edits.ordered())
    assert len(edits.apply(data)) == len(rest) + texts


@given(cases())
@settings(max_examples=200, deadline=None)
def test_order_of_offset(case: tuple[bytes, list[Change]]) -> None:
    data, listed = case
    edits = EditSet(len(data))
    edits.extend(listed)
    spans = [e.span for e in edits.ordered()]
    assert all(a.end <= b.start for a, b in pairwise(spans))


@given(cases())
@settings(max_examples=200, deadline=None)
def test_the_higher_priority_wins(case: tuple[bytes, list[Change]]) -> None:
    data, listed = case
    edits = EditSet(len(data))
    lost = edits.extend(listed)
    high = EditSet(len(data))
    lost_high = high.extend(c for c in listed if c.priority == 10)
    assert [c for c in lost if c.priority == 10] == lost_high
    assert len(edits) == sum(len(c.edits) for c in listed) - sum(len(c.edits) for c in lost)


@given(DATA, st.data())
@settings(max_examples=300, deadline=None)
def test_nested_wraps_close_in_the_order_in_which_they_opened(
    data: bytes, draw: st.DataObject
) -> None:
    regions: list[Span] = []
    outer = Span(0, len(data))
    for _ in range(draw.draw(st.integers(1, 5))):
        start = draw.draw(st.integers(outer.start, outer.end))
        outer = Span(start, draw.draw(st.integers(start, outer.end)))
        if not len(outer):
            break
        regions.append(outer)
    edits = EditSet(len(data))
    order = draw.draw(st.permutations(list(enumerate(dict.fromkeys(regions)))))
    plain = data.replace(b"(", b".").replace(b")", b".")
    for _, region in order:
        assert edits.add(Change(Edit.wrap(region, b"(", b")")))
    result = edits.apply(plain)
    stack: list[int] = []
    found: list[bytes] = []
    for at, byte in enumerate(result):
        if byte == ord("("):
            stack.append(at)
        elif byte == ord(")"):
            found.append(result[stack.pop() : at].translate(None, b"()"))
    assert not stack
    assert sorted(found) == sorted(plain[r.start : r.end] for _, r in order)


@given(cases(), cases())
@settings(max_examples=100, deadline=None)
def test_edits_of_far_apart_parts_compose(
    first: tuple[bytes, list[Change]], second: tuple[bytes, list[Change]]
) -> None:
    (a, left), (b, right) = first, second
    gap = b"--"
    shift = len(a) + len(gap)
    both = EditSet(shift + len(b))
    one, two = EditSet(len(a)), EditSet(len(b))
    for change in left:
        assert both.add(change) == one.add(change)
    for change in right:
        moved = tuple(
            Edit(
                Span(e.span.start + shift, e.span.end + shift),
                e.text,
                e.extent and Span(e.extent.start + shift, e.extent.end + shift),
            )
            for e in change.edits
        )
        assert both.add(Change(moved)) == two.add(change)
    assert both.apply(a + gap + b) == one.apply(a) + gap + two.apply(b)


def test_a_change_beyond_the_end_is_refused() -> None:
    edits = EditSet(3)
    assert not edits.add(Change((Edit.replace(2, 4, b""),)))
    assert not edits.add(Change((Edit.insert(4, b"x"),)))
    assert edits.add(Change((Edit.insert(3, b"x"),)))
    assert edits.apply(b"abc") == b"abcx"


def test_other_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        EditSet(3).apply(b"ab")


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\x00"])).map(b"".join))
@settings(max_examples=300, deadline=None)
def test_places_in_a_file(data: bytes) -> None:
    source = SourceFile.__new__(SourceFile)
    object.__setattr__(source, "data", data)
    parts = data.replace(b"\r\n", b"\n\n").replace(b"\r", b"\n")
    line, column = 1, 1
    for at in range(len(data) + 1):
        inside_crlf = at > 0 and data[at - 1 : at + 1] == b"\r\n"
        if not inside_crlf:
            assert source.line_col(at) == (line, column)
            assert at in range(source.line_span(line).start, source.line_span(line).end + 1)
        if at == len(data):
            break
        crlf_first = data[at : at + 2] == b"\r\n"
        if parts[at : at + 1] == b"\n" and not crlf_first:
            line, column = line + 1, 1
        else:
            column += 1
