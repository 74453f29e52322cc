"""Compiler diagnostics, read from clang's text (``file:line:column: error: message``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

OPTIONS = ("-fno-caret-diagnostics", "-fno-color-diagnostics", "-fno-diagnostics-show-option",
           "-ferror-limit=50", "-fmacro-backtrace-limit=0",
           "-ftemplate-backtrace-limit=4", "-w")  # fmt: skip
"""What makes clang's text regular. Warnings are off: the gate is about what does not build."""

LineMap = Callable[[str, int], "tuple[str, int] | None"]
"""From a converted file and line to the original's, None where they do not correspond."""

_PLACE = re.compile(
    r"^(?P<path>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)?\s*"
    r"(?P<kind>fatal error|error|warning|note|remark):\s*(?P<message>.*)$"
)
_BARE = re.compile(
    r"^(?:[\w+./-]*(?:clang|hipcc|zig|lld)[\w+.-]*:\s*)?(?P<kind>error|fatal error):\s*(?P<m>.*)$"
)
_INCLUDED = re.compile(r"^(?:In file included from|\s+from) (?P<path>[^:]+):(?P<line>\d+)[:,]")
_NOISE = re.compile(r"linker command failed|too many errors emitted|\d+ errors? generated")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error and its notes.

    `path` and `line` are those of the compiled file; `original` is where the user wrote it.
    Both are empty for errors of the driver. `via` lists the includes that led there, outermost
    first. `target` is empty for host passes.
    """

    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    fatal: bool = False
    notes: tuple[tuple[str, int, str], ...] = ()
    via: tuple[tuple[str, int], ...] = ()
    target: str = ""
    original: tuple[str, int] | None = None

    def place(self) -> str:
        """``path:line:column`` as far as it is known."""
        parts = [self.path, *(str(n) for n in (self.line, self.column) if n)]
        return ":".join(p for p in parts if p)


def parse(text: str, target: str = "") -> list[Diagnostic]:
    """Errors in the order in which the compiler met them; warnings are left out."""
    out: list[Diagnostic] = []
    via: list[tuple[str, int]] = []
    keep = False
    for line in text.splitlines():
        if found := _INCLUDED.match(line):
            via.append((found["path"], int(found["line"])))
            continue
        match = _PLACE.match(line)
        if match is None:
            bare = _BARE.match(line)
            if bare is not None and not _NOISE.search(line):
                out.append(Diagnostic(bare["m"], target=target))
                keep = True
            continue
        kind, where = match["kind"], (match["path"], int(match["line"]))
        if kind == "note":
            if keep and out:
                last = out[-1]
                out[-1] = replace(last, notes=(*last.notes, (*where, match["message"])))
        else:
            keep = kind.endswith("error")
            if keep:
                out.append(
                    Diagnostic(
                        match["message"], *where, int(match["column"] or 0),
                        kind == "fatal error", via=tuple(via), target=target,
                    )
                )  # fmt: skip
        via = []
    return out


def to_user(found: Sequence[Diagnostic], owned: Callable[[str], bool]) -> list[Diagnostic]:
    """Move errors inside foreign headers to the user's line that a note or an include names."""
    out = []
    for item in found:
        if item.path and not owned(item.path):
            spots = [(p, n) for p, n, _ in item.notes if owned(p)]
            spots += [(p, n) for p, n in reversed(item.via) if owned(p)]
            if spots:
                note = (item.path, item.line, "reported here")
                item = replace(
                    item, path=spots[0][0], line=spots[0][1], column=0, notes=(*item.notes, note)
                )
        out.append(item)
    return out


def with_originals(found: Iterable[Diagnostic], line_map: LineMap | None) -> list[Diagnostic]:
    """Fill in where the user wrote each line; without a map the lines are the same."""
    out = []
    for item in found:
        if item.path and item.line:
            same = (item.path, item.line)
            item = replace(item, original=line_map(*same) if line_map is not None else same)
        out.append(item)
    return out


def cause(message: str) -> str:
    """A message without what varies between places of one cause."""
    text = re.sub(r" \(aka '[^']*'\)", "", message)
    text = re.sub(r"; did you mean .*", "", text)
    return re.sub(r"\(\d+\)", "(N)", text)


@dataclass(frozen=True, slots=True)
class Group:
    """All errors of one cause; `places` are distinct (path, line), first met first."""

    cause: str
    first: Diagnostic
    places: tuple[tuple[str, int], ...]
    targets: tuple[str, ...]
    count: int


def group(found: Iterable[Diagnostic]) -> list[Group]:
    """Group errors by cause; the cause that was met first comes first."""
    by: dict[str, list[Diagnostic]] = {}
    for item in found:
        by.setdefault(cause(item.message), []).append(item)
    return [
        Group(
            name,
            items[0],
            tuple(dict.fromkeys((i.path, i.line) for i in items)),
            tuple(dict.fromkeys(i.target or "host" for i in items)),
            len({(i.path, i.line, i.column, i.target) for i in items}),
        )
        for name, items in by.items()
    ]
