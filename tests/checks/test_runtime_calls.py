from __future__ import annotations

import pytest

from hipport.api import Options
from tests.support import again, plan

HEAD = "#include <cuda_runtime.h>\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("cudaMemcpyToSymbol(c, h, n)", "hipMemcpyToSymbol(HIP_SYMBOL(c), h, n)"),
        ("CHECK(cudaMemcpyFromSymbol(h, c[1], n))", "hipMemcpyFromSymbol(h, HIP_SYMBOL(c[1]), n)"),
        ("cudaGetSymbolAddress((void**)&p, ns::c)", "hipGetSymbolAddress((void**)&p, HIP_SYMBOL("),
        (
            "cudaFuncSetAttribute(k<4, 2>, cudaFuncAttributeMaxDynamicSharedMemorySize, n)",
            "hipFuncSetAttribute(reinterpret_cast<const void*>(k<4, 2>), hipFunc",
        ),
        (
            "cudaFuncGetAttributes(&a, k)",
            "hipFuncGetAttributes(&a, reinterpret_cast<const void*>(k))",
        ),
        (
            "cudaEventCreate(&e, cudaEventDisableTiming)",
            "hipEventCreateWithFlags(&e, hipEventDisableTiming)",
        ),
    ],
)
def test_rewritten(code: str, expected: str) -> None:
    done = plan(HEAD + "void f() { " + code + "; }\n")
    assert expected in done.text()
    assert not [f for f in done.findings() if f.needs_person]
    assert {f.slug for f in again(done).findings()} <= {"lds-limit"}


def test_rewritten_in_a_macro_body() -> None:
    done = plan(HEAD + "#define PUT(s, p, n) cudaMemcpyToSymbol(s, p, n)\n")
    assert "hipMemcpyToSymbol(HIP_SYMBOL(s), p, n)" in done.text()


@pytest.mark.parametrize(
    "code",
    [
        'cudaMemcpyToSymbol("name", h, n)',
        "cudaMemcpyToSymbol(HIP_SYMBOL(c), h, n)",
        "cudaFuncSetAttribute((const void*)k, a, n)",
        "cudaFuncSetAttribute(reinterpret_cast<void*>(&k), a, n)",
        "cudaEventCreate(&e)",
        "pool.cudaMemcpyToSymbol(c, h, n)",
    ],
)
def test_silent(code: str) -> None:
    assert not plan(HEAD + "void f() { " + code + "; }\n").findings()


def test_pointer_attributes_by_version() -> None:
    code = HEAD + (
        "bool f(void* p) { cudaPointerAttributes a; cudaPointerGetAttributes(&a, p);\n"
        "  return a.memoryType == cudaMemoryTypeDevice; }\n"
        "struct Own { int memoryType; }; int g(Own o) { return o.memoryType; }\n"
    )
    new, old = plan(code, Options(rocm="6.4")), plan(code, Options(rocm="5.7"))
    assert "a.type == hipMemoryTypeDevice" in new.text()
    assert "o.memoryType" in new.text()
    assert new.lines("pointer-attributes") == [3]
    assert "a.memoryType" in old.text()
    assert not old.findings(slug="pointer-attributes")


def test_implicit_runtime_header() -> None:
    done = plan("// what it is\n\n__global__ void k(int* p) { p[threadIdx.x] = 0; }\n")
    assert done.text().startswith("// what it is\n#include <hip/hip_runtime.h>\n\n__global__")
    seen = plan(
        {
            "a.cu": '#include "b.h"\n__global__ void k(int* p) { p[threadIdx.x] = 0; }\n',
            "b.h": "#include <cuda_runtime.h>\n",
        }
    )
    assert not seen.findings()
    assert not plan("int add(int a, int b) { return a + b; } // cuda\n").findings()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("#ifdef __CUDACC__", "#if defined(__CUDACC__) || defined(__HIPCC__)"),
        ("#  ifdef __NVCC__", "#if defined(__NVCC__) || defined(__HIPCC__)"),
        ("#ifndef __CUDACC__", "#if !defined(__CUDACC__) && !defined(__HIPCC__)"),
        ("#if defined(__CUDACC__)", "#if defined(__CUDACC__) || defined(__HIPCC__)"),
        ("#if defined __CUDACC__ && X", "#if (defined(__CUDACC__) || defined(__HIPCC__)) && X"),
        ("#if !defined(__CUDACC__)", "#if !(defined(__CUDACC__) || defined(__HIPCC__))"),
        ("#if __CUDACC__", "#if (defined(__CUDACC__) || defined(__HIPCC__))"),
    ],
)
def test_compiler_guards(condition: str, expected: str) -> None:
    done = plan({"a.h": f"{condition}\n#define HD __host__ __device__\n#endif\n"})
    assert expected in done.text("a.h")
    assert done.lines("cudacc-guard", "a.h") == [1]
    assert not again(done).findings("a.h")


@pytest.mark.parametrize(
    "text",
    [
        "#if defined(__CUDACC__) || defined(__HIPCC__)\n#endif\n",
        "#if defined(__HIP_PLATFORM_AMD__)\n#elif defined(__CUDACC__)\n#endif\n",
        "// __CUDACC__\n",
        "#define __CUDACC__ 1\n",
    ],
)
def test_compiler_guards_that_need_nothing(text: str) -> None:
    assert not plan({"a.h": text}).findings("a.h", "cudacc-guard")
