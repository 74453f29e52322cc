"""The PTX table of ``rules/ptx.yaml``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hipport.data import rules_dir

_KEYS = frozenset(
    {"match", "register", "args", "expr", "stmt", "when", "slug", "needs", "note", "dest", "flag",
     "load", "store", "prefetch", "atomic", "sleep"}
)  # fmt: skip


class PtxError(ValueError):
    """The PTX table is wrong; the message names the entry and the key."""


@dataclass(frozen=True, slots=True)
class PtxRule:
    """One instruction form; see the head of ``rules/ptx.yaml`` for the keys."""

    match: re.Pattern[str]
    slug: str
    register: re.Pattern[str] | None = None
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


def _rule(index: int, raw: Any) -> PtxRule:
    where = f"ptx.yaml: entry {index + 1}"
    if not isinstance(raw, dict) or "match" not in raw:
        raise PtxError(f"{where}: expected a mapping with 'match'")
    unknown = raw.keys() - _KEYS
    if unknown:
        raise PtxError(f"{where}: unknown key '{sorted(unknown)[0]}'")
    try:
        match = re.compile(raw["match"])
        register = re.compile(raw["register"]) if "register" in raw else None
    except re.error as error:
        raise PtxError(f"{where}: {error}") from error
    if "flag" in raw:
        return PtxRule(match, str(raw["flag"]), flag_only=True)
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
        match=match,
        slug=str(raw["slug"]),
        register=register,
        args=int(raw.get("args", 0)),
        expr=str(raw.get("expr", "")),
        stmt=str(raw.get("stmt", "")),
        when=str(raw.get("when", "")),
        needs=str(raw.get("needs", "")),
        note=str(raw.get("note", "")),
        has_dest=raw.get("dest") != "none",
        access=access,
    )


@lru_cache(maxsize=1)
def load() -> tuple[PtxRule, ...]:
    """All rules in the order of the file, which is their precedence.

    Raises:
        PtxError: the table is not of the documented form.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    raw = yaml.load((rules_dir() / "ptx.yaml").read_bytes(), Loader=loader)
    if not isinstance(raw, list):
        raise PtxError("ptx.yaml: expected a list")
    return tuple(_rule(i, entry) for i, entry in enumerate(raw))
