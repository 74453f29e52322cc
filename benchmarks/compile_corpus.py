"""Compile converted sources of a pinned corpus for gfx90a with Debian's clang and HIP headers.

    python benchmarks/compile_corpus.py [--markdown docs/compile-corpus.md]

LightGBM's CUDA sources need HIP's headers, its own, and RCCL's one header. Debian 12 has no RCCL,
so that header is a stand-in of declarations written here: such a unit is *assumed*, not compiled,
as far as RCCL goes. Nothing is linked.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from corpus import Pin, ensure, pins

from hipport.api import Mode, Options, convert_paths

RCCL = """#pragma once
#include <hip/hip_runtime.h>
typedef struct ncclComm* ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef enum { ncclSuccess = 0 } ncclResult_t;
typedef enum { ncclInt8 = 0, ncclUint8 = 1, ncclInt32 = 2, ncclInt = 2, ncclUint32 = 3,
               ncclInt64 = 4, ncclUint64 = 5, ncclFloat16 = 6, ncclFloat32 = 7, ncclFloat = 7,
               ncclFloat64 = 8, ncclDouble = 8 } ncclDataType_t;
typedef enum { ncclSum, ncclProd, ncclMax, ncclMin } ncclRedOp_t;
const char* ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetUniqueId(ncclUniqueId*);
ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
ncclResult_t ncclCommDestroy(ncclComm_t);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t,
                           hipStream_t);
ncclResult_t ncclReduceScatter(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                               ncclComm_t, hipStream_t);
ncclResult_t ncclAllGather(const void*, void*, size_t, ncclDataType_t, ncclComm_t, hipStream_t);
ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                           hipStream_t);
"""
BITCODE = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
INCLUDES = ("include", "external_libs/eigen", "external_libs/fmt/include",
            "external_libs/fast_double_parser/include")  # fmt: skip
UNITS = (
    "src/cuda/cuda_algorithms.cu",
    "src/io/cuda/cuda_column_data.cu",
    "src/io/cuda/cuda_tree.cu",
    "src/objective/cuda/cuda_binary_objective.cu",
    "src/objective/cuda/cuda_multiclass_objective.cu",
    "src/objective/cuda/cuda_rank_objective.cu",
    "src/objective/cuda/cuda_regression_objective.cu",
    "src/boosting/cuda/cuda_score_updater.cu",
    "src/metric/cuda/cuda_pointwise_metric.cu",
    "src/treelearner/cuda/cuda_leaf_splits.cu",
)


def find(name: str) -> Pin:
    """A pinned corpus by name."""
    return next(p for p in pins() if p.name == name)


def compile_unit(root: Path, unit: str, stand_in: Path) -> str:
    """The compiler's first error, empty where the unit compiles."""
    command = [
        "clang++-19", "-x", "hip", "--offload-arch=gfx90a", "-O1", "-std=c++17", "-c", "-w",
        "--rocm-path=/usr", f"--rocm-device-lib-path={BITCODE}", "-D__HIP_PLATFORM_AMD__",
        "-DUSE_CUDA", "-DUSE_ROCM", "-DEIGEN_MPL2_ONLY", "-DUSE_SOCKET", f"-I{stand_in}",
        *(f"-I{root / folder}" for folder in INCLUDES), str(root / unit), "-o", "/dev/null",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    return next((line for line in done.stderr.splitlines() if "error" in line), "failed")


def main() -> int:
    """Convert, compile, print; the exit status is 1 where a unit fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    corpus = find("lightgbm")
    with tempfile.TemporaryDirectory() as folder:
        root, stand_in = Path(folder) / "converted", Path(folder) / "stand-in"
        (stand_in / "rccl").mkdir(parents=True)
        (stand_in / "rccl" / "rccl.h").write_text(RCCL)
        convert_paths([ensure(corpus)], Options(), mode=Mode.COPY, out=root)
        rows = [(unit, compile_unit(root, unit, stand_in)) for unit in UNITS]
    lines = [f"| {unit} | {e or 'compiled, RCCL assumed'} |" for unit, e in rows]
    table = "\n".join(["| unit | gfx90a |", "|---|---|", *lines])
    print(table)
    if options.markdown is not None:
        options.markdown.write_text(
            "# Converted corpus sources, compiled\n\n"
            f"LightGBM {corpus.version}, converted and compiled with Debian's clang 19 against HIP "
            "5.2, host and device,\ndown to machine code. RCCL's header is a stand-in: Debian 12 "
            "has none.\n\n`python benchmarks/compile_corpus.py --markdown docs/compile-corpus.md`"
            f"\n\n{table}\n"
        )
    return 1 if any(error for _, error in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
