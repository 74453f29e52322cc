"""AMD GPU targets and what is known of each, read from ``rules/targets.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from hipport.data import rules_dir
from hipport.rules.stored import read_yaml

DEFAULT = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
"""The targets that a run looks at where none are named."""


class UnknownTarget(ValueError):
    """No such target; the message names the nearest."""


class TargetsError(ValueError):
    """The data file is wrong; the message names the target and the key."""


@dataclass(frozen=True, slots=True)
class Target:
    """One code object target.

    `lds` is bytes a work-group; `vgprs` are 32-bit registers a lane of a SIMD for all waves
    together, `max_vgprs` those that one wave may have; `isa` is ``__oclc_ISA_version``. Empty
    strings mean that nobody looked.
    """

    gfx: str
    names: tuple[str, ...]
    family: str
    wave: int
    lds: int
    vgprs: int
    max_vgprs: int
    vgpr_granule: int
    sgprs: int
    max_waves: int
    simds: int
    isa: int
    fp8: str
    matrix: str
    images: bool
    dies: int
    wgp: bool = False
    vgpr_pools: int = 1
    """2 where accumulation registers are a file of their own beside the vector registers."""
    atomic_add_f32: str = ""
    atomic_add_f64: str = ""
    dot4: str = ""

    @property
    def wave64(self) -> bool:
        """Whether a wavefront has 64 lanes."""
        return self.wave == 64


_CHOICES: Mapping[str, tuple[object, ...]] = {
    "wave": (32, 64),
    "fp8": ("none", "fnuz", "ocp"),
    "matrix": ("none", "mfma", "wmma"),
    "atomic_add_f32": ("", "native", "cas"),
    "atomic_add_f64": ("", "native", "cas"),
    "dot4": ("", "sdot4", "sudot4"),
    "vgpr_pools": (1, 2),
}
_TYPES: Mapping[str, type] = {"str": str, "int": int, "bool": bool, "tuple[str, ...]": list}


def _entry(gfx: str, data: Any) -> Target:
    if not isinstance(data, dict):
        raise TargetsError(f"targets.yaml, {gfx}: not a mapping")
    known = {f.name: f for f in fields(Target) if f.name != "gfx"}
    for key, value in data.items():
        if key not in known:
            raise TargetsError(f"targets.yaml, {gfx}: unknown key '{key}'")
        if type(value) is not _TYPES[str(known[key].type)]:
            raise TargetsError(f"targets.yaml, {gfx}: '{key}' has the wrong type")
        if key in _CHOICES and value not in _CHOICES[key]:
            raise TargetsError(f"targets.yaml, {gfx}: '{key}' is {value!r}")
    values = {**data, "names": tuple(data.get("names", ()))}
    try:
        return Target(gfx=gfx, **values)
    except TypeError as error:
        raise TargetsError(f"targets.yaml, {gfx}: {error}") from None


def parse(data: Any) -> dict[str, Target]:
    """Check what the data file holds.

    Raises:
        TargetsError: a key is missing, unknown or of the wrong kind, or a name stands twice.
    """
    if not isinstance(data, dict):
        raise TargetsError("targets.yaml: not a mapping of targets")
    out = {gfx: _entry(gfx, entry) for gfx, entry in data.items()}
    seen: dict[str, str] = {gfx: gfx for gfx in out}
    for target in out.values():
        for name in target.names:
            if name in seen:
                raise TargetsError(f"targets.yaml: '{name}' names {seen[name]} and {target.gfx}")
            seen[name] = target.gfx
    return out


@lru_cache(maxsize=1)
def load() -> Mapping[str, Target]:
    """All targets by code object name, in the file's order."""
    return parse(read_yaml(rules_dir() / "targets.yaml", parse))


def _plain(name: str) -> str:
    text = name.lower().strip()
    for word in ("amd ", "instinct ", "radeon "):
        text = text.removeprefix(word)
    return text.split(":", 1)[0].replace(" ", "").replace("_", "-")


def resolve(name: str) -> Target:
    """The target of ``gfx942``, ``gfx90a:xnack-``, ``mi300x`` or ``RX 7900 XTX``.

    Raises:
        UnknownTarget: no such target.
    """
    wanted = _plain(name)
    by_name = {alias: t for t in load().values() for alias in (t.gfx, *t.names)}
    if wanted in by_name:
        return by_name[wanted]
    near = get_close_matches(wanted, by_name, 1)
    more = f"did you mean {near[0]}?" if near else f"known: {', '.join(load())}"
    raise UnknownTarget(f"unknown target '{name}'; {more}")


def resolve_all(names: Iterable[str]) -> tuple[Target, ...]:
    """Targets of a list in which commas part names, each once, in order; `DEFAULT` for none.

    Raises:
        UnknownTarget: one of them is unknown.
    """
    words = [w for name in names for w in name.split(",") if w.strip()] or list(DEFAULT)
    return tuple({(t := resolve(w)).gfx: t for w in words}.values())
