"""``__CUDACC__`` and ``__NVCC__``: clang defines neither for HIP."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.findings import Finding
from hipport.parse.conditions import chains
from hipport.parse.tokens import Kind, Token, directive_name
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

_MACROS = frozenset({b"__CUDACC__", b"__NVCC__"})
_KNOWS_HIP = re.compile(
    rb"__HIP__|__HIPCC__|__HIP_PLATFORM|__HIP_DEVICE_COMPILE__|\bUSE_ROCM\b"
    rb"|\bUSE_HIP\b|TENSORFLOW_USE_ROCM|\b__HIP"
)
_NEWLINE = re.compile(rb"(?<!\\)\r?\n")


def _line_tokens(unit: Unit, i: int) -> list[Token]:
    """Tokens of the directive at index `i`, continued lines included."""
    tokens = unit.code_tokens
    start = tokens[i].start
    end_match = _NEWLINE.search(unit.data, start)
    end = end_match.start() if end_match else len(unit.data)
    found = []
    while i < len(tokens) and tokens[i].start < end:
        found.append(tokens[i])
        i += 1
    return found


@check("cudacc-guard")
def cudacc_guard(unit: Unit, context: Context) -> Iterator[Finding]:
    """Conditions on the compiler being nvcc get ``|| defined(__HIPCC__)``.

    A chain of conditions that deals with HIP in any of its branches is left alone: widening one in
    front of HIP's own would hide that.
    """
    if unit.identifiers.isdisjoint(_MACROS):
        return
    tokens = unit.code_tokens
    handled = _handled(unit)
    chain_knows_hip: list[bool] = []
    for i, token in enumerate(tokens):
        if token.kind is not Kind.DIRECTIVE:
            continue
        word = directive_name(token)
        if word == b"endif":
            if chain_knows_hip:
                chain_knows_hip.pop()
            continue
        if word not in (b"if", b"ifdef", b"ifndef", b"elif"):
            continue
        line = _line_tokens(unit, i)
        condition = unit.data[token.start : line[-1].end]
        knows = _KNOWS_HIP.search(condition) is not None
        if word != b"elif":
            chain_knows_hip.append(False)
        known = knows or bool(chain_knows_hip and chain_knows_hip[-1])
        if chain_knows_hip:
            chain_knows_hip[-1] = known
        if known or token.start in handled:
            continue
        yield from _one(unit, context, word, token, line)


def _handled(unit: Unit) -> set[int]:
    """Where the directives of those chains begin that ask about HIP in some branch."""
    found: set[int] = set()
    for chain in chains(unit):
        heads = [b.condition for b in chain.branches if b.condition is not None]
        if any(_KNOWS_HIP.search(unit.data, c.head.start, c.end) for c in heads):
            found.update(c.head.start for c in heads)
    return found


def _one(
    unit: Unit, context: Context, word: bytes, head: Token, line: list[Token]
) -> Iterator[Finding]:
    named = [t for t in line if t.kind is Kind.IDENT and t.text in _MACROS]
    if not named:
        return
    edits: list[Edit] = []
    if word in (b"ifdef", b"ifndef"):
        name = named[0]
        no = b"!" if word == b"ifndef" else b""
        joint = b" && " if no else b" || "
        edits.append(
            Edit.replace(
                head.start,
                name.end,
                b"#if " + no + b"defined(" + name.text + b")" + joint + no + b"defined(__HIPCC__)",
            )
        )
        named = named[:1]
    else:
        edits.extend(_in_expression(line, named))
    change = Change(tuple(edits), priority=10, label="cudacc-guard")
    yield context.finding(
        "cudacc-guard",
        unit,
        Span(named[0].start, named[0].end),
        change=change,
        macro=named[0].text.decode(),
    )


def _in_expression(line: list[Token], named: list[Token]) -> Iterator[Edit]:
    """Edits for a condition: the first mention is widened, negated ones are narrowed."""
    for name in named:
        i = line.index(name)
        start, end = i, i
        if i >= 2 and line[i - 1].text == b"(" and line[i - 2].text == b"defined":
            start, end = i - 2, i + 1
        elif i >= 1 and line[i - 1].text == b"defined":
            start = i - 1
        else:
            yield Edit.replace(
                name.start, name.end, b"(defined(" + name.text + b") || defined(__HIPCC__))"
            )
            continue
        if end >= len(line):
            continue
        begin, stop = line[start].start, line[end].end
        whole = start == 1 and end == len(line) - 1
        negated = start >= 1 and line[start - 1].text == b"!"
        if negated:
            yield Edit.replace(
                line[start - 1].start,
                stop,
                b"!(defined(" + name.text + b") || defined(__HIPCC__))",
            )
            continue
        before, after = (b"", b"") if whole else (b"(", b")")
        yield Edit.replace(
            begin, stop, before + b"defined(" + name.text + b") || defined(__HIPCC__)" + after
        )
