"""Indentation without blanks at the ends of lines."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment


@dataclass(frozen=True)
class Indented:
    """Something to print, moved to the right."""

    inner: RenderableType
    by: int = 2

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Rich's protocol."""
        narrow = options.update(width=max(options.max_width - self.by, 1))
        for line in console.render_lines(self.inner, narrow, pad=False):
            yield Segment(" " * self.by)
            yield from line
            yield Segment.line()
