"""Recall and precision of ``hipport check`` on the labelled functions.

    python scripts/labelled_score.py              # figures, misses and false alarms
    python scripts/labelled_score.py --count      # size of the set, no check run
    python scripts/labelled_score.py --slugs      # the same figures class by class

A hazardous function is recalled when at least one of its expected findings is reported; exact-line
recall counts every expected finding. A finding above severity ``info`` that is neither expected nor
listed as right is a false alarm; so is one of a slug that the labels want silent, whatever its
severity. The exit status is 1 when a hazardous function has no finding at all above ``info``, when
a wanted silence is broken, or when precision is below 0.95.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
LABELLED = ROOT / "fixtures" / "labelled"
LEAST_PRECISION = 0.95

Place = tuple[str, int]
"""A slug and a line counted from 1."""


@dataclass(frozen=True, slots=True)
class Label:
    """The truth about one function; every `expect` entry is a set of equally right answers."""

    file: str
    name: str
    first: int
    last: int
    hazardous: bool
    expect: tuple[frozenset[Place], ...] = ()
    also: frozenset[Place] = frozenset()
    silent: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Reported:
    """One finding, as far as the score needs it."""

    file: str
    slug: str
    line: int
    severity: str
    message: str


@dataclass(slots=True)
class Score:
    """The outcome; lists hold one line of text each."""

    hazardous: int = 0
    lookalike: int = 0
    recalled: int = 0
    expected: int = 0
    exact: int = 0
    right: int = 0
    wrong: int = 0
    clean: int = 0
    unseen: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    alarms: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    by_slug: dict[str, Counter[str]] = field(default_factory=dict)

    @property
    def precision(self) -> float:
        """Right findings among all above ``info``; 1 when there are none."""
        return ratio(self.right, self.right + self.wrong)

    @property
    def ok(self) -> bool:
        """Whether the bars are met."""
        return not self.unseen and not self.broken and self.precision >= LEAST_PRECISION


def ratio(part: int, whole: int) -> float:
    """`part / whole`, 1 for an empty whole."""
    return part / whole if whole else 1.0


def places(text: str) -> frozenset[Place]:
    """The places that ``SLUG@LINE`` or ``SLUG|SLUG@LINE`` names."""
    slugs, line = text.split("@")
    return frozenset((slug, int(line)) for slug in slugs.split("|"))


def union(texts: list[str]) -> frozenset[Place]:
    """The places of several entries."""
    return frozenset(place for text in texts for place in places(text))


def read_labels(folder: Path = LABELLED) -> list[Label]:
    """The labels, checked against the files they speak of.

    Raises:
        ValueError: a label names a line outside its function or the file.
    """
    with (folder / "labels.toml").open("rb") as stream:
        entries = tomllib.load(stream)["function"]
    labels = []
    for entry in entries:
        first, last = entry["lines"]
        label = Label(
            entry["file"],
            entry["name"],
            first,
            last,
            entry["hazardous"],
            tuple(places(e) for e in entry.get("expect", [])),
            union(entry.get("also", [])),
            union(entry.get("silent", [])),
        )
        size = len((folder / label.file).read_text().splitlines())
        named = [*label.also, *label.silent, *(p for e in label.expect for p in e)]
        if last > size or any(not first <= line <= last for _, line in named):
            raise ValueError(f"{label.file}: the label of {label.name} leaves its lines")
        if label.hazardous != bool(label.expect):
            raise ValueError(f"{label.file}: {label.name} is hazardous without a line, or not")
        labels.append(label)
    return labels


def read_findings(folder: Path = LABELLED) -> list[Reported]:
    """What ``hipport check`` reports on the folder, through the public API."""
    from hipport.api import Options, check_paths

    report = check_paths([folder], Options(jobs=1))
    found = []
    for finding in report.all_findings():
        path = (report.root / finding.path).resolve()
        name = path.relative_to(folder.resolve()).as_posix()
        found.append(
            Reported(name, finding.slug, finding.line, finding.severity.value, finding.message)
        )
    return found


def score(labels: list[Label], findings: list[Reported]) -> Score:
    """Compare findings with the truth."""
    result = Score()
    at: dict[tuple[str, str, int], list[Reported]] = {}
    for finding in findings:
        at.setdefault((finding.file, finding.slug, finding.line), []).append(finding)
    right: set[tuple[str, str, int]] = set()
    for label in labels:
        _one(label, at, findings, right, result)
    for finding in findings:
        key = (finding.file, finding.slug, finding.line)
        if finding.severity == "info":
            continue
        if key in right:
            result.right += 1
        else:
            result.wrong += 1
            where = _owner(labels, finding)
            result.alarms.append(
                f"{finding.file}:{finding.line}: {finding.slug} in {where}: {finding.message}"
            )
            result.by_slug.setdefault(finding.slug, Counter())["false"] += 1
    spoiled = {(a.split(":")[0], a.split(" in ")[1].split(":")[0]) for a in result.alarms}
    result.clean = sum(1 for x in labels if x.name != "(file)" and (x.file, x.name) not in spoiled)
    return result


def _owner(labels: list[Label], finding: Reported) -> str:
    """The name of the function around a finding."""
    for label in labels:
        inside = label.first <= finding.line <= label.last and label.name != "(file)"
        if label.file == finding.file and inside:
            return label.name
    return "(file)"


def _one(
    label: Label,
    at: dict[tuple[str, str, int], list[Reported]],
    findings: list[Reported],
    right: set[tuple[str, str, int]],
    result: Score,
) -> None:
    """Account for one function."""
    where = f"{label.file}:{label.first}: {label.name}"
    if label.name != "(file)":
        result.hazardous += label.hazardous
        result.lookalike += not label.hazardous
    right.update((label.file, slug, line) for slug, line in label.also)
    hits = 0
    for choice in label.expect:
        right.update((label.file, slug, line) for slug, line in choice)
        hit = any((label.file, slug, line) in at for slug, line in choice)
        hits += hit
        names = " or ".join(sorted({slug for slug, _ in choice}))
        tally = result.by_slug.setdefault(names, Counter())
        tally["expected"] += 1
        tally["found"] += hit
        if not hit:
            line = min(line for _, line in choice)
            result.missed.append(f"{label.file}:{line}: {names} not reported ({label.name})")
    result.expected += len(label.expect)
    result.exact += hits
    result.recalled += hits > 0
    for slug, line in sorted(label.silent):
        if (label.file, slug, line) in at:
            result.broken.append(f"{label.file}:{line}: {slug} must stay silent ({label.name})")
    seen = any(
        f.file == label.file and label.first <= f.line <= label.last and f.severity != "info"
        for f in findings
    )
    if label.hazardous and not seen:
        result.unseen.append(f"{where}: hazardous, and no finding at all")


def show(result: Score, slugs: bool) -> None:
    """Print the figures and every deviation."""
    functions = result.hazardous + result.lookalike
    print(f"functions        {functions}: {result.hazardous} hazardous, "
          f"{result.lookalike} look-alike")  # fmt: skip
    for title, part, whole in (
        ("recall", result.recalled, result.hazardous),
        ("exact lines", result.exact, result.expected),
        ("precision", result.right, result.right + result.wrong),
        ("clean functions", result.clean, functions),
    ):
        print(f"{title:16} {ratio(part, whole):.3f} ({part} of {whole})")
    if slugs:
        for slug, tally in sorted(result.by_slug.items()):
            print(f"  {slug:40} found {tally['found']} of {tally['expected']}, "
                  f"false {tally['false']}")  # fmt: skip
    for title, lines in (
        ("hazardous without any finding", result.unseen),
        ("expected and not reported", result.missed),
        ("broken silence", result.broken),
        ("false alarms", result.alarms),
    ):
        if lines:
            print(f"\n{title}: {len(lines)}")
            print("\n".join("  " + line for line in lines))


def main() -> int:
    """Score the labelled set."""
    parser = argparse.ArgumentParser(description="recall and precision on the labelled functions")
    parser.add_argument("--count", action="store_true", help="only count the labels")
    parser.add_argument("--slugs", action="store_true", help="figures class by class")
    options = parser.parse_args()
    labels = read_labels()
    if options.count:
        named = [x for x in labels if x.name != "(file)"]
        hazardous = sum(x.hazardous for x in named)
        files = len({x.file for x in named})
        print(f"{len(named)} functions in {files} files: {hazardous} hazardous, "
              f"{len(named) - hazardous} look-alike")  # fmt: skip
        return 0
    result = score(labels, read_findings())
    show(result, options.slugs)
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
