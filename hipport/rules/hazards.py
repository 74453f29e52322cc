"""Hazard metadata: the data half of every check, read from ``rules/hazards/*.yaml``.

A file maps slugs to entries::

    ballot-width:
      code: HP3004
      title: Lane mask kept in 32 bits
      severity: error          # error | warning | info
      action: auto             # auto | assist | flag
      message: "{what} is kept in 32 bits"     # fields are filled by the check
      why: >
        Paragraphs for the page.
      before: |
        code
      after: |
        code
      targets: [wave64]        # free words, or names from targets.yaml; empty means all
      links: ["Title <address>"]
      names: [cudaMallocManaged]   # optional: every use of these identifiers is of the class
      prefixes: [cudnn]            # optional: likewise by beginning
      headers: ["cutlass/*"]       # optional: likewise by include path (a glob)
      namespaces: [cutlass]        # optional: likewise by ``name::``
      where: device                # optional: only in device or host code
      once: true                   # optional: only the first use in a file
"""

from __future__ import annotations

import hashlib
import json
import os
import string
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from hipport.data import rules_dir
from hipport.findings import Action, Severity

_FORMAT = "2"
_REQUIRED = ("code", "title", "severity", "action", "message", "why")
_OPTIONAL = (
    "before", "after", "targets", "links", "effort", "suppress", "names", "prefixes", "headers",
    "namespaces", "where", "once",
)  # fmt: skip
_LISTS = ("targets", "links", "names", "prefixes", "headers", "namespaces")


class HazardError(ValueError):
    """The hazard data is wrong; the message names the file, the slug and the key."""


@dataclass(frozen=True, slots=True)
class Hazard:
    """One class of hazard."""

    slug: str
    code: str
    title: str
    severity: Severity
    action: Action
    message: str
    why: str
    before: str = ""
    after: str = ""
    targets: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    effort: str = "low"
    names: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    where: str = ""
    once: bool = False
    fields: tuple[str, ...] = field(default=())

    def render(self, **values: object) -> str:
        """The message with its fields filled.

        Raises:
            KeyError: a field of the message has no value.
        """
        return self.message.format(**values)


def _entry(file: Path, slug: str, raw: Any) -> Hazard:
    where = f"{file.name}: {slug}"
    if not isinstance(raw, dict):
        raise HazardError(f"{where}: expected a mapping")
    for key in _REQUIRED:
        if not raw.get(key):
            raise HazardError(f"{where}: key '{key}' is missing or empty")
    for key in raw:
        if key not in _REQUIRED + _OPTIONAL:
            raise HazardError(f"{where}: unknown key '{key}'")
    try:
        severity, action = Severity(raw["severity"]), Action(raw["action"])
    except ValueError as error:
        raise HazardError(f"{where}: {error}") from error
    message = str(raw["message"]).strip()
    try:
        names = tuple(n for _, n, _, _ in string.Formatter().parse(message) if n is not None)
    except ValueError as error:
        raise HazardError(f"{where}: message: {error}") from error
    return Hazard(
        slug=slug,
        code=str(raw["code"]),
        title=str(raw["title"]).strip(),
        severity=severity,
        action=action,
        message=message,
        why=str(raw["why"]).strip(),
        before=str(raw.get("before") or "").rstrip(),
        after=str(raw.get("after") or "").rstrip(),
        **{key: tuple(str(t) for t in raw.get(key) or ()) for key in _LISTS},
        where=str(raw.get("where") or ""),
        once=bool(raw.get("once")),
        effort=str(raw.get("effort") or "low"),
        fields=names,
    )


def parse_files(files: list[Path]) -> dict[str, Hazard]:
    """Read and validate hazard files.

    Raises:
        HazardError: a file is not of the documented form, or a code or slug is taken twice.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    hazards: dict[str, Hazard] = {}
    codes: dict[str, str] = {}
    for file in files:
        try:
            content = yaml.load(file.read_bytes(), Loader=loader) or {}
        except yaml.YAMLError as error:
            raise HazardError(f"{file.name}: {error}") from error
        if not isinstance(content, dict):
            raise HazardError(f"{file.name}: expected a mapping of slugs")
        for slug, raw in content.items():
            hazard = _entry(file, str(slug), raw)
            if slug in hazards:
                raise HazardError(f"{file.name}: {slug}: defined twice")
            if hazard.code in codes:
                raise HazardError(
                    f"{file.name}: {slug}: code {hazard.code} is {codes[hazard.code]}'s"
                )
            hazards[hazard.slug] = hazard
            codes[hazard.code] = hazard.slug
    return hazards


def _cache_dir() -> Path:
    root = os.environ.get("HIPPORT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    if root:
        return Path(root)
    return (Path(base) if base else Path.home() / ".cache") / "hipport"


def _read_cache(path: Path) -> dict[str, Hazard] | None:
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return {
        slug: Hazard(
            **{
                **entry,
                "severity": Severity(entry["severity"]),
                "action": Action(entry["action"]),
                **{key: tuple(entry[key]) for key in (*_LISTS, "fields")},
            }
        )
        for slug, entry in raw.items()
    }


def _write_cache(path: Path, hazards: Mapping[str, Hazard]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_text(json.dumps({slug: asdict(h) for slug, h in hazards.items()}))
        part.replace(path)
    except OSError:
        return


@lru_cache(maxsize=1)
def load() -> Mapping[str, Hazard]:
    """All hazards by slug, from the cache where the files have not changed.

    Raises:
        HazardError: the rules are broken.
    """
    files = sorted((rules_dir() / "hazards").glob("*.yaml"))
    digest = hashlib.sha256(_FORMAT.encode())
    for file in files:
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    cache = _cache_dir() / f"hazards-{digest.hexdigest()[:24]}.json"
    hazards = _read_cache(cache)
    if hazards is None:
        hazards = parse_files(files)
        _write_cache(cache, hazards)
    return hazards


def find(name: str) -> Hazard | None:
    """A hazard by slug or code, upper and lower case alike."""
    wanted = name.strip().lower()
    for hazard in load().values():
        if wanted in (hazard.slug, hazard.code.lower()):
            return hazard
    return None
