"""Renaming: identifier tokens, namespaces and include paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hipport.checks.context import Context
from hipport.parse.facts import OwnName, Scope
from hipport.parse.tokens import Kind, Token
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

_HAS_INCLUDE = re.compile(rb"__has_include\s*\(\s*[<\"]([^>\"\r\n]+)[>\"]")
_CUDA_SCOPES = frozenset({b"cooperative_groups", b"cg", b"std", b"nvcuda", b"cuda"})


@dataclass(frozen=True, slots=True)
class OwnUse:
    """A use of a name that looks like CUDA's but is the code base's own."""

    token: Token
    own: OwnName


class OwnNames:
    """Which uses of a name in one file mean the code base's own definition."""

    def __init__(self, names: list[OwnName], path: str) -> None:
        self._by_name: dict[bytes, list[OwnName]] = {}
        for own in names:
            self._by_name.setdefault(own.name, []).append(own)
        self._path = path

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def find(self, name: bytes, at: int, qualifier: bytes | None) -> OwnName | None:
        """The definition that a use at an offset means, if any."""
        for own in self._by_name.get(name, ()):
            if own.scope is Scope.GLOBAL:
                if qualifier is None or qualifier == own.namespace:
                    return own
            elif own.region.start <= at < own.region.end:
                return own
        return None


def qualifier_of(tokens: list[Token], i: int) -> bytes | None:
    """What stands before ``::`` in front of token `i`: None for no qualifier, empty for ``::x``."""
    if i == 0 or tokens[i - 1].text != b"::":
        return None
    if i >= 2 and tokens[i - 2].kind is Kind.IDENT:
        return tokens[i - 2].text
    if i >= 2 and tokens[i - 2].text in (b">", b">>"):
        return b"<>"
    return b""


def name_changes(unit: Unit, context: Context) -> Iterator[Change | OwnUse]:
    """Renames of identifiers, and the uses that stay because the name is the code base's own."""
    renames = context.api.renames
    if (
        unit.identifiers.isdisjoint(renames)
        and not unit.identifiers & context.api.namespaces.keys()
    ):
        return
    own = OwnNames(context.project.own_names(unit.path), unit.path)
    tokens = unit.code_tokens
    for i, token in enumerate(tokens):
        if token.kind is not Kind.IDENT:
            continue
        target = renames.get(token.text)
        before = tokens[i - 1].text if i else b""
        if target is None or before in (b".", b"->"):
            continue
        qualifier = qualifier_of(tokens, i)
        mine = own.find(token.text, token.start, qualifier) if own else None
        if mine is not None:
            yield OwnUse(token, mine)
            continue
        if qualifier and qualifier not in _CUDA_SCOPES:
            continue
        row = context.api.row(token.text)
        yield Change(
            (Edit.replace(token.start, token.end, target),),
            label=row.library if row is not None else "runtime",
        )


def namespace_changes(unit: Unit, context: Context) -> Iterator[Change]:
    """Renames of namespaces: ``cub::X``, ``namespace n = cub``, ``using namespace cub``."""
    table = context.api.namespaces
    heads = {key.split(b"::")[0] for key in table}
    if unit.identifiers.isdisjoint(heads):
        return
    own = OwnNames(context.project.own_names(unit.path), unit.path)
    tokens = unit.code_tokens
    for i, token in enumerate(tokens):
        if token.kind is not Kind.IDENT or token.text not in heads:
            continue
        before = tokens[i - 1].text if i else b""
        if before in (b".", b"->"):
            continue
        if before == b"::" and i >= 2 and tokens[i - 2].kind is Kind.IDENT:
            continue
        after = tokens[i + 1].text if i + 1 < len(tokens) else b""
        names_it = after == b"::" or (before in (b"=", b"namespace") and after == b";")
        if not names_it or own.find(token.text, token.start, None):
            continue
        change = _longest(tokens, i, table)
        if change is not None:
            yield change


def _longest(tokens: list[Token], i: int, table: object) -> Change | None:
    """The change for the longest qualified name at token `i` that the table knows."""
    assert hasattr(table, "get")
    parts = [tokens[i].text]
    ends = [i]
    at = i
    while (
        at + 2 < len(tokens) and tokens[at + 1].text == b"::" and tokens[at + 2].kind is Kind.IDENT
    ):
        at += 2
        parts.append(tokens[at].text)
        ends.append(at)
    for length in range(len(parts), 0, -1):
        key = b"::".join(parts[:length])
        target = table.get(key)
        if target is None:
            continue
        if target == key:
            return None
        last = tokens[ends[length - 1]]
        new = target.split(b"::")
        if len(new) == length:
            edits = tuple(
                Edit.replace(tokens[e].start, tokens[e].end, part)
                for e, part, old in zip(ends[:length], new, parts[:length], strict=True)
                if part != old
            )
        else:
            edits = (Edit.replace(tokens[i].start, last.end, target),)
        return Change(edits, label=key.split(b"::")[0].decode())
    return None


def _is_own_header(unit: Unit, context: Context, quoted: bool, name: bytes) -> bool:
    """Whether an include names a file of the project rather than one of CUDA's."""
    if not quoted:
        return False
    text = name.decode("utf-8", "replace")
    near = posixpath.normpath(posixpath.join(posixpath.dirname(unit.path), text))
    if near in context.project.files:
        return True
    vendored = text.startswith(("cub/", "thrust/", "cuda/", "nv/"))
    return not vendored and any(
        path == text or path.endswith("/" + text) for path in context.project.files
    )


def header_changes(unit: Unit, context: Context) -> Iterator[Change]:
    """Renames of include paths."""
    headers = context.api.headers
    seen: set[bytes] = set()
    for token in unit.tokens:
        if token.kind is not Kind.HEADER:
            continue
        name = token.text[1:-1].strip()
        target = headers.get(name)
        if target is None or target == name:
            continue
        if _is_own_header(unit, context, token.text.startswith(b'"'), name):
            continue
        seen.add(target)
        start = token.start + 1 + (len(token.text[1:-1]) - len(token.text[1:-1].lstrip()))
        yield Change((Edit.replace(start, start + len(name), target),), label="headers")
    for match in _HAS_INCLUDE.finditer(unit.data):
        target = headers.get(match.group(1))
        if target is not None and target != match.group(1):
            span = Span(*match.span(1))
            yield Change((Edit(span, target),), label="headers")
