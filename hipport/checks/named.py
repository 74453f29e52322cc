"""Classes that a name alone tells: their triggers are data in the hazard entries."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import on_device
from hipport.findings import Finding
from hipport.parse.facts import OwnName
from hipport.parse.tokens import Kind, Token
from hipport.parse.unit import Unit
from hipport.rules.hazards import Hazard, load
from hipport.source import Span


@dataclass(frozen=True)
class _Triggers:
    names: Mapping[bytes, tuple[str, ...]]
    prefixes: tuple[tuple[bytes, str], ...]
    starts: tuple[bytes, ...]
    headers: tuple[tuple[str, str], ...]
    namespaces: Mapping[bytes, str]


def slugs() -> tuple[str, ...]:
    """Slugs whose entries have triggers."""
    return tuple(
        slug for slug, h in load().items() if h.names or h.prefixes or h.headers or h.namespaces
    )


@lru_cache(maxsize=1)
def _triggers() -> _Triggers:
    names: dict[bytes, tuple[str, ...]] = {}
    prefixes: list[tuple[bytes, str]] = []
    headers: list[tuple[str, str]] = []
    namespaces: dict[bytes, str] = {}
    for slug, hazard in load().items():
        for name in hazard.names:
            names[name.encode()] = (*names.get(name.encode(), ()), slug)
        prefixes.extend((p.encode(), slug) for p in hazard.prefixes)
        headers.extend((h, slug) for h in hazard.headers)
        namespaces.update((n.encode(), slug) for n in hazard.namespaces)
    starts = tuple(p for p, _ in prefixes)
    return _Triggers(names, tuple(prefixes), starts, tuple(headers), namespaces)


def _slugs(token: Token, before: bytes, after: bytes, triggers: _Triggers) -> tuple[str, ...]:
    if token.kind is Kind.HEADER:
        path = token.text[1:-1].strip().decode("utf-8", "replace")
        return tuple(slug for glob, slug in triggers.headers if fnmatchcase(path, glob))[:1]
    if token.kind is not Kind.IDENT:
        return ()
    if after == b"::" and token.text in triggers.namespaces and before != b"::":
        return (triggers.namespaces[token.text],)
    found = triggers.names.get(token.text)
    if found is not None:
        return found
    if not token.text.startswith(triggers.starts):
        return ()
    for prefix, slug in triggers.prefixes:
        if token.text.startswith(prefix) and (
            prefix[-1:].isupper()
            or prefix.startswith((b"__", b"cusolver", b"CU"))
            or re.match(rb"[A-Z]", token.text[len(prefix) :])
        ):
            return (slug,)
    return ()


def _right_side(unit: Unit, hazard: Hazard, token: Token) -> bool:
    if not hazard.where:
        return True
    node = unit.tree.root_node.descendant_for_byte_range(token.start, token.end)
    return node is not None and on_device(unit, node) == (hazard.where == "device")


def _is_own(own: list[OwnName], declared: frozenset[bytes], token: Token) -> bool:
    return token.text in declared or any(
        o.name == token.text and o.region.start <= token.start < o.region.end for o in own
    )


def _may_trigger(unit: Unit, triggers: _Triggers) -> bool:
    known = unit.identifiers
    if not known.isdisjoint(triggers.names) or not known.isdisjoint(triggers.namespaces):
        return True
    return bool(triggers.headers) or any(name.startswith(triggers.starts) for name in known)


@check(*slugs())
def named(unit: Unit, context: Context) -> Iterator[Finding]:
    """One finding a name and line; member accesses and the code base's own names are left out."""
    triggers = _triggers()
    if not _may_trigger(unit, triggers):
        return
    own = context.project.own_names(unit.path)
    tokens = unit.code_tokens
    declared = frozenset(
        f.name
        for path in context.project.closure(unit.path)
        if path in context.project.files
        for f in context.project.files[path].functions
    )
    seen: set[tuple[str, int]] = set()
    whole: set[tuple[str, Kind]] = set()
    for i, token in enumerate(tokens):
        after = tokens[i + 1].text if i + 1 < len(tokens) else b""
        before = tokens[i - 1] if i else None
        found = _slugs(token, before.text if before is not None else b"", after, triggers)
        if not found:
            continue
        if token.kind is Kind.IDENT and (
            (before is not None and before.text in (b".", b"->", b"struct", b"class", b"enum"))
            or _is_own(own, declared, token)
        ):
            continue
        line = unit.line(token.start)
        text = token.text.strip(b'<>"').decode("utf-8", "replace")
        for slug in found:
            hazard = context.hazards[slug]
            if (slug, line) in seen or (hazard.once and (slug, token.kind) in whole):
                continue
            if not _right_side(unit, hazard, token):
                continue
            seen.add((slug, line))
            whole.add((slug, token.kind))
            yield context.finding(slug, unit, Span(token.start, token.end), name=text, what=text)
