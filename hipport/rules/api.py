"""The name tables of ``rules/api``: which CUDA name is which HIP name, by ROCm version."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hipport.data import rules_dir

KNOWN = ("5.7", "6.2", "6.4", "7.0", "7.2", "10.0")


class UnknownRocm(ValueError):
    """The ROCm version is none that hipport knows."""


@dataclass(frozen=True, slots=True)
class ApiRow:
    """One CUDA name."""

    cuda: str
    kind: str
    library: str
    hip: str
    hip_header: str = ""
    replacement: str = ""


@dataclass(frozen=True)
class ApiTable:
    """All names for one ROCm version."""

    rocm: str
    renames: Mapping[bytes, bytes]
    headers: Mapping[bytes, bytes]
    namespaces: Mapping[bytes, bytes]
    unmapped: Mapping[bytes, ApiRow]
    rows: Mapping[bytes, ApiRow]

    def row(self, name: bytes) -> ApiRow | None:
        """The row of a CUDA name."""
        return self.rows.get(name)


@lru_cache(maxsize=8)
def load(rocm: str | None = None) -> ApiTable:
    """The tables for a ROCm version (None: the newest known).

    Raises:
        UnknownRocm: the version is not known.
    """
    version = rocm or KNOWN[-1]
    try:
        number = tuple(int(p) for p in version.split("."))
    except ValueError:
        raise UnknownRocm(f"unknown ROCm version '{version}'") from None
    renames: dict[bytes, bytes] = {}
    unmapped: dict[bytes, ApiRow] = {}
    rows: dict[bytes, ApiRow] = {}
    headers: dict[bytes, bytes] = {}
    for path in sorted((rules_dir() / "api").glob("*.tsv")):
        with path.open(newline="") as file:
            for raw in csv.DictReader(file, delimiter="\t"):
                if path.stem == "headers":
                    headers[raw["cuda"].encode()] = raw["hip"].encode()
                    continue
                hip = raw["hip"]
                if number < (7, 0) and raw["hip_before_7"]:
                    hip = raw["hip_before_7"]
                name = raw["cuda"].encode()
                row = ApiRow(raw["cuda"], raw["kind"] or "function", path.stem, hip)
                if path.stem in ("cub", "dnn", "caffe2"):
                    rows[name] = row
                    continue
                rows[name] = row
                if not hip:
                    unmapped[name] = row
                elif hip != raw["cuda"]:
                    renames[name] = hip.encode()
    namespaces = {b"cub": b"hipcub", b"thrust::cuda::par": b"thrust::hip::par",
                  b"thrust::cuda": b"thrust::hip"}  # fmt: skip
    return ApiTable(version, renames, headers, namespaces, unmapped, rows)
