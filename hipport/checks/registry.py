"""Which checks there are. A check is a function from a unit to findings."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from hipport.checks.context import Context
from hipport.findings import Action, Finding, Severity
from hipport.parse.conditions import dead_on_hip
from hipport.parse.unit import Unit
from hipport.source import Span

Check = Callable[[Unit, Context], Iterator[Finding]]
_CHECKS: dict[str, tuple[Check, frozenset[str]]] = {}


def check(*slugs: str) -> Callable[[Check], Check]:
    """Register a check under the slugs that it may report; a slug may have several checks."""

    def register(function: Check) -> Check:
        name = f"{function.__module__}.{function.__qualname__}"
        _CHECKS[name] = (function, frozenset(slugs))
        return function

    return register


@lru_cache(maxsize=1)
def all_checks() -> tuple[Check, ...]:
    """Every check of the package, in the order of module and name."""
    import hipport.checks as package

    def fail(name: str) -> None:
        raise ImportError(f"{name} cannot be imported; reinstall hipport")

    for module in sorted(
        pkgutil.walk_packages(package.__path__, package.__name__ + ".", fail),
        key=lambda m: m.name,
    ):
        importlib.import_module(module.name)
    if not _CHECKS:
        # A folder that cannot be listed looks empty; a run without checks must not look clean.
        raise ImportError(f"no checks found in {list(package.__path__)}; reinstall hipport")
    return tuple(function for _, (function, _) in sorted(_CHECKS.items()))


def known_slugs() -> frozenset[str]:
    """Slugs that some check can report."""
    all_checks()
    return frozenset(slug for _, slugs in _CHECKS.values() for slug in slugs)


def run(unit: Unit, context: Context) -> Iterator[Finding]:
    """Run every check over a unit.

    Findings in branches that the file itself does not compile for HIP are left out. In a file with
    code for AMD targets what it says of waves is its authors' own: reported, not rewritten.
    """
    dead = dead_on_hip(unit)
    native = _AMD_CODE.search(unit.data) is not None
    for function in all_checks():
        try:
            found = list(function(unit, context))
        except Exception as error:
            # One check that stumbles must cost neither the file nor the other checks.
            deep = isinstance(error, RecursionError)
            why = "the nesting is too deep for" if deep else f"{type(error).__name__} in"
            yield context.finding(
                "unparsed",
                unit,
                Span(0, 0),
                size=len(unit.data),
                what=f"{why} the check '{function.__name__}', which was left out for this file",
            )
            continue
        for finding in found:
            if not any(s.start <= finding.span.start < s.end for s in dead):
                yield _as_meant(finding) if native else finding


_AMD_CODE = re.compile(
    rb"^(?![ \t]*(?://|\*)).*(?:\b__builtin_amdgcn_(?:mov_dpp|update_dpp|ds_|mfma|wmma|readlane"
    rb"|readfirstlane|permlane|wavefrontsize|sdot|fdot)|\b__GFX\d+__|\b__gfx\d\w*__"
    rb"|\b__AMDGCN_WAVEFRONT_SIZE)",
    re.MULTILINE,
)
_ABOUT_WAVES = ("HP30", "HP4005", "HP4020", "HP5041")


def _as_meant(finding: Finding) -> Finding:
    """A finding of a file that its authors wrote for AMD targets, too: theirs to change."""
    if finding.change is None or not finding.code.startswith(_ABOUT_WAVES):
        return finding
    return replace(
        finding,
        change=None,
        action=Action.FLAG,
        severity=Severity.WARNING if finding.severity is Severity.ERROR else finding.severity,
        hint="The file has code for AMD targets and was not rewritten: check what it takes a wave "
        "to be. " + finding.hint,
    )
