"""Edits to bytes: what replaces what, which belong together, and how they compose.

A `Change` is all or nothing. Two changes that claim the same bytes cannot both be applied: the
one of higher priority wins, at equal priority the earlier one, and the loser is reported.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise

from hipport.source.span import Span


class Safety(str, Enum):
    """Who decides about a change."""

    AUTO = "auto"
    """Keeps the meaning on every target; applied by default."""
    ASSIST = "assist"
    """Offered; applied only on request."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the bytes of `span` by `text`; an empty span inserts.

    `extent` is set for the two halves of a wrap: the region that is wrapped. It orders insertions
    that meet at one offset, so that nested wraps close in the order in which they opened.
    """

    span: Span
    text: bytes
    extent: Span | None = None

    @classmethod
    def replace(cls, start: int, end: int, text: bytes) -> Edit:
        """Replace bytes ``start..end``."""
        return cls(Span(start, end), text)

    @classmethod
    def insert(cls, at: int, text: bytes) -> Edit:
        """Insert at an offset."""
        return cls(Span(at, at), text)

    @classmethod
    def wrap(cls, region: Span, before: bytes, after: bytes) -> tuple[Edit, Edit]:
        """Put text around a region whose inside may be edited by others."""
        return (
            cls(Span(region.start, region.start), before, region),
            cls(Span(region.end, region.end), after, region),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """Edits that only make sense together.

    Attributes:
        edits: the byte edits.
        safety: whether it is applied without being asked for.
        priority: which change wins where two claim the same bytes; names use 0, rewrites 10.
        needs: headers that the changed text uses, as written in an include (``<x>`` or ``"x"``).
        label: what the change belongs to, for statistics (a library or a slug).
    """

    edits: tuple[Edit, ...]
    safety: Safety = Safety.AUTO
    priority: int = 0
    needs: tuple[str, ...] = ()
    label: str = ""


@dataclass(slots=True)
class EditSet:
    """Accepted changes of one file, free of overlaps."""

    size: int
    _starts: list[tuple[int, int]] = field(default_factory=list)
    _inserts: list[Edit] = field(default_factory=list)
    _replacements: list[Edit] = field(default_factory=list)
    _insert_at: list[int] = field(default_factory=list)

    def _free(self, edit: Edit) -> bool:
        span = edit.span
        if span.end > self.size:
            return False
        if span.start == span.end:
            at = bisect_left(self._starts, (span.start, -1))
            return not (at and self._starts[at - 1][1] > span.start)
        at = bisect_left(self._starts, (span.start, -1))
        if at and self._starts[at - 1][1] > span.start:
            return False
        if at < len(self._starts) and self._starts[at][0] < span.end:
            return False
        here = bisect_left(self._insert_at, span.start + 1)
        return not (here < len(self._insert_at) and self._insert_at[here] < span.end)

    def add(self, change: Change) -> bool:
        """Take a whole change, or nothing of it if it meets an accepted one."""
        own = sorted((e.span for e in change.edits if len(e.span)), key=lambda s: s.start)
        if any(a.end > b.start for a, b in pairwise(own)):
            return False
        for edit in change.edits:
            inside = not len(edit.span) and any(s.overlaps(edit.span) for s in own)
            if inside or not self._free(edit):
                return False
        for edit in change.edits:
            if len(edit.span):
                insort(self._starts, (edit.span.start, edit.span.end))
                self._replacements.append(edit)
            else:
                insort(self._insert_at, edit.span.start)
                self._inserts.append(edit)
        return True

    def extend(self, changes: Iterable[Change]) -> list[Change]:
        """Add changes by descending priority; return those that found their bytes taken."""
        ordered = sorted(changes, key=lambda c: -c.priority)
        return [change for change in ordered if not self.add(change)]

    def __len__(self) -> int:
        return len(self._inserts) + len(self._replacements)

    def ordered(self) -> list[Edit]:
        """All edits in the order in which their text appears in the result."""
        indexed = enumerate([*self._inserts, *self._replacements])
        return [edit for _, edit in sorted(indexed, key=lambda item: _order(item[1], item[0]))]

    def apply(self, data: bytes) -> bytes:
        """Return the edited bytes.

        Raises:
            ValueError: `data` is not of the size that the edits were checked against.
        """
        if len(data) != self.size:
            raise ValueError(f"edits are for {self.size} bytes, got {len(data)}")
        out: list[bytes] = []
        at = 0
        for edit in self.ordered():
            out.append(data[at : edit.span.start])
            out.append(edit.text)
            at = edit.span.end
        out.append(data[at:])
        return b"".join(out)


def _order(edit: Edit, index: int) -> tuple[int, int, int, int]:
    """Sort key: offset; closings (inner first), plain inserts, openings (outer first), text."""
    start = edit.span.start
    if len(edit.span):
        return start, 3, 0, index
    if edit.extent is None:
        return start, 1, 0, index
    if edit.extent.end == start and len(edit.extent):
        return start, 0, -edit.extent.start, index
    return start, 2, -edit.extent.end, index
