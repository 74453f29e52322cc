"""Matrix instructions against NumPy: each kernel places its operands as the manuals say."""

# ruff: noqa: E501  (kernels)
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

PRELUDE = """
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f8 __attribute__((ext_vector_type(8)));
typedef float f16v __attribute__((ext_vector_type(16)));
typedef float f32v __attribute__((ext_vector_type(32)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i8 __attribute__((ext_vector_type(8)));
typedef int i16v __attribute__((ext_vector_type(16)));
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef _Float16 h16 __attribute__((ext_vector_type(16)));
typedef short s4 __attribute__((ext_vector_type(4)));
typedef double d4 __attribute__((ext_vector_type(4)));
"""
# Rows of a 32 x 32 and a 16 x 16 result by register and lane.
ROW32, ROW16 = "(8 * (r / 4) + 4 * (l / 32) + r % 4)", "(4 * (l / 16) + r)"


def mfma(name, element, vector, count, call, result, registers, m, k):
    """A kernel for one square MFMA: `vector` holds `count` elements of A and of B."""
    row = ROW32 if m == 32 else ROW16
    return f"""
extern "C" __global__ void {name}(const {element}* A, const {element}* B, {result.split()[0]}* D) {{
  int l = threadIdx.x;
  {vector} a, b;
  {element}* pa = ({element}*)&a; {element}* pb = ({element}*)&b;
  for (int e = 0; e < {count}; e++) {{
    pa[e] = A[(l % {m}) * {k} + {count} * (l / {m}) + e];
    pb[e] = B[({count} * (l / {m}) + e) * {m} + l % {m}];
  }}
  {result.split()[1]} c = {{0}};
  c = {call}(a, b, c, 0, 0, 0);
  for (int r = 0; r < {registers}; r++) D[{row} * {m} + l % {m}] = c[r];
}}
"""


MFMA = {
    # name: (text, element type in NumPy, result type, m, k, targets)
    "f32_32": (mfma("f32_32", "float", "float", 1, "__builtin_amdgcn_mfma_f32_32x32x2f32",
                    "float f16v", 16, 32, 2), np.float32, np.float32, 32, 2, "both"),
    "f32_16": (mfma("f32_16", "float", "float", 1, "__builtin_amdgcn_mfma_f32_16x16x4f32",
                    "float f4", 4, 16, 4), np.float32, np.float32, 16, 4, "both"),
    "f16_32": (mfma("f16_32", "_Float16", "h4", 4, "__builtin_amdgcn_mfma_f32_32x32x8f16",
                    "float f16v", 16, 32, 8), np.float16, np.float32, 32, 8, "both"),
    "f16_16": (mfma("f16_16", "_Float16", "h4", 4, "__builtin_amdgcn_mfma_f32_16x16x16f16",
                    "float f4", 4, 16, 16), np.float16, np.float32, 16, 16, "both"),
    "bf16_16": (mfma("bf16_16", "short", "s4", 4, "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k",
                     "float f4", 4, 16, 16), ml_dtypes.bfloat16, np.float32, 16, 16, "both"),
    "bf16_32": (mfma("bf16_32", "short", "s4", 4, "__builtin_amdgcn_mfma_f32_32x32x8bf16_1k",
                     "float f16v", 16, 32, 8), ml_dtypes.bfloat16, np.float32, 32, 8, "both"),
    "i8_16a": (mfma("i8_16a", "signed char", "int", 4, "__builtin_amdgcn_mfma_i32_16x16x16i8",
                    "int i4", 4, 16, 16), np.int8, np.int32, 16, 16, "gfx90a"),
    "i8_32a": (mfma("i8_32a", "signed char", "int", 4, "__builtin_amdgcn_mfma_i32_32x32x8i8",
                    "int i16v", 16, 32, 8), np.int8, np.int32, 32, 8, "gfx90a"),
    "i8_16": (mfma("i8_16", "signed char", "long", 8, "__builtin_amdgcn_mfma_i32_16x16x32_i8",
                   "int i4", 4, 16, 32), np.int8, np.int32, 16, 32, "gfx942"),
    "i8_32": (mfma("i8_32", "signed char", "long", 8, "__builtin_amdgcn_mfma_i32_32x32x16_i8",
                   "int i16v", 16, 32, 16), np.int8, np.int32, 32, 16, "gfx942"),
    "fp8_16": (mfma("fp8_16", "signed char", "long", 8,
                    "__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8", "float f4", 4, 16, 32),
               ml_dtypes.float8_e4m3fnuz, np.float32, 16, 32, "gfx942"),
    "bf8_32": (mfma("bf8_32", "signed char", "long", 8,
                    "__builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8", "float f16v", 16, 32, 16),
               ml_dtypes.float8_e5m2fnuz, np.float32, 32, 16, "gfx942"),
}  # fmt: skip
F64 = """
extern "C" __global__ void f64(const double* A, const double* B, double* D) {
  int l = threadIdx.x;
  d4 c = {1, 1, 1, 1};
  c = __builtin_amdgcn_mfma_f64_16x16x4f64(A[(l % 16) * 4 + l / 16], B[(l / 16) * 16 + l % 16], c, 0, 0, 0);
  for (int r = 0; r < 4; r++) D[(4 * r + l / 16) * 16 + l % 16] = c[r];
}
extern "C" __global__ void f64_blocks(const double* A, const double* B, double* D) {
  int l = threadIdx.x, i = l % 4, b = l / 4 % 4, k = l / 16;
  double c = __builtin_amdgcn_mfma_f64_4x4x4f64(A[(b * 4 + i) * 4 + k], B[(b * 4 + k) * 4 + i], 0.0, 0, 0, 0);
  D[(b * 4 + k) * 4 + i] = c;
}
extern "C" __global__ void blocks(const float* A, const float* B, float* D) {
  int l = threadIdx.x;  // four blocks of 16 x 1 times 1 x 16
  f16v c = {0};
  c = __builtin_amdgcn_mfma_f32_16x16x1f32(A[l], B[l], c, 0, 0, 0);
  for (int r = 0; r < 16; r++) D[(r / 4 * 16 + 4 * (l / 16) + r % 4) * 16 + l % 16] = c[r];
}
extern "C" __global__ void broadcast(const float* A, const float* B, float* D) {
  int l = threadIdx.x;  // block 1 of A in place of all four
  f16v c = {0};
  c = __builtin_amdgcn_mfma_f32_16x16x1f32(A[l], B[l], c, 2, 1, 0);
  for (int r = 0; r < 16; r++) D[(r / 4 * 16 + 4 * (l / 16) + r % 4) * 16 + l % 16] = c[r];
}
"""
WMMA = """
extern "C" __global__ void wf16(const _Float16* A, const _Float16* B, float* D) {
  int l = threadIdx.x;
  h16 a, b;
  f8 c = {0};
  for (int e = 0; e < 16; e++) { a[e] = A[(l % 16) * 16 + e]; b[e] = B[e * 16 + l % 16]; }
  c = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c);
  for (int r = 0; r < 8; r++) D[(2 * r + l / 16) * 16 + l % 16] = c[r];
}
extern "C" __global__ void wi8(const signed char* A, const signed char* B, int* D) {
  int l = threadIdx.x;
  i4 a, b;
  i8 c = {0};
  signed char* pa = (signed char*)&a; signed char* pb = (signed char*)&b;
  for (int e = 0; e < 16; e++) { pa[e] = A[(l % 16) * 16 + e]; pb[e] = B[e * 16 + l % 16]; }
  c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, c, false);
  for (int r = 0; r < 8; r++) D[(2 * r + l / 16) * 16 + l % 16] = c[r];
}
"""


def operands(dtype, m, k, rng):
    if np.dtype(dtype).kind == "i":
        return (rng.integers(-128, 128, s).astype(dtype) for s in ((m, k), (k, m)))
    return (rng.standard_normal(s).astype(np.float32).astype(dtype) for s in ((m, k), (k, m)))


def raw(array):
    """The array as integers where NumPy's own types do not cover it."""
    return array if array.dtype.isbuiltin else array.view(f"i{array.dtype.itemsize}")


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_mfma(compile_hip, target):
    chosen = {n: c for n, c in MFMA.items() if c[5] in ("both", target)}
    module = compile_hip(PRELUDE + "".join(c[0] for c in chosen.values()) + F64, target)
    rng = np.random.default_rng(5)
    for name, (_, dtype, result, m, k, _) in chosen.items():
        a, b = operands(dtype, m, k, rng)
        d = np.zeros((m, m), result)
        module.kernels[name].launch(1, 64, [raw(a), raw(b), d])
        exact = a.astype(np.float64) @ b.astype(np.float64)
        if result is np.int32:
            np.testing.assert_array_equal(d, exact, name)
        else:
            bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)) * k * 2.0**-24
            assert (np.abs(d - exact) <= bound + 1e-30).all(), name
    a, b = operands(np.float64, 16, 4, rng)
    a, b = rng.standard_normal((16, 4)), rng.standard_normal((4, 16))
    d = np.zeros((16, 16))
    module.kernels["f64"].launch(1, 64, [a, b, d])
    np.testing.assert_allclose(d, a @ b + 1, rtol=1e-13, atol=1e-14)
    a, b, d = rng.standard_normal((4, 4, 4)), rng.standard_normal((4, 4, 4)), np.zeros((4, 4, 4))
    module.kernels["f64_blocks"].launch(1, 64, [a, b, d])
    np.testing.assert_allclose(d, a @ b, rtol=1e-13, atol=1e-14)
    a, b = rng.standard_normal((2, 4, 16)).astype(np.float32)
    d = np.zeros((4, 16, 16), np.float32)
    module.kernels["blocks"].launch(1, 64, [a, b, d])
    np.testing.assert_array_equal(d, a[:, :, None] * b[:, None, :])
    module.kernels["broadcast"].launch(1, 64, [a, b, d])
    np.testing.assert_array_equal(d, a[1][None, :, None] * b[:, None, :])


def test_wmma(compile_hip):
    module = compile_hip(PRELUDE + WMMA, "gfx1100")
    rng = np.random.default_rng(6)
    a, b = operands(np.float16, 16, 16, rng)
    d = np.zeros((16, 16), np.float32)
    module.kernels["wf16"].launch(1, 32, [a, b, d])
    np.testing.assert_allclose(d, a.astype(float) @ b.astype(float), rtol=1e-5, atol=1e-5)
    a, b = operands(np.int8, 16, 16, rng)
    e = np.zeros((16, 16), np.int32)
    module.kernels["wi8"].launch(1, 32, [a, b, e])
    np.testing.assert_array_equal(e, a.astype(int) @ b.astype(int))
