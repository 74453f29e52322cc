"""`hipport query`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hipport.rules import api
from tests.cli.test_convert import refused, run

Out = pytest.CaptureFixture[str]


def rows(capfd: Out, *arguments: str) -> dict[str, dict[str, Any]]:
    """The rows that a query prints as JSON, by CUDA name."""
    status, out, err = run(capfd, "query", "--json", *arguments)
    assert (status, err) == (0, "")
    return {row["cuda"]: row for row in json.loads(out)["rows"]}


def test_by_cuda_and_by_hip_name(capfd: Out) -> None:
    by_cuda = rows(capfd, "cudaMalloc")["cudaMalloc"]
    assert by_cuda["hip"] == "hipMalloc"
    assert by_cuda["header"].startswith("hip/")
    assert by_cuda["status"] == "renamed"
    assert rows(capfd, "hipMalloc")["cudaMalloc"] == by_cuda
    assert {"cublasSgemm", "cublasSgemm_v2"} <= rows(capfd, "hipblasSgemm").keys()


def test_the_version_decides(capfd: Out) -> None:
    old = rows(capfd, "cublasDataType_t", "--rocm", "5.7")["cublasDataType_t"]
    new = rows(capfd, "cublasDataType_t", "--rocm", "7.0")["cublasDataType_t"]
    assert (old["hip"], new["hip"]) == ("hipblasDatatype_t", "hipDataType")


def test_text_names_what_there_is(capfd: Out) -> None:
    status, out, err = run(capfd, "query", "cudaMalloc", "cuda_runtime.h")
    assert (status, err) == (0, "")
    assert out.startswith("cudaMalloc\n")
    for word in ("hipMalloc", "hip/hip_runtime.h", "header", "library", "documentation"):
        assert word in out
    assert "differs" not in out


def test_glob_lists(capfd: Out) -> None:
    found = rows(capfd, "cufftExec*")
    assert found
    assert all(n.startswith("cufftExec") for n in found)
    status, out, _ = run(capfd, "query", "cudaM*")
    assert status == 0
    lines = out.splitlines()
    assert any(line.split()[:2] == ["cudaMalloc", "hipMalloc"] for line in lines)
    assert lines[-1].startswith(f"{len(lines) - 1} names, ")


def test_star_is_every_row(capfd: Out) -> None:
    table = api.load()
    found = rows(capfd, "*")
    assert {n.decode() for n in table.rows} <= found.keys()
    assert {n.decode() for n in table.headers} <= found.keys()
    assert {n.decode() for n in table.namespaces} <= found.keys()
    assert rows(capfd, "*", "--rocm", "5.7").keys() == found.keys()


def test_unknown_names_get_near_ones(capfd: Out) -> None:
    status, out, err = run(capfd, "query", "cudaMaloc")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "did you mean cudaMalloc" in err
    status, out, err = run(capfd, "query", "cudaFree", "qqqqqqqq", "--json")
    assert (status, err) == (1, "")
    data = json.loads(out)
    assert [row["cuda"] for row in data["rows"]] == ["cudaFree"]
    assert data["unknown"] == [{"name": "qqqqqqqq", "near": []}]


def test_unknown_version(capfd: Out) -> None:
    assert "'4.2'" in refused(capfd, "query", "cudaMalloc", "--rocm", "4.2")
