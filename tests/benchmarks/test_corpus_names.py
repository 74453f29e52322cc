"""The scanner that counts CUDA names without the converter's help."""

import corpus_names
import pytest


def _names(text: str) -> list[str]:
    return [name.text for name in corpus_names.names(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cudaFree(p); // cudaMalloc", ["cudaFree", "p"]),
        ("/* cudaFree */ a", ["a"]),
        ("/* cudaFree", []),
        ('"cudaFree \\" cudaFree" a', ["a"]),
        ('R"x(cudaFree )" )x" a', ["a"]),
        ("'\\'' cudaFree", ["cudaFree"]),
        ("1'000'000 cudaFree", ["cudaFree"]),
        ("// a \\\n cudaFree\nb", ["b"]),
        ("#define F(x) cudaFree(x)", ["define", "F", "x", "cudaFree", "x"]),
        ("my_cudaFree xcudaFree", ["my_cudaFree", "xcudaFree"]),
        ('#include <cuda_runtime.h>\n#include "a/b.cuh"', ["cuda_runtime.h", "a/b.cuh"]),
    ],
)
def test_what_counts_as_a_name(text: str, expected: list[str]) -> None:
    assert _names(text) == expected


def test_lines_are_counted_through_comments_and_strings() -> None:
    data = b'/* a\nb */\nR"(\n)" cudaFree\n#include <cuda.h>\n  x'
    assert [(n.text, n.line) for n in corpus_names.names(data)] == [
        ("cudaFree", 4),
        ("cuda.h", 5),
        ("x", 6),
    ]


def test_left_finds_a_name_that_stayed() -> None:
    found = list(corpus_names.left(b"\nhipFree(a); cudaFree(b);", "f", {"cudaFree": "hipFree"}))
    assert found == [corpus_names.Left("f", 2, "cudaFree", "hipFree")]


@pytest.mark.parametrize(
    "text",
    [
        "#define cuCount 3",
        "struct cuCount { };",
        "using cuCount = int;",
        "typedef unsigned int cuCount;",
        "typedef enum { A, B } cuCount;",
        "enum E {\n  A = 1,\n  cuCount = 3 };",
        "enum { cuCount };",
        "typedef void (CUDART_CB *cuCount)(void *data);",
        "typedef struct {\n  int a;\n}\ncuCount;",
        "static int cuCount(int x);",
        "int cuCount = 4;",
        "void f(const char *cuCount, int b);",
    ],
)
def test_a_declared_name_is_the_code_bases_own(text: str) -> None:
    assert "cuCount" in corpus_names.declared(["cuCount"], [text.encode()])


@pytest.mark.parametrize(
    "text",
    [
        "return cuCount(3);",
        "int x = cuCount(3);",
        "f(cuCount, 3);",
        "// int cuCount;",
        'const char *s = "int cuCount;";',
        "using cuCount::x;",
        "if (a) cuCount(4);",
        "using namespace cuCount::b;",
        "enum E { A = cuCount, B };",
    ],
)
def test_a_use_is_no_declaration(text: str) -> None:
    assert corpus_names.declared(["cuCount"], [text.encode()]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int main() { return 0; }", False),
        ("// cudaMalloc\nint x;", False),
        ("__global__ void k();", True),
        ('#include "cuda_runtime.h"', True),
        ("thrust::sort(a, b);", True),
        ("int barracuda, accumulate;", False),
    ],
)
def test_mentions_cuda(text: str, expected: bool) -> None:
    assert corpus_names.mentions_cuda(text.encode()) is expected


def test_prose_is_comments_and_literals() -> None:
    data = b'#include "a.h"\nf("s", \'c\', R"(r)"); // one\n/* two */'
    assert corpus_names.prose(data) == [b'"s"', b"'c'", b'R"(r)"', b"// one", b"/* two */"]


def test_assembly_is_code() -> None:
    data = b'f("a"); asm volatile("mov.u32 %0, %1;" /* in */ : "=r"(g(x)) : "r"(y)); f("b"); // c'
    assert corpus_names.prose(data) == [b'"a"', b'"b"', b"// c"]
