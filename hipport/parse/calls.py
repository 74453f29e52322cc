"""Calls found by tokens alone: also in macro bodies, untaken branches and text with errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from hipport.parse.tokens import Kind, Token, directive_name
from hipport.parse.unit import Unit
from hipport.source import Span

_OPEN = {b"(": b")", b"[": b"]", b"{": b"}"}
_CLOSE = frozenset(_OPEN.values())
_LIMIT = 20_000


@dataclass(frozen=True, slots=True)
class TokenCall:
    """``name(arguments)``. `open` and `close` are the offsets of the parentheses."""

    name: Token
    index: int
    open: int
    close: int
    arguments: tuple[Span, ...]


def _template_end(tokens: list[Token], i: int) -> int | None:
    """Index behind a template argument list that starts at token `i` (``<``), if it is one."""
    depth, at = 0, i
    while at < len(tokens) and at - i < 200:
        text = tokens[at].text
        if text == b"<":
            depth += 1
        elif text == b">":
            depth -= 1
        elif text == b">>":
            depth -= 2
        elif text in _OPEN:
            close = matching(tokens, at)
            if close is None:
                return None
            at = close
        elif text in (b";", b"{", b"}", b"&&", b"||") or text in _CLOSE:
            return None
        at += 1
        if depth <= 0:
            return at if depth == 0 else None
    return None


def matching(tokens: list[Token], i: int) -> int | None:
    """Index of the token that closes the bracket at `i`; None where nothing fitting follows."""
    stack: list[bytes] = []
    for at in range(i, min(len(tokens), i + _LIMIT)):
        text = tokens[at].text
        if tokens[at].kind is not Kind.PUNCT:
            continue
        if text in _OPEN:
            stack.append(_OPEN[text])
        elif text in _CLOSE:
            if not stack or stack.pop() != text:
                return None
            if not stack:
                return at
    return None


def split_arguments(tokens: list[Token], first: int, close: int) -> tuple[Span, ...]:
    """Spans of the comma-separated arguments between token `first` and the closing token."""
    spans: list[Span] = []
    start: int | None = None
    at = first
    last_end = tokens[first - 1].end
    while at < close:
        token = tokens[at]
        if token.text == b"," and token.kind is Kind.PUNCT:
            spans.append(
                Span(start if start is not None else token.start, last_end)
                if start is not None
                else Span(token.start, token.start)
            )
            start = None
            at += 1
            continue
        if start is None:
            start = token.start
        if token.kind is Kind.PUNCT and token.text in _OPEN:
            at = matching(tokens, at) or at
        elif token.text == b"<" and at and tokens[at - 1].kind is Kind.IDENT:
            behind = _template_end(tokens, at)
            follows = tokens[behind].text if behind is not None and behind < len(tokens) else b""
            # A comparison chain may look like a template list; a list is followed by one of these.
            if (
                behind is not None
                and behind <= close
                and follows in (b"(", b")", b",", b"::", b"{", b"<<<", b"*", b"&", b">")
            ):
                at = behind - 1
        last_end = tokens[at].end
        at += 1
    if start is not None:
        spans.append(Span(start, last_end))
    return tuple(spans)


def find_calls(unit: Unit, names: Collection[bytes]) -> Iterator[TokenCall]:
    """Calls of the given names, in order; member calls and declarations are not told apart."""
    if not unit.identifiers.intersection(names):
        return
    tokens = unit.code_tokens
    for i, token in enumerate(tokens):
        if token.kind is not Kind.IDENT or token.text not in names:
            continue
        if (
            i
            and tokens[i - 1].kind is Kind.DIRECTIVE
            and (directive_name(tokens[i - 1]) in (b"define", b"undef", b"ifdef", b"ifndef"))
        ):
            continue
        at = i + 1
        if at < len(tokens) and tokens[at].text == b"<":
            at = _template_end(tokens, at) or at
        if at >= len(tokens) or tokens[at].text != b"(":
            continue
        close = matching(tokens, at)
        if close is None:
            continue
        yield TokenCall(
            token, i, tokens[at].start, tokens[close].start, split_arguments(tokens, at + 1, close)
        )
