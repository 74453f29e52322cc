"""Bytes and names of unknown origin as text that is safe to print."""

from __future__ import annotations

import os
import re

_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def safe(text: str) -> str:
    """Text without control characters, lone surrogates and what turns the writing direction.

    Newlines and tabs stay.
    """
    return _UNSAFE.sub(_escape, text)


def shown(path: str | os.PathLike[str]) -> str:
    """A path for people: one line, whatever bytes are in the name."""
    return safe(os.fspath(path)).replace("\n", "\\n").replace("\t", "\\t")


def code(data: bytes) -> str:
    """Bytes of a source line: UTF-8, else with escapes; tabs are four blanks."""
    return safe(data.decode("utf-8", "backslashreplace")).replace("\t", "    ").replace("\n", " ")
