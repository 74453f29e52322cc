"""Names: renamed where they are CUDA's, left alone everywhere else."""

from __future__ import annotations

import pytest

from tests.support import again, plan

HEAD = "#include <cuda_runtime.h>\n"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("void f() { cudaFree(0); }", "void f() { hipFree(0); }"),
        ("#define M(x) cudaFree(x)\n", "#define M(x) hipFree(x)\n"),
        ("#if 0\ncudaFree(0);\n#endif\n", "#if 0\nhipFree(0);\n#endif\n"),
        ("cudaStream_t s; cublasHandle_t h;", "hipStream_t s; hipblasHandle_t h;"),
        ("auto e = ::cudaGetLastError();", "auto e = ::hipGetLastError();"),
        ("#define S(x) #x\nS(cudaFree)", "#define S(x) #x\nS(hipFree)"),
    ],
)
def test_renamed(code: str, expected: str) -> None:
    assert plan(HEAD + code).text() == "#include <hip/hip_runtime.h>\n" + expected


@pytest.mark.parametrize(
    "code",
    [
        "// cudaFree\n",
        "/* cudaFree(0) */\n",
        'const char* m = "cudaFree failed";\n',
        'auto r = R"(cudaFree(p))";\n',
        "int my_cudaFree_count, cudaFree2x;\n",
        "void f(S s, S* p) { s.cudaFree(0); p->cudaFree(0); }\n",
        "void f() { mine::cudaFree(0); }\n",
    ],
)
def test_left_alone(code: str) -> None:
    assert plan(HEAD + code).text() == "#include <hip/hip_runtime.h>\n" + code


def test_a_function_of_the_code_base_keeps_its_name_where_it_is_seen() -> None:
    done = plan(
        {
            "mock.h": "#pragma once\nint cuInit(unsigned flags);\n",
            "user.cu": '#include <cuda_runtime.h>\n#include "mock.h"\nint a = cuInit(0);\n',
            "other.cu": "#include <cuda.h>\nauto a = cuInit(0);\n",
        }
    )
    assert "int cuInit(unsigned flags)" in done.text("mock.h")
    assert "int a = cuInit(0)" in done.text("user.cu")
    assert "auto a = hipInit(0)" in done.text("other.cu")
    assert done.findings("user.cu", "own-name")
    assert not done.findings("other.cu", "own-name")


def test_a_macro_of_the_code_base_keeps_its_name() -> None:
    code = HEAD + "#define cudaMemset(p, v, n) my_memset(p, v, n)\nvoid f(){cudaMemset(a, 0, 4);}\n"
    assert "cudaMemset(a, 0, 4)" in plan(code).text()


def test_a_member_blocks_only_its_class() -> None:
    code = HEAD + (
        "struct Pool { void cudaFree(int); void g() { cudaFree(1); } };\n"
        "void f(Pool p) { p.cudaFree(1); cudaFree(0); }\n"
    )
    text = plan(code).text()
    assert "struct Pool { void cudaFree(int); void g() { cudaFree(1); } };" in text
    assert "p.cudaFree(1); hipFree(0);" in text


def test_a_parameter_blocks_only_its_function() -> None:
    code = HEAD + "int f(int cudaFree) { return cudaFree; }\nauto g = cudaFree;\n"
    text = plan(code).text()
    assert "int f(int cudaFree) { return cudaFree; }" in text
    assert "auto g = hipFree;" in text


def test_a_stand_in_for_a_missing_header_is_renamed_with_its_uses() -> None:
    code = (
        "#ifdef USE_CUDA\n#include <cuda_runtime.h>\n#else\ntypedef void* cudaStream_t;\n#endif\n"
        "void f(cudaStream_t s);\n"
    )
    text = plan({"a.h": code}).text("a.h")
    assert "cudaStream_t" not in text
    assert text.count("hipStream_t") == 2


def test_namespaces_and_aliases() -> None:
    code = (
        "#include <cub/cub.cuh>\nnamespace c = cub;\nusing namespace cub;\n"
        "cub::BlockReduce<int, 128> r;\nint cub = 1; // cub::x\n"
    )
    text = plan(code).text()
    assert "#include <hipcub/hipcub.hpp>" in text
    assert "namespace c = hipcub;" in text
    assert "using namespace hipcub;" in text
    assert "hipcub::BlockReduce<int, 128> r;" in text
    assert "int cub = 1; // cub::x" in text


def test_include_paths() -> None:
    done = plan(
        {
            "a.cu": '#include "cuda_runtime.h"\n#include <cuda_fp16.h>\n#include "sub/cuda.h"\n'
            "#if __has_include(<cuda_bf16.h>)\n#endif\ncudaStream_t s;\n",
            "sub/cuda.h": "#pragma once\n// ours\nint x;\n",
        }
    )
    text = done.text()
    assert '#include "hip/hip_runtime.h"' in text
    assert "#include <hip/hip_fp16.h>" in text
    assert '#include "sub/cuda.h"' in text
    assert "__has_include(<hip/hip_bf16.h>)" in text


def test_what_has_no_counterpart_stays_and_is_reported() -> None:
    code = HEAD + "void f() {\n  cudaDeviceFlushGPUDirectRDMAWrites(t, s);\n}\n"
    done = plan(code)
    assert "cudaDeviceFlushGPUDirectRDMAWrites(t, s)" in done.text()
    (finding,) = done.findings(slug="no-hip-equivalent")
    assert (finding.line, finding.column) == (3, 3)
    assert "cudaDeviceFlushGPUDirectRDMAWrites" in finding.message
    assert finding.needs_person


@pytest.mark.parametrize(
    "data",
    [
        b"#include <cuda_runtime.h>\r\nvoid f() { cudaFree(0); }\r\n",
        b"\xef\xbb\xbf#include <cuda_runtime.h>\nvoid f() { cudaFree(0); }",
        b"// caf\xe9\n#include <cuda_runtime.h>\nvoid f() { cudaFree(0); }\r",
        b"#include <cuda_runtime.h>\nvoid f() {\x00 cudaFree(0); }\n",
    ],
)
def test_only_the_named_bytes_change(data: bytes) -> None:
    expected = data.replace(b"cuda_runtime.h", b"hip/hip_runtime.h")
    expected = expected.replace(b"cudaFree", b"hipFree")
    assert plan(data).plans["a.cu"].output == expected


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_wide_encodings_come_out_in_their_encoding(encoding: str) -> None:
    text = "\ufeff#include <cuda_runtime.h>\r\n// é\r\nvoid f() { cudaFree(0); }\r\n"
    output = plan(text.encode(encoding)).plans["a.cu"].output
    assert output is not None
    expected = text.replace("cuda_runtime.h", "hip/hip_runtime.h").replace("cudaFree", "hipFree")
    assert output.decode(encoding) == expected


def test_twice_is_once() -> None:
    code = (
        HEAD + "#include <cub/cub.cuh>\nvoid f() { cub::X<cudaStream_t> x; cudaMalloc(&p, 4); }\n"
    )
    first = plan(code)
    second = again(first)
    assert second.plans["a.cu"].output is None
    assert not second.findings()
