"""The name tables: form, versions, cache."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hipport.data import rules_dir
from hipport.rules import api

HEAD = "\t".join(api.COLUMNS) + "\n"


def row(**values: str) -> str:
    """A line of a table."""
    return "\t".join(values.get(c, "") for c in api.COLUMNS) + "\n"


def folder(at: Path, *rows: str) -> Path:
    """A rules folder with one table."""
    (at / "runtime.tsv").write_text(HEAD + "".join(rows))
    (at / "headers.tsv").write_text("cuda\thip\tlibrary\talternatives\n")
    (at / "namespaces.tsv").write_text("cuda\thip\tlibrary\n")
    return at


@pytest.mark.parametrize(
    ("rocm", "cuda", "hip"),
    [
        ("5.7", "cublasGemmEx", "hipblasGemmEx"),
        ("6.2", "cublasGemmEx", "hipblasGemmEx_v2"),
        ("6.4", "cublasGemmEx", "hipblasGemmEx_v2"),
        ("7.0", "cublasGemmEx", "hipblasGemmEx"),
        ("10.0", "cublasGemmEx", "hipblasGemmEx"),
        ("5.7", "cublasDataType_t", "hipblasDatatype_t"),
        ("6.2", "cublasDataType_t", "hipDataType"),
        ("6.2", "CU_JIT_TARGET", "HIPRTC_JIT_TARGET"),
        ("6.4", "CU_JIT_TARGET", "hipJitOptionTarget"),
        ("6.4", "cudaDevAttrPciDomainId", "hipDeviceAttributePciDomainID"),
        ("7.2", "cudaDevAttrPciDomainId", "hipDeviceAttributePciDomainId"),
        ("6.3", "cudaMalloc", "hipMalloc"),
        ("7.1.1", "cudaMalloc", "hipMalloc"),
        ("10.0", "ncclAllReduce", "ncclAllReduce"),
        ("10.0", "nvtxRangeEnd", "roctxRangeStop"),
        ("10.0", "cutensorCreate", "hiptensorCreate"),
        ("10.0", "cudaDevAttrMaxBlocksPerMultiprocessor",
         "hipDeviceAttributeMaxBlocksPerMultiProcessor"),
    ],
)  # fmt: skip
def test_names_by_version(rocm: str, cuda: str, hip: str) -> None:
    table = api.load(rocm)
    found = table.row(cuda.encode())
    assert found is not None
    assert found.hip == hip
    assert table.renames.get(cuda.encode(), cuda.encode()) == hip.encode()
    assert cuda.encode() not in table.unmapped


@pytest.mark.parametrize(
    ("rocm", "cuda", "says"),
    [
        ("6.2", "cudaLaunchKernelExC", "hipLaunchKernelExC from ROCm 7.2 on"),
        ("5.7", "cuda_fp8.h", "hip/hip_fp8.h from ROCm 6.2 on"),
        ("10.0", "nvtxDomainRangePushEx", "roctxRangePushA with the message alone"),
        ("10.0", "cuMemcpy", "hipMemcpy with hipMemcpyDefault"),
    ],
)
def test_what_a_version_lacks_names_the_version_or_the_replacement(
    rocm: str, cuda: str, says: str
) -> None:
    table = api.load(rocm)
    assert table.unmapped[cuda.encode()].replacement == says
    assert cuda.encode() not in table.renames
    assert cuda.encode() not in table.headers


def test_what_a_version_lacks_is_there_in_a_later_one() -> None:
    assert b"cudaLaunchKernelExC" in api.load("7.2").renames
    assert b"cuda_fp8.h" in api.load("6.2").headers


@pytest.mark.parametrize("rocm", api.KNOWN)
def test_guards_stand_in_no_table(rocm: str) -> None:
    table = api.load(rocm)
    for name in api.GUARDS:
        assert name.encode() not in table.rows
        assert name.encode() not in table.renames


@pytest.mark.parametrize("rocm", api.KNOWN)
def test_cudnn_is_never_renamed_and_names_a_call(rocm: str) -> None:
    table = api.load(rocm)
    names = [n for n in table.rows if n.lower().startswith(b"cudnn")]
    assert len(names) > 1000
    assert not table.renames.keys() & set(names)
    forward = table.row(b"cudnnConvolutionForward")
    assert forward is not None
    assert forward.replacement == "miopenConvolutionForward"
    assert all(table.rows[n].replacement for n in names)


@pytest.mark.parametrize(
    ("wrong", "near"), [("99", "10.0"), ("6.9", "6.4"), ("6", "6.4"), ("five", "5.7")]
)
def test_unknown_versions_are_refused_with_near_ones(wrong: str, near: str) -> None:
    with pytest.raises(api.UnknownRocm, match=f"'{wrong}'.*{near}"):
        api.load(wrong)


def test_the_installed_version_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".info").mkdir()
    version = tmp_path / ".info" / "version"
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert api.default_rocm() == api.KNOWN[-1]
    version.write_text("6.4.1-83\n")
    assert api.default_rocm() == "6.4.1"
    version.write_text("7.9.0\n")
    assert api.default_rocm() == "7.2"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"cuda": "cuda A"}, "row 2, column 'cuda'"),
        ({"cuda": "__CUDACC__"}, "guard checks"),
        ({"kind": "thing"}, "row 2, column 'kind': 'thing'"),
        ({"hip": "void*"}, "row 2, column 'hip'"),
        ({"hip_added": "ROCm 6"}, "row 2, column 'hip_added'"),
        ({"alternatives": "7.0=x"}, "row 2, column 'alternatives'"),
        ({"alternatives": "<7.0=x <6.0=y"}, "versions must ascend"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, values: dict[str, str], says: str) -> None:
    good = {"cuda": "cudaA", "kind": "function", "hip": "hipA"}
    api.compile_tables(folder(tmp_path, row(**good)), "10.0")
    with pytest.raises(api.ApiError, match=r"runtime\.tsv") as error:
        api.compile_tables(folder(tmp_path, row(**{**good, **values})), "10.0")
    assert says in str(error.value)


def test_a_row_of_wrong_length_and_a_name_twice_are_refused(tmp_path: Path) -> None:
    good = row(cuda="cudaA", kind="function", hip="hipA")
    with pytest.raises(api.ApiError, match="row 3: 2 cells"):
        api.compile_tables(folder(tmp_path, good, "a\tb\n"), "10.0")
    with pytest.raises(api.ApiError, match="cudaA also stands in runtime"):
        api.compile_tables(folder(tmp_path, good, good), "10.0")


def test_alternatives_and_bounds(tmp_path: Path) -> None:
    at = folder(
        tmp_path,
        row(cuda="a", kind="function", hip="h", alternatives="<6.0= <7.0=old"),
        row(cuda="b", kind="function", hip="i", hip_added="6.4.0", hip_removed="7.2"),
    )

    def names(rocm: str) -> tuple[bytes | None, bytes | None]:
        renames = api.compile_tables(at, rocm)[0]
        return renames.get(b"a"), renames.get(b"b")

    assert names("5.7") == (None, None)
    assert names("6.0") == (b"old", None)
    assert names("6.4") == (b"old", b"i")
    assert names("7.0") == (b"h", b"i")
    assert names("7.2.1") == (b"h", None)


def test_a_broken_or_stale_cache_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HIPPORT_CACHE_DIR", str(tmp_path))
    api.load.cache_clear()
    first = dict(api.load("7.0").renames)
    (cache,) = tmp_path.glob("api-*")
    whole = cache.read_bytes()
    for broken in (b"", whole[:40], whole[:-1] + b"x", b"\0" * len(whole)):
        cache.write_bytes(broken)
        api.load.cache_clear()
        assert dict(api.load("7.0").renames) == first
        assert cache.read_bytes() == whole
    api.load.cache_clear()


def test_the_cache_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPPORT_CACHE_DIR", str(tmp_path))
    api.load.cache_clear()
    first = api.load("7.0")
    api.load.cache_clear()

    def never(*_: object) -> None:
        raise AssertionError("compiled although the cache is warm")

    monkeypatch.setattr(api, "compile_tables", never)
    second = api.load("7.0")
    assert second.renames == first.renames
    assert second.rows[b"cudaMalloc"] == first.rows[b"cudaMalloc"]
    api.load.cache_clear()


def test_a_cache_that_cannot_be_written_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HIPPORT_CACHE_DIR", str(blocked))
    api.load.cache_clear()
    assert api.load("7.0").renames[b"cudaMalloc"] == b"hipMalloc"
    api.load.cache_clear()


def test_the_version_option_loads_no_rules() -> None:
    code = (
        "import sys; from hipport.cli.main import guarded; guarded(['--version']);"
        "sys.exit(any(m.startswith('hipport.rules') for m in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("hipport ")


def test_every_table_is_sorted() -> None:
    for file in sorted((rules_dir() / "api").glob("*.tsv")):
        names = [line.split("\t")[0] for line in file.read_text().splitlines()[1:]]
        if file.stem not in ("headers", "namespaces"):
            assert names == sorted(names), file.name
