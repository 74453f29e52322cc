"""Checks ``rules/api`` against what headers and bindings declare; prints coverage by library.

    python scripts/api_audit.py                 every row that is wrong, and the coverage
    python scripts/api_audit.py --page OUT FACTS   the page docs/api-coverage.md

Declarations come from ``fixtures/api/prototypes.tsv`` (see ``api_facts.py``) and, where HIP's
headers are installed, from those. A row is wrong where

- its HIP name is declared nowhere,
- its parameters are of other number or kind than CUDA's and `differs` is empty,
- bindings of a version lack the name that the table gives for the version,
- a public CUDA name has no row,
- a decision is not what the tables hold.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import api_facts

from hipport.rules import api

ROOT = Path(__file__).resolve().parent.parent
Row = dict[str, str]
Prototypes = dict[tuple[str, str], list[Row]]

BINDINGS = {"runtime": "hip", "driver": "hip", "blas": "hipblas", "fft": "hipfft",
            "rand": "hiprand", "sparse": "hipsparse", "solver": "hipsolver", "rtc": "hiprtc",
            "nccl": "rccl"}  # fmt: skip
"""Which binding declares a table's names, in 6.4, 7.2 and 10.0."""

ONLY_NEWEST = {"blaslt": "hipblaslt", "tensor": "hiptensor"}
UNCHECKED = frozenset({"cub", "thrust", "groups", "caffe2"})
"""C++ templates and macros whose headers can be had neither from Debian nor as bindings."""

NOT_BOUND = (
    r"hip(GL|Graphics)\w*|HIPFFT_CB_\w+|hipfft(Xt|Callback)\w*|HIPFFT_(COPY|FORMAT|XT)\w*|"
    r"hiprand(State|_|\b)\w*|hiprandMake\w+|hip(Kernel|Launch|Stream)\w*Attr\w*|hipStreamPerThread|"
    r"roctx(Mark|RangePush|RangeStart)|hiptensor\w+|HIP_(R|C)_\w+"
)
"""Names of headers, templates and macros that the bindings leave out; Debian's headers may have
them."""

CUDA_LIBRARIES = {"cuda_runtime": "runtime and driver", "cublas": "cuBLAS", "cufft": "cuFFT",
                  "curand": "cuRAND", "cusparse": "cuSPARSE", "cusolver": "cuSOLVER",
                  "cutensor": "cuTENSOR", "cuda_nvrtc": "NVRTC", "nccl": "NCCL", "nvtx": "NVTX",
                  "nvml": "NVML"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """A row that is wrong."""

    table: str
    cuda: str
    what: str

    def __str__(self) -> str:
        return f"rules/api/{self.table}.tsv: {self.cuda}: {self.what}"


def read(path: Path) -> list[Row]:
    """The rows of a tab-separated table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def prototypes(live: bool = True) -> Prototypes:
    """Declarations by side and name, with those of the installed HIP headers."""
    out: Prototypes = defaultdict(list)
    for row in read(ROOT / "fixtures" / "api" / "prototypes.tsv"):
        out[row["side"], row["name"]].append(row)
    found = api_facts.installed() if live else None
    if found is not None:
        version, declared = found
        for name in declared.names():
            kind = declared.kind(name)
            out["hip", name].append(
                {"side": "hip", "name": name, "kind": kind, "versions": version, "library": "",
                 "shapes": " ".join(declared.shapes(name)) if kind == "function" else ""}
            )  # fmt: skip
    return dict(out)


def tables(folder: Path = ROOT / "rules" / "api") -> dict[str, list[Row]]:
    """The name tables by library."""
    others = ("headers", "namespaces", "decisions")
    return {f.stem: read(f) for f in sorted(folder.glob("*.tsv")) if f.stem not in others}


def _shapes(rows: list[Row]) -> set[str]:
    return {shape for row in rows for shape in row["shapes"].split()}


def _versions(rows: list[Row]) -> set[str]:
    return {v for row in rows for v in row["versions"].split(",")}


def undeclared(table: str, row: Row, known: Prototypes, decided: set[tuple[str, str]]) -> str:
    """What to say where a HIP name is declared nowhere, else nothing."""
    hip = row["hip"]
    if not hip or table in UNCHECKED or ("hip", hip) in known or (row["cuda"], hip) in decided:
        return ""
    removed = row["hip_removed"] and api.numbers(row["hip_removed"]) <= (10,)
    newer = row["hip_added"] and api.numbers(row["hip_added"]) > (5, 2)
    if table == "device" and newer:
        return ""  # Headers of device functions are at hand for 5.2 alone.
    if removed or re.fullmatch(NOT_BOUND, hip):
        return ""
    return f"{hip} is declared in no header or binding"


def shape(row: Row, known: Prototypes) -> str:
    """What to say where parameters differ without a note, else nothing."""
    # cublas_v2.h and cuda.h give a plain name to the form whose symbol ends in _v2.
    ours = [
        r
        for end in ("", "_v2", "_v3")
        for r in known.get(("cuda", re.sub(r"(_64)?$", rf"{end}\1", row["cuda"], count=1)), [])
    ]
    theirs = known.get(("hip", row["hip"]), [])
    here, there = _shapes(ours), _shapes(theirs)
    if not here or not there or row["differs"] or here & there:
        return ""
    return (
        f"takes {'/'.join(sorted(here))} where {row['hip']} takes {'/'.join(sorted(there))}; "
        "say so in 'differs'"
    )


def version(table: str, row: Row, known: Prototypes) -> str:
    """What to say where the bindings of a version lack the version's name, else nothing."""
    binding = BINDINGS.get(table)
    if binding is None:
        return ""
    source = api.parse_row(table, row)
    for number in ("6.4", "7.2", "10.0"):
        hip, _ = api.resolve(source, api.numbers(number))
        found = known.get(("hip", hip), [])
        bound = [r for r in found if r["kind"] in ("function", "enum")
                 and {"6.4", "7.2", "10.0"} & set(r["versions"].split(","))]  # fmt: skip
        if hip and bound and number not in _versions(found):
            return (
                f"{hip} is not in the bindings of {number} ({', '.join(sorted(_versions(bound)))})"
            )
    return ""


def without_row(known: Prototypes, named: set[str]) -> list[Problem]:
    """Public CUDA functions, types and values that no table has."""
    import api_import

    out = []
    for (side, name), found in known.items():
        if side != "cuda" or name in named or name in api.GUARDS:
            continue
        library = found[0]["library"]
        if library not in CUDA_LIBRARIES or found[0]["kind"] == "macro":
            continue
        if api_import.OWN.fullmatch(name) and library not in ("nccl", "nvtx", "nvml"):
            out.append(Problem("?", name, f"a public {found[0]['kind']} of {library} has no row"))
    return out


def decisions(rows: dict[str, list[Row]]) -> list[Problem]:
    """Decisions that the tables do not follow."""
    by_name = {row["cuda"]: (table, row) for table, found in rows.items() for row in found}
    out = []
    for decision in read(ROOT / "rules" / "api" / "decisions.tsv"):
        table, row = by_name.get(decision["cuda"], ("decisions", {"hip": ""}))
        kept = decision["decision"] in ("accepted", "confirmed", "corrected")
        if kept and row["hip"] != decision["hip"]:
            out.append(Problem(table, decision["cuda"], f"decided to be {decision['hip']}"))
        if not kept and row["hip"] == decision["hip"]:
            out.append(Problem(table, decision["cuda"], f"decided not to be {decision['hip']}"))
    return out


def check(known: Prototypes, rows: dict[str, list[Row]]) -> list[Problem]:
    """Everything that is wrong."""
    decided = {
        (d["cuda"], d["hip"])
        for d in read(ROOT / "rules" / "api" / "decisions.tsv")
        if d["decision"] in ("accepted", "confirmed")
    }
    out = []
    for table, found in rows.items():
        for row in found:
            for what in (
                undeclared(table, row, known, decided),
                shape(row, known),
                version(table, row, known),
            ):
                if what:
                    out.append(Problem(table, row["cuda"], what))
    out += decisions(rows)
    return out + without_row(known, {r["cuda"] for found in rows.values() for r in found})


def coverage(rows: dict[str, list[Row]], known: Prototypes) -> str:
    """A line a table: rows, with a HIP name, of these seen declared, parameters compared."""
    lines = [f"{'table':12}{'rows':>7}{'mapped':>8}{'declared':>10}{'compared':>10}"]
    for table, found in rows.items():
        mapped = [r for r in found if r["hip"]]
        seen = [r for r in mapped if ("hip", r["hip"]) in known]
        both = [r for r in seen if _shapes(known.get(("cuda", r["cuda"]), []))
                and _shapes(known[("hip", r["hip"])])]  # fmt: skip
        lines.append(f"{table:12}{len(found):7}{len(mapped):8}{len(seen):10}{len(both):10}")
    return "\n".join(lines)


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="show problems whose text holds this")
    options = parser.parse_args()
    known, rows = prototypes(), tables()
    print(coverage(rows, known))
    problems = check(known, rows)
    for problem in problems:
        if options.only in str(problem):
            print(problem)
    print(f"{len(problems)} problems: {dict(Counter(p.table for p in problems))}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
