"""Preprocessor conditions: what they test, and which branches live under given definitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hipport.parse.tokens import Kind, Token, directive_name
from hipport.parse.unit import Unit
from hipport.source import Span

Value = int | None
"""A condition's value; None where it depends on something unknown."""

UNDEFINED = "undefined"
Env = Mapping[bytes, "int | str"]
"""Known macros: a number, or `UNDEFINED`. Every other name is unknown."""

_NEWLINE = re.compile(rb"(?<!\\)\r?\n")
_PRECEDENCE: dict[bytes, int] = {
    b"||": 1, b"&&": 2, b"|": 3, b"^": 4, b"&": 5, b"==": 6, b"!=": 6,
    b"<": 7, b">": 7, b"<=": 7, b">=": 7, b"<<": 8, b">>": 8,
    b"+": 9, b"-": 9, b"*": 10, b"/": 10, b"%": 10,
}  # fmt: skip


class _Parser:
    """Evaluates by precedence climbing; anything odd makes the value unknown."""

    def __init__(self, tokens: list[Token], env: Env) -> None:
        self.tokens = tokens
        self.env = env
        self.at = 0

    def peek(self) -> bytes:
        return self.tokens[self.at].text if self.at < len(self.tokens) else b""

    def take(self) -> bytes:
        text = self.peek()
        self.at += 1
        return text

    def name(self, text: bytes) -> Value:
        known = self.env.get(text)
        if known is None:
            return None
        return 0 if known == UNDEFINED else int(known)

    def defined(self, text: bytes) -> Value:
        known = self.env.get(text)
        return None if known is None else int(known != UNDEFINED)

    def primary(self) -> Value:
        if self.at >= len(self.tokens):
            return None
        token = self.tokens[self.at]
        self.at += 1
        text = token.text
        if text == b"(":
            value = self.binary(1)
            if self.peek() == b")":
                self.at += 1
            return value
        if text == b"!":
            value = self.primary()
            return None if value is None else int(not value)
        if text in (b"-", b"+", b"~"):
            value = self.primary()
            if value is None:
                return None
            return -value if text == b"-" else ~value if text == b"~" else value
        if text == b"defined":
            inner = self.take()
            if inner == b"(":
                inner = self.take()
                if self.peek() == b")":
                    self.at += 1
            return self.defined(inner)
        if token.kind is Kind.NUMBER:
            return _number(text)
        if token.kind is Kind.IDENT:
            if self.peek() == b"(":
                self._skip_call()
                return None
            return self.name(text)
        return None

    def _skip_call(self) -> None:
        depth = 0
        while self.at < len(self.tokens):
            text = self.take()
            depth += (text == b"(") - (text == b")")
            if depth == 0:
                return

    def binary(self, least: int) -> Value:
        left = self.primary()
        while True:
            operator = self.peek()
            rank = _PRECEDENCE.get(operator, 0)
            if rank < least:
                if operator == b"?" and least <= 1:
                    return self._ternary(left)
                return left
            self.at += 1
            right = self.binary(rank + 1)
            left = _apply(operator, left, right)

    def _ternary(self, condition: Value) -> Value:
        self.at += 1
        first = self.binary(1)
        if self.peek() == b":":
            self.at += 1
        second = self.binary(1)
        if condition is None:
            return first if first == second else None
        return first if condition else second


def _number(text: bytes) -> Value:
    digits = text.replace(b"'", b"").rstrip(b"uUlLzZ")
    try:
        if digits[:1] == b"0" and digits[1:2] not in (b"x", b"X", b"b", b"B", b""):
            return int(digits, 8)
        return int(digits, 0)
    except ValueError:
        return None


def _apply(operator: bytes, left: Value, right: Value) -> Value:
    if operator == b"&&":
        if left == 0 or right == 0:
            return 0
        return None if left is None or right is None else 1
    if operator == b"||":
        if left or right:
            return 1
        return None if left is None or right is None else 0
    if left is None or right is None:
        return None
    if operator in (b"/", b"%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == b"/" else left - quotient * right
    if operator in (b"<<", b">>"):
        if not 0 <= right < 64:
            return None
        return left << right if operator == b"<<" else left >> right
    table = {
        b"|": left | right, b"^": left ^ right, b"&": left & right,
        b"==": int(left == right), b"!=": int(left != right), b"<": int(left < right),
        b">": int(left > right), b"<=": int(left <= right), b">=": int(left >= right),
        b"+": left + right, b"-": left - right, b"*": left * right,
    }  # fmt: skip
    return table[operator]


@dataclass(frozen=True)
class Condition:
    """One ``#if``, ``#ifdef``, ``#ifndef`` or ``#elif`` line.

    `tokens` are those behind the directive's word; `end` is where the line's text ends.
    """

    word: bytes
    head: Token
    tokens: tuple[Token, ...]

    @property
    def end(self) -> int:
        """Offset behind the last token."""
        return self.tokens[-1].end if self.tokens else self.head.end

    def names(self) -> frozenset[bytes]:
        """Identifiers that the condition asks about."""
        return frozenset(
            t.text for t in self.tokens if t.kind is Kind.IDENT and t.text != b"defined"
        )

    def value(self, env: Env) -> Value:
        """The condition's truth (0, 1, or None for unknown)."""
        tokens = list(self.tokens)
        parser = _Parser(tokens, env)
        if self.word in (b"ifdef", b"elifdef", b"ifndef", b"elifndef"):
            if not tokens:
                return None
            known = parser.defined(tokens[0].text)
            if known is None or self.word in (b"ifdef", b"elifdef"):
                return known
            return int(not known)
        value = parser.binary(1)
        return None if value is None or parser.at < len(tokens) else int(bool(value))


@dataclass(frozen=True)
class Branch:
    """One branch of a chain; `condition` is None for ``#else``. `body` excludes directive lines."""

    condition: Condition | None
    body: Span


@dataclass(frozen=True)
class Chain:
    """A whole ``#if … #endif``."""

    branches: tuple[Branch, ...]
    span: Span


_OPENING = frozenset({b"if", b"ifdef", b"ifndef"})
_MIDDLE = frozenset({b"elif", b"elifdef", b"elifndef", b"else"})


def chains(unit: Unit) -> list[Chain]:
    """All conditional chains of a file, inner ones before the outer; unbalanced ones left out."""
    data, tokens = unit.data, unit.code_tokens
    stack: list[list[tuple[Condition | None, int, int]]] = []
    done: list[Chain] = []
    for i, token in enumerate(tokens):
        if token.kind is not Kind.DIRECTIVE:
            continue
        word = directive_name(token)
        if word not in _OPENING and word not in _MIDDLE and word != b"endif":
            continue
        line_end = _NEWLINE.search(data, token.start)
        end = line_end.end() if line_end else len(data)
        if word == b"endif":
            if not stack:
                continue
            parts = stack.pop()
            stops = [start for _, start, _ in parts[1:]] + [token.start]
            branches = tuple(
                Branch(condition, Span(min(body, stop), stop))
                for (condition, _, body), stop in zip(parts, stops, strict=True)
            )
            done.append(Chain(branches, Span(parts[0][1], end)))
            continue
        condition = None
        if word != b"else":
            at = i + 1
            line: list[Token] = []
            while at < len(tokens) and tokens[at].start < end:
                line.append(tokens[at])
                at += 1
            condition = Condition(word, token, tuple(line))
        if word in _OPENING:
            stack.append([(condition, token.start, end)])
        elif stack:
            stack[-1].append((condition, token.start, end))
    return done


HIP_ENV: Env = {
    b"__HIP__": 1, b"__HIPCC__": 1, b"__HIP_PLATFORM_AMD__": 1, b"__HIP_PLATFORM_HCC__": 1,
    b"__HIP_PLATFORM_NVIDIA__": UNDEFINED, b"__HIP_PLATFORM_NVCC__": UNDEFINED,
    b"USE_ROCM": 1, b"USE_HIP": 1, b"TENSORFLOW_USE_ROCM": 1, b"GGML_USE_HIP": 1,
    b"GGML_USE_HIPBLAS": 1, b"__AMDGCN__": 1, b"ENABLE_HIP": 1, b"WITH_HIP": 1,
    b"WITH_ROCM": 1, b"HAVE_HIP": 1, b"ENABLE_ROCM": 1, b"HAVE_ROCM": 1, b"FBGEMM_USE_ROCM": 1,
    b"CUDA_USE_HIP": 1, b"PADDLE_WITH_HIP": 1, b"PADDLE_WITH_ROCM": 1, b"MMCV_WITH_HIP": 1,
    b"HIP_DIOPI": 1, b"XGBOOST_USE_HIP": 1, b"USE_AMD": 1,
}  # fmt: skip
"""How code that knows HIP already says so."""


def dead_on_hip(unit: Unit) -> list[Span]:
    """Bodies that are not compiled for HIP because the file itself chooses another branch there.

    Only chains that ask about HIP (`HIP_ENV`) say anything: a branch that is false for HIP, a
    branch behind one that is true, and a branch of unknown condition in front of one that asks
    for HIP and gets it.
    """
    dead: list[Span] = []
    for chain in chains(unit):
        values: list[Value] = []
        asks = False
        for branch in chain.branches:
            condition = branch.condition
            if condition is None:
                values.append(1)
                continue
            about_hip = not condition.names().isdisjoint(HIP_ENV)
            asks = asks or about_hip
            values.append(condition.value(HIP_ENV) if about_hip else None)
        if not asks:
            continue
        taken = next(
            (
                i
                for i, (branch, value) in enumerate(zip(chain.branches, values, strict=True))
                if value and branch.condition is not None
            ),
            None,
        )
        for i, (branch, value) in enumerate(zip(chain.branches, values, strict=True)):
            if value == 0 or (taken is not None and i != taken):
                dead.append(branch.body)
    return sorted(dead)
