"""`hipport coverage`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hipport.rules import api
from hipport.rules.api import ApiRow
from tests.cli.test_convert import refused, run
from tests.project.tree import put

Out = pytest.CaptureFixture[str]

SOURCE = b"""\
#include <cuda_runtime.h>
#include <cub/cub.cuh>
#include "own.h"
// cudaMallocPitch in a comment
const char* text = "cudaMallocHost";
struct Handle { int cudaFree; };
int cudaSetDevice(int d);
void f(Handle h, void* p) {
    cudaMalloc(&p, 4);
    cudaMalloc(&p, 8);
    h.cudaFree = 1;
    cudaSetDevice(0);
    cudaFrobnicate(p);
    float y = sinf(1.0f);
    CUtensorMap map;
    cub::BlockReduce<int, 128> r;
}
"""


def names(capfd: Out, *arguments: object) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The names that a coverage prints as JSON, and all of it."""
    status, out, err = run(capfd, "coverage", "--json", *arguments)
    assert (status, err) == (0, "")
    data = json.loads(out)
    return {item["name"]: item for item in data["names"]}, data


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "p"
    put(root, {"a.cu": SOURCE, "own.h": b"#define cudaHostAlloc(p) own(p)\n",
               "b.cc": b"void g() { cudaHostAlloc(1); cudaDeviceReset(); }\n",
               "plain.c": b"int cu = 1;\n", "setup.py": b"import torch\n"})  # fmt: skip
    return root


def test_counts_what_is_used(project: Path, capfd: Out) -> None:
    found, data = names(capfd, project)
    malloc = found["cudaMalloc"]
    assert (malloc["uses"], malloc["files"], malloc["share"]) == (2, 1, "mapped")
    assert malloc["hip"] == "hipMalloc"
    assert malloc["places"] == [{"path": "a.cu", "line": 9}, {"path": "a.cu", "line": 10}]
    assert found["cuda_runtime.h"]["hip"] == "hip/hip_runtime.h"
    assert found["CUtensorMap"]["share"] == "unmapped"
    assert found["cudaFrobnicate"]["share"] == "unknown"
    assert any(name.startswith("cub") and item["library"] == "cub" for name, item in found.items())
    assert (data["files"], data["cuda_files"], data["files_of_other_kinds"]) == (4, 2, 1)
    assert data["totals"]["unknown"] == 1
    for share, total in data["totals"].items():
        assert total == sum(item["share"] == share for item in found.values())
        assert total == sum(library[share] for library in data["libraries"])


def test_what_is_no_use_is_not_counted(project: Path, capfd: Out) -> None:
    found, _ = names(capfd, project)
    # A comment, a string, a member, a function of the project's own, C's own library.
    unused = {"cudaMallocPitch", "cudaMallocHost", "cudaFree", "cudaSetDevice", "sinf"}
    assert not unused & found.keys()


def test_own_macros_reach_where_they_are_included(project: Path, capfd: Out) -> None:
    found, _ = names(capfd, project)
    # b.cc does not include own.h, so there the name is CUDA's.
    assert [p["path"] for p in found["cudaHostAlloc"]["places"]] == ["b.cc"]
    put(project, {"b.cc": b'#include "own.h"\nvoid g() { cudaHostAlloc(1); }\n'})
    found, _ = names(capfd, project)
    assert "cudaHostAlloc" not in found


def test_the_version_decides(tmp_path: Path, capfd: Out) -> None:
    put(tmp_path, {"a.cu": b"cublasDataType_t t;\n"})
    old, _ = names(capfd, tmp_path, "--rocm", "5.7")
    new, _ = names(capfd, tmp_path, "--rocm", "7.0")
    assert old["cublasDataType_t"]["hip"] == "hipblasDatatype_t"
    assert new["cublasDataType_t"]["hip"] == "hipDataType"


def test_text(project: Path, capfd: Out) -> None:
    status, out, err = run(capfd, "coverage", project)
    assert (status, err) == (0, "")
    assert "in 2 of 4 files" in out
    assert "cudaFrobnicate  1 x, a.cu:13" in out
    assert "cudaMalloc " not in out
    _, out, _ = run(capfd, "coverage", project, "-v")
    assert "cudaMalloc  2 x, a.cu:9  hipMalloc" in out


def test_no_cuda(tmp_path: Path, capfd: Out) -> None:
    put(tmp_path, {"a.c": b"int main(void) { return 0; }\n"})
    status, out, _ = run(capfd, "coverage", tmp_path)
    assert status == 0
    assert out.startswith("0 CUDA names in 0 of 1 files")


def test_unreadable_files_are_named(project: Path, capfd: Out) -> None:
    (project / "gone.cu").symlink_to(project / "nowhere.cu")
    status, out, _ = run(capfd, "coverage", project)
    assert status == 3
    assert "gone.cu: dangling link" in out
    assert "cudaFrobnicate" in out


def test_bad_arguments(tmp_path: Path, capfd: Out) -> None:
    assert "no such file" in refused(capfd, "coverage", tmp_path / "none")
    assert "4.2" in refused(capfd, "coverage", tmp_path, "--rocm", "4.2")


def test_share() -> None:
    from hipport.coverage import Share, share

    row = ApiRow("cudaX", "function", "runtime", "hipX", newest="hipX")
    assert share(row) is Share.MAPPED
    assert share(ApiRow("cudaX", "function", "runtime", "hipX", differs="order")) is Share.ASSISTED
    assert share(ApiRow("cudaX", "function", "runtime", "")) is Share.UNMAPPED
    assert share(ApiRow("cudaX", "function", "runtime", "", replacement="y")) is Share.ASSISTED
    later = ApiRow("cudaX", "function", "runtime", "", replacement="from 7.0", newest="hipX")
    assert share(later) is Share.UNMAPPED
    assert {share(r) for r in api.load().rows.values()} == {
        Share.MAPPED,
        Share.ASSISTED,
        Share.UNMAPPED,
    }
