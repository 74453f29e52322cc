"""Writes ``docs/api-coverage.md`` from the name tables.

python scripts/api_page.py                 the page
python scripts/api_page.py --facts FOLDER  also renews fixtures/api/published.tsv, the figures
                                           of the published maps (api_map*.tsv in FOLDER)
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path

import api_audit

from hipport.rules import api

ROOT = Path(__file__).resolve().parent.parent
PUBLISHED = ROOT / "fixtures" / "api" / "published.tsv"
PAGE = ROOT / "docs" / "api-coverage.md"
GROUPS = {"cublas": "blas", "cudnn": "dnn", "cufft": "fft", "curand": "rand", "nvrtc": "rtc",
          "cusolver": "solver", "cusparse": "sparse"}  # fmt: skip
JOINED = {"blaslt": "blas"}
"""Tables that the published maps count with another."""


def renew(facts: Path) -> None:
    """Write the figures of both published maps."""
    out: dict[str, dict[str, int]] = {}
    for when, name in (("2024", "api_map.tsv"), ("2025", "api_map_2025-07.tsv")):
        seen: set[str] = set()
        for row in api_audit.read(facts / name):
            library = GROUPS.get(row["library"], row["library"])
            if row["cuda_name"] in seen or library == "library":
                continue
            seen.add(row["cuda_name"])
            counts = out.setdefault(library, dict.fromkeys(
                ("rows_2024", "mapped_2024", "rows_2025", "mapped_2025"), 0))  # fmt: skip
            counts[f"rows_{when}"] += 1
            counts[f"mapped_{when}"] += bool(row["hip_name"])
    with PUBLISHED.open("w", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["table", "rows_2024", "mapped_2024", "rows_2025", "mapped_2025"])
        writer.writerows([library, *counts.values()] for library, counts in sorted(out.items()))


def figures() -> dict[str, Counter[str]]:
    """Rows, mapped and guided rows by table, with those that the published maps count along."""
    out: dict[str, Counter[str]] = {}
    for table, rows in api_audit.tables().items():
        counts = out.setdefault(JOINED.get(table, table), Counter())
        counts["rows"] += len(rows)
        counts["mapped"] += sum(bool(r["hip"]) for r in rows)
        counts["guided"] += sum(bool(r["replacement"]) and not r["hip"] for r in rows)
    for row in api_audit.read(PUBLISHED):
        counts = out.setdefault(row["table"], Counter())
        counts.update({k: int(v) for k, v in row.items() if k != "table"})
    return out


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.0f} %)" if whole else "–"


def page() -> str:
    """The text of the page."""
    found = figures()
    lines = [
        "# Which CUDA names hipport knows",
        "",
        "Made by `python scripts/api_page.py`; a test fails when it is out of date. *Mapped* rows",
        "have a HIP name in the newest ROCm version; *guided* ones have none, and name what to use",
        "instead. The last columns are the same figures of HIPIFY's documentation tables of",
        "October 2024 and of July 2025 (`fixtures/api/published.tsv`).",
        "",
        "| table | rows | mapped | guided "
        "| HIPIFY 2024: rows | mapped | HIPIFY 2025: rows | mapped |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    total: Counter[str] = Counter()
    for table, c in sorted(found.items()):
        total.update(c)
        lines.append(_line(table, c))
    lines += [
        _line("**all**", total),
        "",
        "`blas` holds cuBLASLt (`blaslt.tsv`), as HIPIFY's table does. `dnn` maps nothing: hipDNN",
        "in the form that HIPIFY names is not shipped, so its rows name MIOpen calls, or MIOpen,",
        "for a person to port to. C++ interfaces (`cub`, `thrust`, `groups`) are converted by",
        "namespace; their rows are for looking up.",
        "",
        "## By ROCm version",
        "",
        "`hipport.rules.api.load(VERSION)`: names with a HIP name in that version, and without.",
        "",
        "| ROCm | renamed | the same | without | headers |",
        "|---|--:|--:|--:|--:|",
    ]
    for rocm in api.KNOWN:
        t = api.load(rocm)
        same = sum(1 for name in t.rows if name not in t.renames and t.rows[name].hip)
        lines.append(
            f"| {rocm} | {len(t.renames)} | {same} | {len(t.unmapped)} | {len(t.headers)} |"
        )
    decisions = api_audit.read(ROOT / "rules" / "api" / "decisions.tsv")
    counts = Counter(d["decision"] for d in decisions)
    lines += [
        "",
        "## Decisions",
        "",
        "`rules/api/decisions.tsv` says for each candidate and each contradicted pair why: "
        + ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) + ".",
        "Where the tables contradict the published map, cuDNN aside:",
        "",
        "| CUDA | HIP | decision | reason |",
        "|---|---|---|---|",
    ]  # fmt: skip
    for d in decisions:
        if d["decision"] in ("corrected", "dropped") and "alternatives" not in d["reason"]:
            lines.append(f"| `{d['cuda']}` | `{d['hip']}` | {d['decision']} | {d['reason']} |")
    lines += [
        "",
        "## Checked against",
        "",
        "`python scripts/api_audit.py`: rows whose HIP name is declared in HIP 5.2's headers or in",
        "the bindings of 6.4, 7.2 or 10.0, and of these the functions whose parameters were",
        "compared with CUDA 12.9's.",
        "",
        "```",
        _audit(),
        "```",
        "",
    ]
    return "\n".join(lines)


def _audit() -> str:
    return api_audit.coverage(api_audit.tables(), api_audit.prototypes(live=False))


def _line(table: str, c: Counter[str]) -> str:
    return (
        f"| {table} | {c['rows']} | {_share(c['mapped'], c['rows'])} | {c['guided'] or '–'} "
        f"| {c['rows_2024'] or '–'} | {_share(c['mapped_2024'], c['rows_2024'])} "
        f"| {c['rows_2025'] or '–'} | {_share(c['mapped_2025'], c['rows_2025'])} |"
    )


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", type=Path)
    options = parser.parse_args()
    if options.facts:
        renew(options.facts)
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
