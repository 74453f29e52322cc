"""The tables agree with headers and bindings, and the check that says so can fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hipport.data import rules_dir

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import api_audit
import api_compile
import api_headers
import api_page


@pytest.fixture(scope="module")
def known() -> api_audit.Prototypes:
    """Declarations of both sides, the installed headers included."""
    return api_audit.prototypes()


@pytest.fixture
def rows() -> dict[str, list[api_audit.Row]]:
    """The tables, fresh for each test."""
    return api_audit.tables(rules_dir() / "api")


def test_no_row_is_contradicted(
    known: api_audit.Prototypes, rows: dict[str, list[api_audit.Row]]
) -> None:
    problems = api_audit.check(known, rows)
    print(api_audit.coverage(rows, known))
    assert not problems, "\n".join(map(str, problems))


@pytest.mark.parametrize(
    ("cuda", "change", "says"),
    [
        ("cudaMalloc", {"hip": "hipMaloc"}, "hipMaloc is declared in no header"),
        ("cudaMalloc", {"hip": "hipMemset"}, "takes pi where hipMemset takes pii"),
        ("cusparseSpSM_solve", {"differs": ""}, "say so in 'differs'"),
        ("cudaLaunchKernelExC", {"hip_added": ""}, "not in the bindings of 6.4"),
        ("cudaErrorLossyQuery", {"hip": "hipErrorLossyQuery"}, "decided not to be"),
        ("cuEventRecordWithFlags", {"hip": ""}, "decided to be hipEventRecordWithFlags"),
    ],
)
def test_a_wrong_row_is_named(
    known: api_audit.Prototypes,
    rows: dict[str, list[api_audit.Row]],
    cuda: str,
    change: dict[str, str],
    says: str,
) -> None:
    (row,) = [r for found in rows.values() for r in found if r["cuda"] == cuda]
    row.update(change)
    said = [str(p) for p in api_audit.check(known, rows)]
    assert any(cuda in text and says in text for text in said), said


def test_a_missing_row_is_named(
    known: api_audit.Prototypes, rows: dict[str, list[api_audit.Row]]
) -> None:
    rows["runtime"] = [r for r in rows["runtime"] if r["cuda"] != "cudaMemcpy"]
    said = [str(p) for p in api_audit.check(known, rows)]
    assert said == ["rules/api/?.tsv: cudaMemcpy: a public function of cuda_runtime has no row"]


def test_headers_are_read() -> None:
    found = api_headers.Declarations()
    api_headers.read_c(
        """
        #define OLD new_one
        typedef struct thing_st *thing_t;  /* ; } */
        typedef enum { A = 1, B } kind_t DEPRECATED_TYPE;
        struct __raw { int x; };
        extern "C" { int API call(thing_t a, kind_t b, float c, const struct __raw d); }
        namespace n { inline int body(int a) { return call(a); } }
        typedef int (*callback_t)(int, float);
        """,
        found,
    )
    assert found.shapes("call") == ["pifs"]
    assert found.shapes("body") == ["i"]
    assert {"A", "B"} <= found.enums
    assert found.kind("callback_t") == "type"
    assert found.kind("OLD") == "macro"


def test_bindings_are_read() -> None:
    found = api_headers.Declarations()
    api_headers.read_cython(
        "cdef extern from 'x.h':\n"
        "    cdef enum kind:\n        A\n        B\n"
        "    ctypedef void * handle_t\n"
        "cdef error_t call(handle_t h,kind k,unsigned long n) except? bad nogil\n",
        found,
    )
    assert found.shapes("call") == ["pii"]
    assert found.enums == {"A", "B"}


def test_every_mapped_name_of_the_installed_headers_compiles() -> None:
    clang = api_compile.compiler()
    assert clang is not None, "clang is not installed (see scripts/apt-packages.txt)"
    text, count = api_compile.unit()
    assert count > 1500
    said = api_compile.compile_unit(clang, text)
    assert not said, said


def test_the_compiler_names_the_row_of_an_unknown_name() -> None:
    clang = api_compile.compiler()
    assert clang is not None, "clang is not installed (see scripts/apt-packages.txt)"
    said = api_compile.compile_unit(
        clang, "namespace at_1 { using ::hipMaloc; }  // rules/api/runtime.tsv: cudaMalloc\n"
    )
    assert "rules/api/runtime.tsv: cudaMalloc" in said


def test_the_page_is_current() -> None:
    said = "docs/api-coverage.md is out of date: run python scripts/api_page.py"
    assert api_page.PAGE.read_text() == api_page.page(), said


def test_no_table_is_below_the_published_one() -> None:
    found = api_page.figures()
    for table, counts in found.items():
        if table != "dnn":
            assert counts["mapped"] >= counts["mapped_2024"], table
        assert counts["rows"] >= counts["rows_2024"], table
    for table in ("runtime", "driver"):
        assert found[table]["mapped"] > found[table]["mapped_2025"], table
        assert found[table]["rows"] > found[table]["rows_2025"], table
