"""Shapes of guards and definitions that real code has, and that a widened guard would break."""

import pytest

from tests.support import Planned, plan


def _found(done: Planned) -> set[str]:
    return {finding.slug for finding in done.plans["a.cu"].findings}


def _slugs(text: str) -> set[str]:
    return _found(plan(text))


def test_a_later_branch_for_hip_is_not_hidden() -> None:
    text = (
        '#if defined(__CUDACC__)\n#  if CUDA_VERSION < 7000\n#    error "too old"\n#  endif\n'
        "#elif defined(__HIP__)\n#  define COMPILER 2\n#endif\n"
    )
    done = plan(text)
    assert not _found(done) & {"cudacc-guard", "cuda-version-guard"}
    assert done.plans["a.cu"].output is None


def test_a_chain_without_hip_is_still_widened() -> None:
    done = plan(
        "#if defined(__CUDACC__)\n#define HD __host__ __device__\n#else\n#define HD\n#endif\n"
    )
    assert _found(done) == {"cudacc-guard"}
    assert "#if defined(__CUDACC__) || defined(__HIPCC__)" in done.text()


def test_an_arch_guard_with_a_branch_for_rocm_is_answered() -> None:
    text = "#if defined(__CUDA_ARCH__)\nint a;\n#elif defined(USE_ROCM)\nint b;\n#endif\n"
    assert "cuda-arch-guard" not in _slugs(text)


@pytest.mark.parametrize(
    ("inside", "widened"),
    [
        ("constexpr bool fast = (__CUDA_ARCH__ / 100) >= 10;", False),
        ("#if __CUDA_ARCH__ == 750\nint a;\n#endif", True),
        ("// __CUDA_ARCH__ is known here\nint a;", True),
    ],
)
def test_a_branch_that_computes_with_the_macro_is_not_entered(inside: str, widened: bool) -> None:
    done = plan(f"#ifdef __CUDA_ARCH__\n{inside}\n#endif\n__device__ int x;\n")
    assert "cuda-arch-guard" in _found(done)
    assert ("|| defined(__HIP_DEVICE_COMPILE__)" in done.text()) is widened


def test_a_macro_of_the_code_base_called_trap_keeps_its_name() -> None:
    text = "#define __trap() do { abort(); } while (0)\n__device__ int x;\n"
    assert "trap-builtin" not in _slugs(text)


@pytest.mark.parametrize(
    ("head", "missing"),
    [
        ("__device__ auto set(int i)", False),
        ("__device__ auto set(int i) -> int", True),
        ("__device__ int set(int i)", True),
    ],
)
def test_auto_without_return_is_void(head: str, missing: bool) -> None:
    assert ("missing-return" in _slugs(f"{head} {{ i += 1; }}\n")) is missing
