"""Every rule's fixtures: the positive is reported, the look-alike is not.

The leading comments of a fixture say what is right: ``expect: SLUG line N`` and
``silent: SLUG line N`` (without a line: anywhere in the file), ``must: TEXT`` and ``mustnot: TEXT``
(``|`` between alternatives) for the default conversion. ``fixtures/rules/PENDING.txt`` lists, one a
line, the fixtures whose rule is not there yet; a listed fixture that has become right fails too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hipport.api import Options, check_paths
from hipport.report import json_report
from tests.support import Planned, plan

RULES = Path(__file__).resolve().parents[2] / "fixtures" / "rules"
PENDING = RULES / "PENDING.txt"
CASES = RULES.parents[2] / "shared" / "cases"

GRAMMAR = re.compile(r"^\s*(?://|#)\s*(?P<kind>expect|silent|must|mustnot):\s*(?P<rest>.*?)\s*$")
NEWEST = "10.0"
OLD_VERSIONS = {"sync-builtin-missing": "6.1", "integer-intrinsic-bugs": "6.1"}
"""Classes that only a conversion for an older ROCm meets."""


@dataclass(frozen=True, slots=True)
class Claims:
    """What a fixture says; a line of None is any line."""

    expect: list[tuple[str, int | None]] = field(default_factory=list)
    silent: list[tuple[str, int | None]] = field(default_factory=list)
    must: list[str] = field(default_factory=list)
    mustnot: list[str] = field(default_factory=list)


def claims(path: Path) -> Claims:
    """Read the leading comments of a file."""
    found = Claims()
    for line in path.read_text().splitlines():
        if not line.lstrip().startswith(("//", "#")):
            break
        match = GRAMMAR.match(line)
        if match is None:
            continue
        kind, rest = match["kind"], match["rest"]
        if kind in ("must", "mustnot"):
            getattr(found, kind).append(rest)
            continue
        slug, *at = rest.split()
        getattr(found, kind).append((slug, int(at[1]) if at else None))
    return found


def planned(path: Path) -> Planned:
    """The plan of one file as a project of its own."""
    rocm = OLD_VERSIONS.get(path.parent.name, NEWEST)
    return plan({path.name: path.read_bytes()}, Options(rocm=rocm))


def deviations(path: Path) -> list[str]:
    """What a file claims and hipport does not do."""
    said, result = claims(path), planned(path)
    found = {(f.slug, f.line) for f in result.plans[path.name].findings}
    slugs = {slug for slug, _ in found}
    wrong = []
    for slug, line in said.expect:
        if slug not in slugs if line is None else (slug, line) not in found:
            wrong.append(f"{slug} is not reported on line {line or 'any'}")
    for slug, line in said.silent:
        if slug in slugs if line is None else (slug, line) in found:
            at = sorted(n for s, n in found if s == slug)
            wrong.append(f"{slug} is reported on {line or at}, and must not be")
    if said.must or said.mustnot:
        text = result.text(path.name)
        wrong += [f"no {m!r}" for m in said.must if not any(x in text for x in m.split("|"))]
        wrong += [f"still {m!r}" for m in said.mustnot if any(x in text for x in m.split("|"))]
    return wrong


def pending() -> set[str]:
    """Fixtures (``SLUG/KIND``) that are known not to be right yet."""
    lines = PENDING.read_text().splitlines() if PENDING.exists() else []
    return {line.split("#")[0].strip() for line in lines} - {""}


def fixtures() -> list[Path]:
    """Every fixture of a rule."""
    kinds = ("positive.*", "lookalike.*")
    return sorted(p for kind in kinds for p in RULES.glob(f"*/{kind}"))


def name(path: Path) -> str:
    """``SLUG/KIND`` of a fixture."""
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", fixtures(), ids=name)
def test_fixture(path: Path) -> None:
    wrong = deviations(path)
    if name(path) in pending():
        assert wrong, f"{name(path)} is right now: take it off {PENDING.name}"
    else:
        assert not wrong, "; ".join(wrong)


def test_report_says_the_same_as_the_plan() -> None:
    folder = RULES / "fp8-format"
    files = [folder / "positive.cu", folder / "lookalike.cu"]
    report = check_paths(files, Options(jobs=1, rocm=NEWEST))
    data = json.loads(json_report.render(report))
    for path in files:
        told = {
            (f["slug"], f["line"]) for f in data["findings"] if Path(f["path"]).name == path.name
        }
        assert told == {(f.slug, f.line) for f in planned(path).plans[path.name].findings}


def test_each_rule_has_both_kinds() -> None:
    names = {name(p) for p in fixtures()}
    slugs = {n.split("/")[0] for n in names}
    assert len(slugs) > 100
    assert names == {f"{s}/{k}" for s in slugs for k in ("positive", "lookalike")}


def test_fixtures_claim_something() -> None:
    for path in fixtures():
        said, slug = claims(path), path.parent.name
        side = said.expect if path.stem == "positive" else said.silent
        assert slug in {s for s, _ in side}, name(path)
        size = len(path.read_text().splitlines())
        assert all(line is None or 0 < line <= size for _, line in said.expect + said.silent)


def test_pending_names_fixtures() -> None:
    assert pending() <= {name(p) for p in fixtures()}


@pytest.mark.skipif(
    not CASES.is_dir(), reason="the shared cases lie beside a development tree only"
)
@pytest.mark.parametrize(
    "path", sorted(CASES.glob("*.cu")) if CASES.is_dir() else [], ids=lambda p: p.stem
)
def test_case(path: Path) -> None:
    assert not deviations(path)
