"""CUDA names without counterpart."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.findings import Finding
from hipport.parse.tokens import Kind, directive_name
from hipport.parse.unit import Unit
from hipport.source import Span

# Device functions like `saturate` and `mulhi` are words that code bases use for their own.
_WORD = re.compile(rb"(?!cu|nv)[a-z][a-z0-9]*")


@check("no-hip-equivalent")
def unmapped(unit: Unit, context: Context) -> Iterator[Finding]:
    """Names and headers that the tables know and the chosen ROCm version lacks."""
    from hipport.convert.names import OwnNames, qualifier_of

    table = context.api.unmapped
    own = OwnNames(context.project.own_names(unit.path), unit.path)
    tokens = unit.code_tokens
    seen: set[tuple[bytes, int]] = set()
    asked = False
    for i, token in enumerate(tokens):
        if token.kind is Kind.DIRECTIVE:
            asked = directive_name(token) in (b"ifdef", b"ifndef", b"if", b"elif", b"undef")
            asked_line = unit.line(token.start)
            continue
        name = token.text
        if token.kind is Kind.HEADER:
            name = name[1:-1].strip()
        elif token.kind is not Kind.IDENT:
            continue
        row = table.get(name)
        if token.kind is Kind.IDENT and _WORD.fullmatch(name):
            continue
        if row is None or (row.kind == "header") != (token.kind is Kind.HEADER):
            continue
        line = unit.line(token.start)
        if (name, line) in seen or (asked and line == asked_line):
            continue
        if token.kind is Kind.IDENT:
            if i and tokens[i - 1].text in (b".", b"->"):
                continue
            qualifier = qualifier_of(tokens, i)
            if qualifier or own.find(name, token.start, qualifier):
                continue
        seen.add((name, line))
        replacement = row.replacement
        yield context.finding(
            "no-hip-equivalent",
            unit,
            Span(token.start, token.end),
            name=name.decode("utf-8", "replace"),
            library=row.library,
            rocm=context.api.rocm,
            replacement=f"; nearest: {replacement}" if replacement else "",
        )
