"""A lexer for C, C++ and CUDA: byte-exact, total, and indifferent to what the code means.

Every byte of the input lies in exactly one token or in white space between tokens, whatever the
input: broken literals end at the line's end, unknown bytes are punctuation of one byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What a token is."""

    IDENT = 1
    NUMBER = 2
    STRING = 3
    CHAR = 4
    COMMENT = 5
    PUNCT = 6
    DIRECTIVE = 7
    """``#define`` and its kin: the hash and the word; the rest of the line is ordinary tokens."""
    HEADER = 8
    """What an include names, with its brackets or quotes."""


class Token(NamedTuple):
    """One token: its kind and its byte range."""

    kind: Kind
    start: int
    end: int
    text: bytes


# The order of the alternatives is the order of precedence.
_TOKEN = re.compile(
    rb"""
    ((?!(?:u8|[uUL])?(?:R?"|'))[A-Za-z_$\x80-\xff][\w$\x80-\xff]*)
    |(<<<|>>>|<=>|->\*|\.\.\.|<<=|>>=|::|->|\+\+|--|<<|<=|>=|==|!=|&&|\|\||[-+*%&|^]=
        |/=|\#\#|[-(){};,<>=*&+.:!|?%^\[\]~]
            (?<![.](?=[0-9])))
    |(\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[\w.])*)
    |(//(?:[^\\\n\r]|\\(?:\r\n|[\s\S])|\\\Z)*
        |/\*.*?(?:\*/|\Z))
    |((?:u8|[uUL])?R"(?P<delim>[^()\\\s"]{0,16})\(.*?\)(?P=delim)"
        |(?:u8|[uUL])?"(?:[^"\\\n\r]|\\(?:\r\n|[\s\S]))*(?:"|(?=[\r\n])|\Z|\\\Z))
    |((?:u8|[uUL])?'(?:[^'\\\n\r]|\\(?:\r\n|[\s\S]))*(?:'|(?=[\r\n])|\Z|\\\Z))
    |((?:(?m:^)|(?<=\xef\xbb\xbf))[ \t\f\v]*\#[ \t]*(?:\\\r?\n[ \t]*)?
        (?:include_next|include|import)\b)
        (?:[ \t]*(?:\\\r?\n[ \t]*)?(<[^>\n\r]*>|"[^"\n\r]*"))?
    |((?:(?m:^)|(?<=\xef\xbb\xbf))[ \t\f\v]*\#[ \t]*(?:\\\r?\n[ \t]*)?[A-Za-z_]\w*)
    |([^\s\x00])
    """,
    re.VERBOSE | re.DOTALL,
)
_IDENT, _PUNCT, _NUMBER, _COMMENT, _STRING, _DELIM, _CHAR, _INCLUDE, _HEADER, _DIRECTIVE, _OTHER = (
    range(1, 12)
)
_SIMPLE: dict[int, Kind] = {
    _IDENT: Kind.IDENT,
    _PUNCT: Kind.PUNCT,
    _NUMBER: Kind.NUMBER,
    _COMMENT: Kind.COMMENT,
    _STRING: Kind.STRING,
    _CHAR: Kind.CHAR,
    _OTHER: Kind.PUNCT,
}
_BOM = b"\xef\xbb\xbf"
_WORD_AFTER_HASH = re.compile(rb"[A-Za-z_]\w*\Z")


def directive_name(token: Token) -> bytes:
    """The word of a `DIRECTIVE` token, without the hash."""
    match = _WORD_AFTER_HASH.search(token.text)
    return match.group() if match else b""


def tokenize(data: bytes) -> list[Token]:
    """All tokens of `data` in order; white space is left out.

    The lexer has no context and takes the longest operator: whether ``>>`` closes two template
    argument lists is for the reader to decide.
    """
    return list(iter_tokens(data))


def iter_tokens(data: bytes) -> Iterator[Token]:
    """Like `tokenize`, one at a time."""
    simple = _SIMPLE
    for found in _TOKEN.finditer(data, 3 if data.startswith(_BOM) else 0):
        index = found.lastindex or _OTHER
        kind = simple.get(index)
        if kind is not None:
            yield Token(kind, found.start(), found.end(), found.group())
            continue
        word = _DIRECTIVE if index == _DIRECTIVE else _INCLUDE
        text = found.group(word)
        bare = text.lstrip(b" \t")
        end = found.end(word)
        yield Token(Kind.DIRECTIVE, end - len(bare), end, bare)
        if index == _HEADER:
            start, end = found.span(_HEADER)
            yield Token(Kind.HEADER, start, end, found.group(_HEADER))
