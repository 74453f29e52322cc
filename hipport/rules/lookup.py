"""Looking names up: by CUDA or HIP name or glob; near matches; documentation pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from enum import Enum
from fnmatch import fnmatchcase

from hipport.rules.api import UNCONVERTED, ApiRow, ApiTable

_ROCM = "https://rocm.docs.amd.com/projects/{}/en/latest/"
_HIP = ("HIP", _ROCM.format("HIP"))
LIBRARIES: dict[str, tuple[str, str]] = {
    "runtime": _HIP,
    "driver": _HIP,
    "device": _HIP,
    "complex": _HIP,
    "groups": _HIP,
    "rtc": ("HIPRTC", _ROCM.format("HIP")),
    "blas": ("hipBLAS", _ROCM.format("hipBLAS")),
    "blaslt": ("hipBLASLt", _ROCM.format("hipBLASLt")),
    "rand": ("hipRAND", _ROCM.format("hipRAND")),
    "fft": ("hipFFT", _ROCM.format("hipFFT")),
    "sparse": ("hipSPARSE", _ROCM.format("hipSPARSE")),
    "solver": ("hipSOLVER", _ROCM.format("hipSOLVER")),
    "tensor": ("hipTensor", _ROCM.format("hipTensor")),
    "cub": ("hipCUB", _ROCM.format("hipCUB")),
    "thrust": ("rocThrust", _ROCM.format("rocThrust")),
    "libcudacxx": ("libhipcxx", "https://github.com/ROCm/libhipcxx"),
    "nccl": ("RCCL", _ROCM.format("rccl")),
    "dnn": ("MIOpen", _ROCM.format("MIOpen")),
    "nvtx": ("rocTX", _ROCM.format("rocprofiler-sdk")),
    "cupti": ("ROCprofiler-SDK", _ROCM.format("rocprofiler-sdk")),
    "nvml": ("AMD SMI", _ROCM.format("amdsmi")),
    "wmma": ("rocWMMA", _ROCM.format("rocWMMA")),
    "cutlass": ("Composable Kernel", _ROCM.format("composable_kernel")),
}
"""The ROCm library that stands for a table, and its documentation."""

_GLOB = re.compile(r"[*?\[]")
BY_NAMESPACE = frozenset({"cub", "thrust"})


class Status(str, Enum):
    """What becomes of a name."""

    RENAMED = "renamed"
    SAME = "same"
    """HIP has it under the same name."""
    GUIDANCE = "guidance"
    """The counterpart is named; a person ports it."""
    NONE = "none"


def status(row: ApiRow) -> Status:
    """What becomes of a row's name in its ROCm version."""
    if not row.hip:
        return Status.NONE
    if row.library in UNCONVERTED - BY_NAMESPACE:
        return Status.GUIDANCE
    return Status.SAME if row.hip == row.cuda else Status.RENAMED


def library(row: ApiRow) -> str:
    """The ROCm library of a row's counterpart, or the table's name where there is none."""
    return LIBRARIES.get(row.library, (row.library, ""))[0]


def documentation(row: ApiRow) -> str:
    """The documentation page of a row's library, empty where there is none."""
    return LIBRARIES.get(row.library, ("", ""))[1]


def history(row: ApiRow) -> list[tuple[str, str]]:
    """What earlier ROCm versions call a name: (before this version, name or empty)."""
    pairs = (word[1:].partition("=") for word in row.alternatives.split())
    return [(bound, name) for bound, _, name in pairs]


def all_rows(table: ApiTable) -> Iterator[ApiRow]:
    """Every row, headers and namespaces included, by CUDA name."""
    rows = {name.decode(): row for name, row in table.rows.items()}
    for kind, pairs in (("header", table.headers), ("namespace", table.namespaces)):
        for cuda, hip in pairs.items():
            name = cuda.decode()
            if name not in rows:
                rows[name] = _row_of(table, name, hip.decode(), kind)
    yield from (rows[name] for name in sorted(rows))


def _row_of(table: ApiTable, name: str, hip: str, kind: str) -> ApiRow:
    head = re.split(r"[/:]", name)[0]
    same = next((r for r in LIBRARIES if head.startswith((r, "cu" + r))), "runtime")
    return ApiRow(name, kind, same, hip, hip if kind == "header" else "", newest=hip)


class Lookup:
    """All names of one ROCm version, ready to be searched."""

    def __init__(self, table: ApiTable) -> None:
        self.rows = list(all_rows(table))

    def find(self, pattern: str) -> list[ApiRow]:
        """Rows whose CUDA or HIP name is `pattern`, or matches it where it is a glob."""
        if _GLOB.search(pattern):
            return [r for r in self.rows if any(fnmatchcase(n, pattern) for n in _names(r))]
        return [r for r in self.rows if pattern in _names(r)]

    def near(self, name: str, count: int = 5) -> list[str]:
        """Known names most like one that is not known, best first."""
        lower = name.lower()
        known: dict[str, str] = {}
        for row in self.rows:
            for each in _names(row):
                if abs(len(each) - len(name)) <= 6:
                    known.setdefault(each.lower(), each)
        # Comparing with all of them takes longer than a person waits for.
        alike = [k for k in known if k[:3] == lower[:3]] or list(known)
        return [known[k] for k in get_close_matches(lower, alike, count, 0.7)]


def _names(row: ApiRow) -> tuple[str, ...]:
    return tuple({n: None for n in (row.cuda, row.hip, row.newest) if n})
