"""The PTX table of ``rules/ptx.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from hipport.data import rules_dir
from hipport.rules.stored import read_yaml

_KEYS = frozenset(
    {"match", "register", "args", "expr", "stmt", "when", "slug", "needs", "note", "dest", "flag",
     "load", "store", "prefetch", "atomic", "sleep"}
)  # fmt: skip


class PtxError(ValueError):
    """The PTX table is wrong; the message names the entry and the key."""


@dataclass(frozen=True, slots=True)
class PtxRule:
    """One instruction form; see the head of ``rules/ptx.yaml`` for the keys."""

    pattern: str
    slug: str
    register_pattern: str = ""
    args: int = 0
    expr: str = ""
    stmt: str = ""
    when: str = ""
    needs: str = ""
    note: str = ""
    has_dest: bool = True
    access: str = ""
    """How memory is accessed: ``load:plain``, ``store:release``, ``prefetch``, ``atomic:f`` …"""
    flag_only: bool = False

    @property
    def match(self) -> re.Pattern[str]:
        """What the instruction's opcode must match."""
        return _compiled(self.pattern)

    @property
    def register(self) -> re.Pattern[str] | None:
        """What the special register that it reads must match, if it reads one."""
        return _compiled(self.register_pattern) if self.register_pattern else None


# Compiling all patterns at once takes longer than most runs need for PTX.
@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _rule(index: int, raw: Any) -> PtxRule:
    where = f"ptx.yaml: entry {index + 1}"
    if not isinstance(raw, dict) or "match" not in raw:
        raise PtxError(f"{where}: expected a mapping with 'match'")
    unknown = raw.keys() - _KEYS
    if unknown:
        raise PtxError(f"{where}: unknown key '{sorted(unknown)[0]}'")
    if "flag" in raw:
        return PtxRule(str(raw["match"]), str(raw["flag"]), flag_only=True)
    access = ""
    for kind in ("load", "store", "atomic"):
        if kind in raw:
            access = f"{kind}:{raw[kind]}"
    for kind in ("prefetch", "sleep"):
        if raw.get(kind):
            access = kind
    if not (access or raw.get("expr") or raw.get("stmt")) or "slug" not in raw:
        raise PtxError(f"{where}: needs a slug and one of expr, stmt, load, store, flag")
    return PtxRule(
        pattern=str(raw["match"]),
        slug=str(raw["slug"]),
        register_pattern=str(raw.get("register", "")),
        args=int(raw.get("args", 0)),
        expr=str(raw.get("expr", "")),
        stmt=str(raw.get("stmt", "")),
        when=str(raw.get("when", "")),
        needs=str(raw.get("needs", "")),
        note=str(raw.get("note", "")),
        has_dest=raw.get("dest") != "none",
        access=access,
    )


def _rules(raw: Any) -> tuple[PtxRule, ...]:
    if not isinstance(raw, list):
        raise PtxError("ptx.yaml: expected a list")
    return tuple(_rule(i, entry) for i, entry in enumerate(raw))


def _check(raw: Any) -> None:
    for i, rule in enumerate(_rules(raw)):
        try:
            re.compile(rule.pattern)
            re.compile(rule.register_pattern)
        except re.error as error:
            raise PtxError(f"ptx.yaml: entry {i + 1}: {error}") from error


@lru_cache(maxsize=1)
def load() -> tuple[PtxRule, ...]:
    """All rules in the order of the file, which is their precedence.

    Raises:
        PtxError: the table is not of the documented form.
    """
    return _rules(read_yaml(rules_dir() / "ptx.yaml", _check))
