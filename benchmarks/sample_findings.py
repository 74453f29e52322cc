"""Draw findings at random, to be judged by reading.

    python benchmarks/convert.py --no-hipify --keep DIR      # leaves reports and sources
    python benchmarks/sample_findings.py DIR --code HP30 --count 100 --seed 1

Prints one Markdown table row a finding, with the lines around it as a comment below the table when
`--context` is given. The order of drawing depends on the seed and on the findings alone.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, order=True)
class Drawn:
    """A finding of a corpus; `text` is the line it stands on."""

    corpus: str
    path: str
    line: int
    column: int
    code: str
    slug: str
    severity: str
    action: str
    message: str
    text: str = ""


def collect(folder: Path, code: str, severities: Sequence[str] = ()) -> list[Drawn]:
    """Findings of all corpora kept below `folder`, in order.

    `code` is what their code begins with; `severities` are those to take, all where empty.
    """
    found = []
    for report in sorted(folder.glob("*/1.json")):
        source = report.parent / "source"
        lines: dict[str, list[bytes]] = {}
        for item in json.loads(report.read_text("utf-8"))["findings"]:
            if not item["code"].startswith(code):
                continue
            if severities and item["severity"] not in severities:
                continue
            path = item["path"]
            if path not in lines:
                lines[path] = (source / path).read_bytes().splitlines()
            at = item["line"] - 1
            text = lines[path][at].decode("utf-8", "replace") if at < len(lines[path]) else ""
            found.append(
                Drawn(
                    report.parent.name,
                    path,
                    item["line"],
                    item["column"],
                    item["code"],
                    item["slug"],
                    item["severity"],
                    item["action"],
                    item["message"],
                    text.strip(),
                )
            )
    return sorted(found)


def draw(findings: Sequence[Drawn], count: int, seed: int, *, by_class: bool) -> list[Drawn]:
    """`count` findings at random; with `by_class` the classes take turns."""
    chance = random.Random(seed)
    if not by_class:
        return sorted(chance.sample(list(findings), min(count, len(findings))))
    piles: dict[str, list[Drawn]] = {}
    for finding in findings:
        piles.setdefault(finding.slug, []).append(finding)
    for pile in piles.values():
        chance.shuffle(pile)
    drawn: list[Drawn] = []
    while len(drawn) < count and any(piles.values()):
        for slug in sorted(piles):
            if piles[slug] and len(drawn) < count:
                drawn.append(piles[slug].pop())
    return sorted(drawn)


def row(number: int, finding: Drawn) -> str:
    """A table row with the columns for the judgement left open."""
    cells = (
        str(number),
        f"`{finding.slug}`",
        f"{finding.severity}, {finding.action}",
        f"{finding.corpus} `{finding.path}:{finding.line}`",
        f"`{finding.text[:90]}`",
        "",
        "",
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Draw findings to judge.")
    parser.add_argument("folder", type=Path, help="what convert.py --keep left")
    parser.add_argument("--code", default="HP", help="only codes that begin so")
    parser.add_argument("--severity", default="", help="only these, separated by commas")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by-class", action="store_true", help="classes take turns")
    parser.add_argument("--context", type=int, default=0, help="lines to show around each")
    arguments = parser.parse_args(argv)
    wanted = [word for word in arguments.severity.split(",") if word]
    findings = collect(arguments.folder, arguments.code, wanted)
    if not findings:
        print(f"sample: no finding {arguments.code}* below {arguments.folder}", file=sys.stderr)
        return 2
    drawn = draw(findings, arguments.count, arguments.seed, by_class=arguments.by_class)
    print(f"{len(drawn)} of {len(findings)} findings, seed {arguments.seed}\n")
    print("| # | class | severity, action | place | line | right? | why |")
    print("|---:|---|---|---|---|---|---|")
    for number, finding in enumerate(drawn, 1):
        print(row(number, finding))
    if arguments.context:
        for number, finding in enumerate(drawn, 1):
            source = arguments.folder / finding.corpus / "source" / finding.path
            lines = source.read_text("utf-8", "replace").splitlines()
            first = max(0, finding.line - 1 - arguments.context)
            print(f"\n--- {number} {finding.slug} {finding.path}: {finding.message}")
            for at in range(first, min(len(lines), finding.line + arguments.context)):
                print(f"{'>' if at == finding.line - 1 else ' '}{at + 1:5} {lines[at]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
