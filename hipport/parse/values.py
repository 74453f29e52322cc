"""Integer values of C expressions, as far as literals and the project's constants tell."""

from __future__ import annotations

import re

from hipport.parse.conditions import _apply
from hipport.parse.facts import ProjectFacts
from hipport.parse.tokens import Kind, Token, tokenize

SIZES: dict[bytes, int] = {
    b"char": 1, b"bool": 1, b"int8_t": 1, b"uint8_t": 1, b"uchar": 1, b"unsigned char": 1,
    b"short": 2, b"unsigned short": 2, b"int16_t": 2, b"uint16_t": 2, b"half": 2, b"__half": 2,
    b"__nv_bfloat16": 2, b"nv_bfloat16": 2, b"int": 4, b"unsigned": 4, b"unsigned int": 4,
    b"uint": 4, b"float": 4, b"int32_t": 4, b"uint32_t": 4, b"half2": 4, b"__half2": 4,
    b"double": 8, b"long": 8, b"long long": 8, b"unsigned long": 8, b"unsigned long long": 8,
    b"int64_t": 8, b"uint64_t": 8, b"size_t": 8, b"float2": 8, b"int2": 8, b"uint2": 8,
    b"float3": 12, b"int3": 12, b"float4": 16, b"int4": 16, b"uint4": 16, b"double2": 16,
    b"longlong2": 16, b"double4": 32,
}  # fmt: skip
"""Bytes of the types that shared arrays are made of."""

_RANK = {
    b"|": 1, b"^": 2, b"&": 3, b"==": 4, b"!=": 4, b"<": 5, b">": 5, b"<=": 5, b">=": 5,
    b"<<": 6, b">>": 6, b"+": 7, b"-": 7, b"*": 8, b"/": 8, b"%": 8,
}  # fmt: skip
_CAST_WORDS = frozenset(
    b"int unsigned long short char size_t uint32_t int32_t uint64_t int64_t signed const".split()
)
_NUMBER = re.compile(rb"(0[xX][0-9a-fA-F']+|0[bB][01']+|[0-9][0-9']*)[uUlLzZ]*\Z")


class _Evaluator:
    def __init__(self, path: str, project: ProjectFacts) -> None:
        self.path = path
        self.project = project
        self.asked: set[bytes] = set()

    def of_text(self, text: bytes) -> int | None:
        tokens = [t for t in tokenize(text) if t.kind is not Kind.COMMENT]
        value, at = self.binary(tokens, 0, 1)
        return value if at == len(tokens) else None

    def of_name(self, name: bytes) -> int | None:
        if name in self.asked or name in self.project.parameter_names(self.path):
            return None
        self.asked.add(name)
        try:
            texts = {m.body for m in self.project.macros(self.path, name) if m.params is None}
            texts |= {c.value for c in self.project.constants(self.path, name)}
            values = {self.of_text(text) for text in texts}
        finally:
            self.asked.discard(name)
        return values.pop() if len(values) == 1 else None

    def binary(self, tokens: list[Token], at: int, least: int) -> tuple[int | None, int]:
        left, at = self.primary(tokens, at)
        while at < len(tokens) and _RANK.get(tokens[at].text, 0) >= least:
            operator = tokens[at].text
            right, at = self.binary(tokens, at + 1, _RANK[operator] + 1)
            left = _apply(operator, left, right)
        return left, at

    def primary(self, tokens: list[Token], at: int) -> tuple[int | None, int]:
        if at >= len(tokens):
            return None, at
        token = tokens[at]
        text = token.text
        if text == b"(":
            inner = at + 1
            while inner < len(tokens) and tokens[inner].text in _CAST_WORDS:
                inner += 1
            if inner > at + 1 and inner < len(tokens) and tokens[inner].text == b")":
                return self.primary(tokens, inner + 1)
            value, at = self.binary(tokens, at + 1, 1)
            return (value, at + 1) if at < len(tokens) and tokens[at].text == b")" else (None, at)
        if text in (b"-", b"~", b"+", b"!"):
            value, at = self.primary(tokens, at + 1)
            if value is None:
                return None, at
            return {b"-": -value, b"~": ~value, b"!": int(not value)}.get(text, value), at
        if token.kind is Kind.NUMBER:
            match = _NUMBER.match(text)
            if match is None:
                return None, at + 1
            digits = match.group(1).replace(b"'", b"")
            octal = len(digits) > 1 and digits[:1] == b"0" and digits.isdigit()
            try:
                return int(digits, 8 if octal else 0), at + 1
            except ValueError:
                return None, at + 1
        if text == b"sizeof" and at + 1 < len(tokens) and tokens[at + 1].text == b"(":
            close = at + 2
            while close < len(tokens) and tokens[close].text != b")":
                close += 1
            words = b" ".join(t.text for t in tokens[at + 2 : close] if t.text != b"const")
            pointer = words.endswith(b"*")
            return (8 if pointer else SIZES.get(words)), close + 1
        if token.kind is Kind.IDENT:
            while (
                at + 2 < len(tokens)
                and tokens[at + 1].text == b"::"
                and tokens[at + 2].kind is Kind.IDENT
            ):
                at += 2
            text = tokens[at].text
            follows = tokens[at + 1].text if at + 1 < len(tokens) else b""
            if follows in (b"(", b"::", b"<", b".", b"->", b"["):
                return None, len(tokens) + 1
            return self.of_name(text), at + 1
        return None, at + 1


def evaluate(text: bytes, path: str, project: ProjectFacts) -> int | None:
    """The value of an integer expression as seen from a file; None where it is not known.

    A name counts only if all its definitions that the file may see agree.
    """
    return _Evaluator(path, project).of_text(text)
