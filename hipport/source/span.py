"""Byte spans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of byte offsets, ``start <= end``.

    Raises:
        ValueError: the offsets are negative or the wrong way round.
    """

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"bad span {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def contains(self, other: Span) -> bool:
        """Whether `other` lies wholly inside this span."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        """Whether the two share at least one byte; empty spans only overlap in an inside."""
        if self.start == self.end or other.start == other.end:
            return self.start < other.start < self.end or other.start < self.start < other.end
        return self.start < other.end and other.start < self.end
