"""Cooperative groups and CUB's logical warps."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.warp.lanes import is_hip, value
from hipport.findings import Action, Finding, Severity
from hipport.parse.calls import matching
from hipport.parse.tokens import Kind, Token
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

_GROUP_SCOPES = frozenset({b"cg", b"cooperative_groups"})
_MISSING = frozenset(
    {b"inclusive_scan", b"exclusive_scan", b"labeled_partition", b"binary_partition",
     b"memcpy_async", b"invoke_one", b"invoke_one_broadcast", b"this_cluster", b"wait_prior",
     b"inclusive_scan_update", b"exclusive_scan_update"}
)  # fmt: skip
_MEMBERS = frozenset({b"any", b"all", b"ballot", b"match_any", b"match_all"})


def _span(first: Token, last: Token) -> Span:
    return Span(first.start, last.end)


def _uses_groups(unit: Unit) -> bool:
    return (
        b"cooperative_groups" in unit.identifiers
        or any(t.kind is Kind.HEADER and b"cooperative_groups" in t.text for t in unit.tokens)
        or b"tiled_partition" in unit.identifiers
    )


@check("cg-tile", "cg-missing", "cg-coalesced-width", "wave64-hardcoded")
def groups(unit: Unit, context: Context) -> Iterator[Finding]:
    """Tiles, coalesced groups, and what HIP's cooperative groups lack."""
    if not _uses_groups(unit) and not unit.identifiers & {b"coalesced_threads"}:
        return
    tokens = unit.code_tokens
    coalesced = set(re.findall(rb"(\w+)\s*=\s*(?:\w+::)?coalesced_threads\s*\(", unit.data))
    tiles = set(re.findall(rb"(\w+)\s*=\s*(?:\w+::)*tiled_partition\s*<", unit.data))
    for i, token in enumerate(tokens):
        if (
            token.text in (b"ballot", b"match_any")
            and i > 1
            and tokens[i - 1].text == b"."
            and (tokens[i - 2].text in coalesced)
        ):
            yield context.finding("cg-coalesced-width", unit, _span(token, token))
            continue
        if (
            token.text in _MEMBERS
            and i > 1
            and tokens[i - 1].text == b"."
            and (tokens[i - 2].text in tiles)
        ):
            yield context.finding(
                "cg-tile",
                unit,
                _span(token, token),
                action=Action.AUTO,
                severity=None if context.rocm < (6, 2) else Severity.INFO,
            )
            continue
        if token.kind is Kind.HEADER:
            path = token.text[1:-1]
            if path in (b"cooperative_groups/scan.h", b"cooperative_groups/memcpy_async.h") or (
                path == b"cooperative_groups/reduce.h" and context.rocm < (7, 13)
            ):
                yield context.finding(
                    "cg-missing",
                    unit,
                    _span(token, token),
                    name=path.decode(),
                    severity=Severity.INFO,
                )
            continue
        if token.kind is not Kind.IDENT:
            continue
        before = tokens[i - 1].text if i else b""
        scope = tokens[i - 2].text if i > 1 and before == b"::" else b""
        if (
            token.text in (b"tiled_partition", b"thread_block_tile")
            and i + 2 < len(tokens)
            and (tokens[i + 1].text == b"<")
        ):
            if before != b"::" or scope in _GROUP_SCOPES:
                yield from _tile(unit, context, tokens, i)
        elif (
            token.text == b"coalesced_threads"
            and i + 1 < len(tokens)
            and tokens[i + 1].text == b"("
            and (scope in _GROUP_SCOPES or before in (b"=", b"return", b"(", b","))
        ):
            yield context.finding("cg-coalesced-width", unit, _span(token, token))
        elif token.text in _MISSING and scope in _GROUP_SCOPES:
            yield context.finding(
                "cg-missing", unit, _span(token, token), name=f"cg::{token.text.decode()}"
            )
        elif token.text == b"reduce" and scope in _GROUP_SCOPES:
            yield from _reduce(unit, context, tokens, i)


def _tile(unit: Unit, context: Context, tokens: list[Token], i: int) -> Iterator[Finding]:
    size = value(tokens[i + 2].text, unit, context)
    if size == 64:
        yield context.finding(
            "wave64-hardcoded",
            unit,
            _span(tokens[i], tokens[i + 2]),
            what="a tile of 64 lanes",
            name="tiled_partition",
        )
    elif tokens[i].text == b"tiled_partition" and size == 32:
        yield context.finding(
            "cg-tile",
            unit,
            _span(tokens[i], tokens[i + 2]),
            action=Action.AUTO,
            severity=Severity.INFO,
        )


_OPERATORS = {
    b"plus": b"hipport_plus", b"less": b"hipport_less", b"greater": b"hipport_greater",
    b"bit_and": b"hipport_bit_and", b"bit_or": b"hipport_bit_or", b"bit_xor": b"hipport_bit_xor",
}  # fmt: skip


def _reduce(unit: Unit, context: Context, tokens: list[Token], i: int) -> Iterator[Finding]:
    """``cg::reduce(tile, value, cg::plus<T>())`` becomes a function of the generated header."""
    change = None
    close = matching(tokens, i + 1) if i + 1 < len(tokens) and tokens[i + 1].text == b"(" else None
    if close is not None:
        edits = [Edit.replace(tokens[i - 2].start, tokens[i].end, b"hipport_reduce")]
        known = False
        for at in range(i + 2, close):
            if (
                tokens[at].text in _OPERATORS
                and tokens[at - 1].text == b"::"
                and (tokens[at - 2].text in _GROUP_SCOPES)
            ):
                known = True
                edits.append(
                    Edit.replace(tokens[at - 2].start, tokens[at].end, _OPERATORS[tokens[at].text])
                )
        if known:
            change = Change(
                tuple(edits), priority=10, needs=('"hipport_warp.h"',), label="wavefront"
            )
    yield context.finding(
        "cg-missing",
        unit,
        _span(tokens[i], tokens[i]),
        change=change,
        action=Action.AUTO if change is not None else Action.FLAG,
        name="cg::reduce",
    )


_CUB = {b"WarpReduce": 1, b"WarpScan": 1, b"WarpExchange": 2, b"WarpMergeSort": 2}
_CUB_OTHER = {b"WarpLoad": 3, b"WarpStore": 3}


@check("cub-logical-warp")
def cub(unit: Unit, context: Context) -> Iterator[Finding]:
    """CUB's warp primitives are 32 wide by default, hipCUB's as wide as the device's wavefront."""
    names = unit.identifiers & (_CUB.keys() | _CUB_OTHER.keys())
    if not names or (is_hip(unit, context) and b"cub" not in unit.identifiers):
        return
    tokens = unit.code_tokens
    for i, token in enumerate(tokens[:-2]):
        if token.text not in names or tokens[i + 1].text != b"<":
            continue
        scope = tokens[i - 2].text if i > 1 and tokens[i - 1].text == b"::" else b""
        if scope != b"cub" and not re.search(rb"using\s+namespace\s+cub|using\s+cub::", unit.data):
            continue
        end, count = _arguments(tokens, i + 1)
        if end is None:
            continue
        least = _CUB.get(token.text)
        if least is not None and count == least:
            change = Change(
                (Edit.insert(tokens[end].start, b", 32"),), priority=10, label="wavefront"
            )
            yield context.finding(
                "cub-logical-warp",
                unit,
                _span(token, token),
                change=change,
                name=token.text.decode(),
            )
        elif token.text in _CUB_OTHER and count < 4:
            yield context.finding(
                "cub-logical-warp",
                unit,
                _span(token, token),
                action=Action.FLAG,
                name=token.text.decode(),
            )


def _arguments(tokens: list[Token], opening: int) -> tuple[int | None, int]:
    """Index of the token that closes a template list, and the number of its arguments."""
    depth, count = 0, 1
    for at in range(opening, min(len(tokens), opening + 200)):
        text = tokens[at].text
        if text == b"<":
            depth += 1
        elif text == b">":
            depth -= 1
            if depth == 0:
                return at, count
        elif text == b">>":
            if depth <= 2:
                return None, count
            depth -= 2
        elif text == b"," and depth == 1:
            count += 1
        elif text in (b";", b"{", b"}"):
            return None, count
    return None, count
