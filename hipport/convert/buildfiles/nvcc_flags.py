"""nvcc command-line words to clang's, by one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hipport.rules.build import Flag, flags


@dataclass(frozen=True, slots=True)
class Translated:
    """What became of one word (or of a flag and its value in two words).

    `first` and `count` say which words; `words` take their place; `finding` is the slug to report
    (empty: none), `text` the flag as written.
    """

    first: int
    count: int
    words: tuple[str, ...]
    finding: str
    text: str
    changed: bool


def translate(words: Sequence[str]) -> list[Translated]:
    """Translate nvcc's words in order; words that nvcc and clang share stay."""
    out: list[Translated] = []
    at = 0
    while at < len(words):
        item = _one(words, at)
        out.append(item)
        at += item.count
    return out


def _one(words: Sequence[str], at: int) -> Translated:
    word = words[at]
    name, joined, value = word.partition("=")
    rule = flags().get(word) or flags().get(name if joined else word)
    if rule is None:
        return Translated(at, 1, (word,), "", word, False)
    count = 1
    if rule.value and not joined:
        if at + 1 >= len(words):
            return Translated(at, 1, (word,), "", word, False)
        value, count = words[at + 1], 2
    text = " ".join(words[at : at + count])
    if rule.value and "$" in value and not isinstance(rule.to, str | type(None)):
        return Translated(at, count, tuple(words[at : at + count]), "nvcc-flags", text, False)
    new = _replacement(rule, value)
    finding = rule.finding
    if new is None:
        return Translated(at, count, (), finding or "nvcc-flags", text, True)
    changed = tuple(words[at : at + count]) != new
    return Translated(at, count, new, finding if changed else "", text, changed)


def _replacement(rule: Flag, value: str) -> tuple[str, ...] | None:
    if rule.to is None:
        return None
    if isinstance(rule.to, Mapping):
        chosen = rule.to.get(value.strip('"'))
        return None if chosen is None else tuple(chosen.split())
    if rule.to == "pass":
        return tuple(part for part in value.strip('"').split(",") if part)
    if rule.to == "keep":
        return (rule.flag, value)
    return tuple(rule.to.split())
