"""Build tables: nvcc flags, CMake names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from hipport.data import rules_dir
from hipport.rules.stored import read_yaml


class BuildRuleError(ValueError):
    """A build table is wrong; the message names the file and the entry."""


def _yaml(name: str) -> Any:
    return read_yaml(rules_dir() / name)


@dataclass(frozen=True, slots=True)
class Flag:
    """One nvcc flag. `to` is None (dropped), words, ``pass``/``keep``, or a mapping by value."""

    flag: str
    value: bool
    to: str | Mapping[str, str] | None
    finding: str
    why: str


@lru_cache(maxsize=1)
def flags() -> Mapping[str, Flag]:
    """nvcc's flags by name.

    Raises:
        BuildRuleError: an entry is not of the documented form.
    """
    found: dict[str, Flag] = {}
    for i, raw in enumerate(_yaml("nvcc_flags.yaml")):
        if not isinstance(raw, dict) or "flag" not in raw or "to" not in raw:
            raise BuildRuleError(f"nvcc_flags.yaml: entry {i + 1}: needs 'flag' and 'to'")
        to = raw["to"]
        if isinstance(to, dict):
            to = {str(k): str(v) for k, v in to.items()}
        if raw["flag"] in found:
            raise BuildRuleError(f"nvcc_flags.yaml: {raw['flag']} stands twice")
        found[raw["flag"]] = Flag(
            raw["flag"],
            bool(raw.get("value")),
            to,
            str(raw.get("finding", "")),
            str(raw.get("why", "")),
        )
    return found


@dataclass(frozen=True, slots=True)
class CMakeNames:
    """The tables of ``rules/cmake.yaml``."""

    targets: Mapping[str, tuple[str, str]]
    variables: Mapping[str, str]
    references: Mapping[str, tuple[str, str]]
    properties: Mapping[str, str]
    dropped_properties: Mapping[str, str]
    features: Mapping[str, str]
    no_counterpart: frozenset[str]


@lru_cache(maxsize=1)
def cmake() -> CMakeNames:
    """CMake's names for CUDA and HIP."""
    raw = _yaml("cmake.yaml")
    return CMakeNames(
        targets={k: (v[0], v[1]) for k, v in raw["targets"].items()},
        variables=raw["variables"],
        references={k: (v[0], v[1]) for k, v in raw["references"].items()},
        properties=raw["properties"],
        dropped_properties=raw["dropped_properties"],
        features=raw["features"],
        no_counterpart=frozenset(raw["no_counterpart"]),
    )


@lru_cache(maxsize=1)
def tools() -> Mapping[str, tuple[str, str]]:
    """Programs, variables and images of NVIDIA's, with the finding's slug and what ROCm has."""
    return {
        str(name): (str(entry[0]), str(entry[1])) for name, entry in _yaml("tools.yaml").items()
    }
