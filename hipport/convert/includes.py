"""Where an include that converted code needs is put."""

from __future__ import annotations

import posixpath
import re

from hipport.parse.tokens import Kind, directive_name
from hipport.parse.unit import Unit
from hipport.source import Edit

_PRAGMA_ONCE = re.compile(rb"^[ \t]*#[ \t]*pragma[ \t]+once[^\r\n]*(?:\r?\n|\Z)", re.M)
COMPAT_HEADERS = frozenset({"hipport_warp.h", "hipport_compat.h"})


def included(unit: Unit) -> frozenset[bytes]:
    """Include paths that the file names itself."""
    return frozenset(t.text[1:-1].strip() for t in unit.tokens if t.kind is Kind.HEADER)


def _first_include(unit: Unit) -> int | None:
    """Offset of the line of the first include that stands outside every conditional."""
    depth = 0
    tokens = unit.tokens
    guard = _guard_depth(unit)
    for i, token in enumerate(tokens):
        if token.kind is not Kind.DIRECTIVE:
            continue
        word = directive_name(token)
        if word in (b"if", b"ifdef", b"ifndef"):
            depth += 1
        elif word == b"endif":
            depth -= 1
        elif word == b"include" and depth <= guard:
            header = tokens[i + 1] if i + 1 < len(tokens) else None
            if header is not None and header.kind is Kind.HEADER:
                return unit.source.line_span(unit.line(token.start)).start
    return None


def _guard_depth(unit: Unit) -> int:
    """1 where the file's first directives are an include guard, else 0."""
    directives = [t for t in unit.tokens if t.kind is Kind.DIRECTIVE][:2]
    if len(directives) < 2 or directive_name(directives[0]) not in (b"ifndef", b"if"):
        return 0
    return 1 if directive_name(directives[1]) == b"define" else 0


def _default_place(unit: Unit) -> int:
    """Behind the byte order mark, leading comments, ``#pragma once`` or the guard's define."""
    data = unit.data
    pragma = _PRAGMA_ONCE.search(data)
    if pragma is not None:
        return pragma.end()
    directives = [t for t in unit.tokens if t.kind is Kind.DIRECTIVE][:2]
    if _guard_depth(unit) and len(directives) == 2:
        return unit.source.line_span(unit.line(directives[1].start)).end
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    for token in unit.tokens:
        if (
            token.kind is not Kind.COMMENT
            or token.start != at + len(data[at : token.start])
            or data[at : token.start].strip()
        ):
            break
        span = unit.source.line_span(unit.line(max(token.end - 1, token.start)))
        if data[token.end : span.end].strip():
            break
        at = span.end
    return at


def insertions(unit: Unit, lines: list[bytes]) -> tuple[Edit, ...]:
    """Edits that add include lines in the file's own line-end style.

    System headers come in front of the first include, headers of the project behind it.
    """
    first = _first_include(unit)
    system = [line for line in lines if b"<" in line]
    own = [line for line in lines if b"<" not in line]
    if first is None:
        return (_block(unit, _default_place(unit), system + own),)
    edits = [_block(unit, first, system)] if system else []
    if own:
        edits.append(_block(unit, unit.source.line_span(unit.line(first)).end, own))
    return tuple(edits)


def _block(unit: Unit, at: int, lines: list[bytes]) -> Edit:
    newline = unit.source.newline
    text = b"".join(line + newline for line in lines)
    if at and not unit.data[:at].endswith((b"\n", b"\r", b"\xef\xbb\xbf")):
        text = newline + text
    return Edit.insert(at, text)


def relative(path: str, header: str) -> str:
    """How a file names a generated header that lies at the project's root."""
    folder = posixpath.dirname(path)
    return posixpath.relpath(header, folder) if folder else header
