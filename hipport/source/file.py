"""A source file as bytes, with what is needed to talk about places in it."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hipport.source.span import Span

_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


@dataclass(frozen=True)
class SourceFile:
    """The bytes of one file under the name a user knows it by.

    `path` is the path to show (relative to the project root where there is one).
    """

    path: Path
    data: bytes = field(repr=False)

    @classmethod
    def read(cls, path: Path, shown: Path | None = None) -> SourceFile:
        """Read a file.

        Raises:
            OSError: the file cannot be read.
        """
        return cls(shown or path, path.read_bytes())

    @cached_property
    def encoding(self) -> str:
        """The encoding as far as bytes tell: by byte order mark, then UTF-8, then Latin-1."""
        for bom, name in _BOMS:
            if self.data.startswith(bom):
                return name
        try:
            self.data.decode("utf-8")
        except UnicodeDecodeError:
            return "latin-1"
        return "utf-8"

    @property
    def ascii_compatible(self) -> bool:
        """Whether ASCII bytes mean ASCII characters, which byte-wise editing relies on."""
        return not self.encoding.startswith(("utf-16", "utf-32"))

    @cached_property
    def newline(self) -> bytes:
        """The line end that new lines should take: the one that the file uses most."""
        crlf = self.data.count(b"\r\n")
        bare = self.data.count(b"\n") - crlf
        return b"\r\n" if crlf > bare else b"\n"

    @cached_property
    def line_starts(self) -> list[int]:
        """Byte offset at which each line begins; line ends are LF, CRLF, or a lone CR."""
        starts = [0]
        data, at = self.data, 0
        if b"\r" not in data:
            while (at := data.find(b"\n", at)) != -1:
                at += 1
                starts.append(at)
            return starts
        size = len(data)
        while at < size:
            lf, cr = data.find(b"\n", at), data.find(b"\r", at)
            if lf == -1 and cr == -1:
                break
            if cr != -1 and (lf == -1 or cr < lf):
                at = cr + 2 if data[cr + 1 : cr + 2] == b"\n" else cr + 1
            else:
                at = lf + 1
            starts.append(at)
        return starts

    def line_col(self, offset: int) -> tuple[int, int]:
        """1-based line and 1-based byte column of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def line_span(self, line: int) -> Span:
        """The span of a 1-based line, its line end included."""
        starts = self.line_starts
        end = starts[line] if line < len(starts) else len(self.data)
        return Span(starts[line - 1], end)

    def text(self, span: Span) -> bytes:
        """The bytes of a span."""
        return self.data[span.start : span.end]
