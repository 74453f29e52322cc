"""Made the first form of ``rules/api`` from the fact tables; the tables are edited by hand since.

    python scripts/api_import.py FACTS OUT

FACTS holds ``api_map.tsv`` (October 2024), ``api_map_2025-07.tsv``, ``cuda_symbols.tsv`` and
``hip_symbols.tsv``. Running it again overwrites what was edited, so OUT should be a new folder
whose difference to ``rules/api`` is then read.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import defaultdict
from pathlib import Path

import api_decide
import api_extra

from hipport.rules.api import COLUMNS

Row = dict[str, str]

GROUPS = {"cublas": "blas", "cudnn": "dnn", "cufft": "fft", "curand": "rand", "nvrtc": "rtc",
          "cusolver": "solver", "cusparse": "sparse"}  # fmt: skip
HEADER = {
    "runtime": "hip/hip_runtime_api.h", "driver": "hip/hip_runtime_api.h",
    "device": "hip/hip_runtime.h", "complex": "hip/hip_complex.h", "blas": "hipblas/hipblas.h",
    "blaslt": "hipblaslt/hipblaslt.h", "rand": "hiprand/hiprand.h", "fft": "hipfft/hipfft.h",
    "sparse": "hipsparse/hipsparse.h", "solver": "hipsolver/hipsolver.h", "rtc": "hip/hiprtc.h",
    "tensor": "hiptensor/hiptensor.h", "cub": "hipcub/hipcub.hpp", "nccl": "rccl/rccl.h",
    "nvtx": "rocprofiler-sdk-roctx/roctx.h",
}  # fmt: skip
GUARDS = frozenset({"__CUDACC__", "__CUDA_ARCH__", "CUDA_VERSION", "CUDART_VERSION", "__NVCC__"})
OLD_STATE, NEW_STATE = (6, 2), "7.0"


def read(path: Path) -> list[Row]:
    """The rows of a tab-separated table."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def kind_of(name: str, guess: str) -> str:
    """The kind by the headers' shape, else by the name's."""
    if name.endswith((".h", ".hpp")):
        return "header"
    if guess in ("function", "type", "enum", "macro"):
        return guess
    if re.fullmatch(r"[A-Z0-9_]+|CU[A-Z]+_[A-Za-z0-9_]+|CUDA_[A-Za-z0-9_]+", name):
        return "enum"
    if re.search(r"(_t|_st|_enum|_struct)$", name) or re.match(
        r"(PFN_|CU[a-z]|__nv_\w+x?\d?$)", name
    ):
        return "type" if not name.startswith("__nv_cvt") else "function"
    if re.match(r"cuda(Error|DevAttr|Memcpy[A-Z]\w+To|GraphNodeType|Res|Limit|Channel)\w", name):
        return "enum" if not re.match(r"cudaErrorString", name) else "function"
    return "function"


def hip_header(library: str, cuda: str, hip: str) -> str:
    """The header that declares a HIP name."""
    if library == "device":
        for word, header in (("bf", "hip/hip_bf16.h"), ("fp8", "hip/hip_fp8.h"),
                             ("e4m3", "hip/hip_fp8.h"), ("e5m2", "hip/hip_fp8.h"),
                             ("fp6", "hip/hip_fp6.h"), ("fp4", "hip/hip_fp4.h"),
                             ("half", "hip/hip_fp16.h"), ("FP16", "hip/hip_fp16.h")):  # fmt: skip
            if word in cuda:
                return header
        return (
            "hip/hip_runtime.h" if not re.match(r"__h\w+|h[a-z0-9]+$", cuda) else "hip/hip_fp16.h"
        )
    if library == "rand" and cuda.startswith(("curandState", "curand_", "curandStateX")):
        return "hiprand/hiprand_kernel.h"
    if hip.startswith(("hipblaslt", "HIPBLASLT")):
        return HEADER["blaslt"]
    if hip.startswith(("hiprtc", "HIPRTC")):
        return HEADER["rtc"]
    if hip.startswith("hipfftXt"):
        return "hipfft/hipfftXt.h"
    if hip.startswith("hipGL") or "GraphicsGL" in hip:
        return "hip/hip_gl_interop.h"
    if re.match(r"HIP_[RC]_|hipDataType", hip):
        return "hip/library_types.h"
    return HEADER.get(library, "")


def plain(version: str) -> str:
    """A version without the name of the library that the map puts before some."""
    match = re.search(r"\d+(\.\d+)*", version)
    return match.group(0) if match else ""


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers."""
    return tuple(int(p) for p in version.split(".") if p.isdigit())


def alternatives(old: Row | None, new: Row) -> str:
    """What older versions call the name: ``<V=NAME`` words, oldest first."""
    if old is None or not old["hip_name"] or old["hip_name"] == new["hip_name"]:
        return ""
    before = old["hip_name"]
    added = new["hip_added"]
    bound = added if added and numbers(added) > OLD_STATE else NEW_STATE
    bound = re.sub(r"^(\d+\.\d+)\.0$", r"\1", bound)
    words = []
    if before == new["hip_name"] + "_v2":
        # hipBLAS had the name all along; between 6.0 and 7.0 the form with HIP's own data types
        # ended in _v2.
        since = re.sub(r"^(\d+\.\d+)\.0$", r"\1", old["hip_added"] or "6.0")
        words.append(f"<{since}={new['hip_name']}")
    elif old["hip_added"] and numbers(old["hip_added"]) > (5, 7):
        words.append(f"<{old['hip_added']}=")
    return " ".join([*words, f"<{bound}={before}"])


def base_rows(facts: Path) -> dict[str, list[Row]]:
    """Rows by library from both states of the map."""
    old = {row["cuda_name"]: row for row in read(facts / "api_map.tsv")}
    guess = {row["name"]: row["kind_guess"] for row in read(facts / "cuda_symbols.tsv")}
    out: dict[str, list[Row]] = defaultdict(list)
    for new in read(facts / "api_map_2025-07.tsv"):
        cuda, library = new["cuda_name"], new["library"]
        if cuda in GUARDS or library == "library":
            continue
        if library == "blas" and cuda.upper().startswith("CUBLASLT"):
            library = "blaslt"
        row = dict.fromkeys(COLUMNS, "")
        section = old.get(cuda, {}).get("section", "")
        row["kind"] = kind_of(cuda, guess.get(cuda, ""))
        if row["kind"] == "function" and "Data types" in section:
            row["kind"] = "enum"
        row.update(cuda=cuda, **{k: plain(new[k]) for k in (
            "cuda_added", "cuda_deprecated", "cuda_removed", "hip_added", "hip_deprecated",
            "hip_removed")})  # fmt: skip
        if library == "dnn":
            for key in ("hip_added", "hip_deprecated", "hip_removed"):
                row[key] = ""
        else:
            row["hip"] = new["hip_name"]
            row["hip_header"] = hip_header(library, cuda, row["hip"]) if row["hip"] else ""
            row["alternatives"] = alternatives(old.get(cuda), new)
            if "_v2" in row["alternatives"]:
                # The present form is the one of 7.0, whatever the age of the name.
                row["hip_added"] = ""
        if row["hip"] and not row["hip_header"]:
            row["hip_header"] = hip_header(library, cuda, row["hip"])
        out[library].append(row)
    return out


def write(path: Path, rows: list[Row]) -> None:
    """Write one table, sorted by the CUDA name."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter="\t", lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda r: r["cuda"]))


def load_prototypes(path: Path) -> api_extra.Prototypes:
    """Declarations by side and name."""
    out: api_extra.Prototypes = defaultdict(list)
    for row in read(path):
        out[row["side"], row["name"]].append(row)
    return dict(out)


CUDA_LIBRARIES = ("cuda_runtime", "cublas", "cufft", "curand", "cusparse", "cusolver", "cutensor",
                  "cuda_nvrtc")  # fmt: skip
OWN = re.compile(r"(cuda|cu|CU|nvrtc|NVRTC)[A-Za-z]*_?[A-Z0-9_]\w*")
HEADERS_OWN = re.compile(
    r"\w*(_H_?|API|_CB|DEPRECATED\w*|WINAPI|_VERSION|_VER_\w+|_MAJOR|_MINOR|_PATCH|Typedefs\w*)"
    r"|CUDART_\w*(CB|API|DEVICE)\w*|CUDA(_CB|API|RTAPI)\w*|CUDA_ENABLE\w*|CU(DA)?_?\w*ASSERT\w*"
)


def more_rows(prototypes: api_extra.Prototypes, known: set[str]) -> dict[str, list[Row]]:
    """Rows for public CUDA names that no map has: without HIP name until one is found."""
    out: dict[str, list[Row]] = defaultdict(list)
    for (side, name), found in prototypes.items():
        if side != "cuda" or name in known or name in GUARDS:
            continue
        if found[0]["library"] not in CUDA_LIBRARIES or not OWN.fullmatch(name):
            continue
        if found[0]["kind"] == "macro" and (
            HEADERS_OWN.fullmatch(name) or not re.match(r"cu|CUDA_|CU_|CUBLAS|CUFFT", name)
        ):
            continue
        out[api_decide.library_of(name)].append({"cuda": name, "kind": found[0]["kind"]})
    return out


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("facts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--prototypes", type=Path, default=Path("fixtures/api/prototypes.tsv"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    prototypes = load_prototypes(options.prototypes)
    tables: dict[str, dict[str, Row]] = defaultdict(dict)
    base = base_rows(options.facts)
    known = {row["cuda"] for rows in base.values() for row in rows}
    for source in (base, api_extra.extra_rows(prototypes), more_rows(prototypes, known)):
        for library, rows in source.items():
            for row in rows:
                tables[library].setdefault(row["cuda"], row)
    for row in tables["dnn"].values():
        row["replacement"] = api_extra.near(row["cuda"], api_extra.DNN_NEAR)
    decisions = api_decide.decide(
        tables,
        read(options.facts / "newer_mappings.tsv"),
        read(options.facts / "unconfirmed_mappings.tsv"),
        prototypes,
    )
    published = {
        row["cuda_name"]: row["hip_name"]
        for row in read(options.facts / "api_map_2025-07.tsv")
        if row["hip_name"]
    }
    decisions += api_decide.settle(tables, published)
    decided = {d[0] for d in decisions}
    here = {cuda: row.get("hip", "") for rows in tables.values() for cuda, row in rows.items()}
    for cuda, hip in published.items():
        if here.get(cuda) == hip or cuda in decided or cuda in GUARDS:
            continue
        reason = "cuDNN is ported by hand: see the row's MIOpen call"
        if not cuda.upper().startswith("CUDNN"):
            raise SystemExit(f"{cuda}: {hip} in the map, {here.get(cuda)} here, without a reason")
        decisions.append((cuda, hip, "guidance", reason))
    decisions.sort()
    with (options.out / "decisions.tsv").open("w", newline="") as file:
        listed = csv.writer(file, delimiter="\t", lineterminator="\n")
        listed.writerow(api_decide.COLUMNS)
        listed.writerows(decisions)
    for library, by_name in sorted(tables.items()):
        rows = [{c: row.get(c, "") for c in COLUMNS} for row in by_name.values()]
        for row in rows:
            found = prototypes.get(("cuda", row["cuda"]), [])
            if found and row["kind"] == "function" and found[0]["kind"] in ("type", "enum"):
                row["kind"] = found[0]["kind"]
            if row["hip"] and not row["hip_header"]:
                row["hip_header"] = hip_header(library, row["cuda"], row["hip"])
        write(options.out / f"{library}.tsv", rows)
        print(f"{library}\t{len(rows)}\t{sum(bool(r['hip']) for r in rows)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
