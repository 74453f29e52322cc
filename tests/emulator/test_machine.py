"""What kernels need of the machine beyond arithmetic: calls, symbols, pointers, atomics, waits."""

# ruff: noqa: E501  (kernels)
from __future__ import annotations

import numpy as np
import pytest

from hipport.emulator import EmulatorError, Ptr, Struct, UnsupportedInstruction, load
from hipport.emulator.devcompile import compile_device
from hipport.emulator.launch import parameter_types

SOURCE = r"""
struct P { float x; int k; double d; short s[3]; };
struct View { const int* data; int n; };
__device__ __noinline__ int fib(int n) {
  int a = 0, b = 1;
  for (int i = 0; i < n; i++) { int t = a + b; a = b; b = t; }
  return a;
}
__device__ int twice(int x) { return 2 * x; }
__device__ int square(int x) { return x * x; }
typedef int (*Fn)(int);
__device__ Fn functions[2] = {twice, square};
__device__ int table[64] = {1, 2, 3, 4};
__constant__ float coef[8];
__device__ int counter;
__global__ void calls(const int* in, int* out, int n, P p) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = fib(in[i] & 15) + p.k + p.s[2] + (int)(p.x * 2) + (int)p.d;
}
__global__ void pointers(const int* in, int* out) { out[threadIdx.x] = functions[in[threadIdx.x] & 1](in[threadIdx.x]); }
__global__ void flat(const int* in, int* out) {
  __shared__ int a[64];
  int b[4], i = threadIdx.x;
  a[i] = in[i];
  for (int j = 0; j < 4; j++) b[j] = (j + 1) * i;
  __syncthreads();
  const int* p = (in[i] & 1) ? &a[(i * 7) & 63] : (in[i] & 2) ? &b[in[i] & 3] : &in[(i * 3) & 63];
  out[i] = *p;
}
__global__ void globals(int* out) {
  int i = threadIdx.x;
  table[i] += i;
  out[i] = table[i] + (int)coef[i & 7];
  atomicAdd(&counter, 1);
}
__global__ void atomics(int* a, unsigned long long* u, float* f, double* d, const int* in) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicMax(&a[0], v); atomicMin(&a[1], v); atomicAnd(&a[2], v | 0xff00); atomicOr(&a[3], v);
  atomicXor(&a[4], v); atomicSub(&a[5], v); atomicCAS(&a[6], 0, v);
  atomicAdd(&u[0], (unsigned long long)v); atomicMax(&u[1], (unsigned long long)v);
  atomicAdd(&f[0], 1.0f); atomicAdd(&d[0], 0.5);
}
__global__ void grid3(int* o) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  o[(z * gridDim.y * blockDim.y + y) * gridDim.x * blockDim.x + x] = x + 100 * y + 10000 * z;
}
__global__ void spinlock(int* lock, int* val) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    val[0] = val[0] + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}
__global__ void waits_for_later(volatile int* flag, int* out) {
  if (threadIdx.x == 0) {
    int b = blockIdx.x;
    if (b < gridDim.x - 1) while (flag[b + 1] == 0) {}
    out[b] = b;
    __threadfence();
    flag[b] = 1;
  }
}
__global__ void view(View v, int* out) { if (threadIdx.x < v.n) out[threadIdx.x] = v.data[threadIdx.x]; }
__global__ void order(float* sum, const float* x) { atomicAdd(sum, x[blockIdx.x]); }
"""


@pytest.fixture
def module(compile_hip, target):
    return compile_hip(SOURCE, target)


INPUT = (np.arange(256) * 7919 % 2003 - 1000).astype(np.int32)


def fib(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def test_calls_and_structures_by_value(module):
    p = np.zeros(1, np.dtype([("x", "f4"), ("k", "i4"), ("d", "f8"), ("s", "i2", 3)], align=True))
    p["x"], p["k"], p["d"], p["s"] = 1.5, 4, 2.25, [1, 2, 3]
    out = np.zeros(256, np.int32)
    module.kernels["calls"].launch(1, 256, [INPUT, out, 256, p[0]])
    np.testing.assert_array_equal(out, [fib(v & 15) + 4 + 3 + 3 + 2 for v in INPUT])


def test_function_pointers(module):
    out = np.zeros(64, np.int32)
    module.kernels["pointers"].launch(1, 64, [INPUT, out])
    x = INPUT[:64]
    np.testing.assert_array_equal(out, np.where(x & 1, x * x, 2 * x))


def test_flat_pointers_to_lds_scratch_and_memory(module):
    out = np.zeros(64, np.int32)
    module.kernels["flat"].launch(1, 64, [INPUT, out])
    i, x = np.arange(64), INPUT[:64]
    want = np.where(x & 1, x[i * 7 & 63], np.where(x & 2, ((x & 3) + 1) * i, x[i * 3 & 63]))
    np.testing.assert_array_equal(out, want)


def test_variables_by_name(module):
    module.symbols["coef"].write(np.arange(8, dtype=np.float32))
    out = np.zeros(64, np.int32)
    module.kernels["globals"].launch(1, 64, [out])
    i = np.arange(64)
    start = np.where(i < 4, i + 1, 0)
    np.testing.assert_array_equal(out, start + i + i % 8)
    np.testing.assert_array_equal(module.symbols["table"].read(np.int32), start + i)
    assert module.symbols["counter"].read(np.int32)[0] == 64
    with pytest.raises(EmulatorError, match="do not fit"):
        module.symbols["counter"].write(np.zeros(2, np.int32))
    with pytest.raises(KeyError, match="no such variable"):
        module.symbols["absent"]


def test_atomics(module):
    x = np.abs(INPUT) + 1
    a = np.array([0, 10**6, -1, 0, 0, 0, 0], np.int32)
    u, f, d = np.zeros(2, np.uint64), np.zeros(1, np.float32), np.zeros(1)
    module.kernels["atomics"].launch(4, 64, [a, u, f, d, x.astype(np.int32)])
    assert a[0] == x.max()
    assert a[1] == x.min()
    assert a[2] == np.bitwise_and.reduce(x | 0xFF00)
    assert a[3] == np.bitwise_or.reduce(x)
    assert a[4] == np.bitwise_xor.reduce(x)
    assert a[5] == -x.sum()
    assert a[6] in x
    assert (u[0], u[1]) == (x.sum(), x.max())
    assert (f[0], d[0]) == (256, 128)


def test_three_dimensions(module):
    out = np.zeros((8, 6, 8), np.int32)
    module.kernels["grid3"].launch((2, 3, 2), (4, 2, 4), [out])
    z, y, x = np.indices(out.shape)
    np.testing.assert_array_equal(out, x + 100 * y + 10000 * z)


@pytest.mark.parametrize("threads", [1, 2])
def test_blocks_that_wait_for_each_other_finish(module, threads):
    lock, value = np.zeros(1, np.int32), np.zeros(1, np.int32)
    module.kernels["spinlock"].launch(64, 64, [lock, value], threads=threads)
    assert value[0] == 64
    flag, out = np.zeros(40, np.int32), np.zeros(40, np.int32)
    module.kernels["waits_for_later"].launch(40, 64, [flag, out], threads=threads)
    np.testing.assert_array_equal(out, np.arange(40))


def test_structure_that_holds_a_pointer(module):
    data, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    raw = bytes(8) + np.int32(20).tobytes() + bytes(4)
    kernel = module.kernels["view"]
    kernel.launch(1, 64, [Struct(raw, {0: Ptr(data, 16)}), out])
    np.testing.assert_array_equal(out[:20], data[4:24])
    assert not out[20:].any()


def test_deterministic_order(module):
    x = np.random.default_rng(1).standard_normal(500).astype(np.float32) * 1e3
    want = np.float32(0)
    for v in x:
        want += v
    total = np.zeros(1, np.float32)
    module.kernels["order"].launch(500, 1, [total, x], deterministic=True)
    assert total[0] == want


def test_buffers_that_overlap_stay_one(module):
    whole = np.arange(64, dtype=np.int32)
    kernel = module.kernels["pointers"]
    kernel.launch(1, 32, [whole[:32], whole[32:]])
    x = np.arange(32)
    np.testing.assert_array_equal(whole[32:], np.where(x & 1, x * x, 2 * x))
    np.testing.assert_array_equal(whole[:32], x)


def test_unsupported_instruction_is_named_before_anything_runs():
    text = """
    #include <hip/hip_runtime.h>
    extern "C" __global__ void k(int* out) {
      out[0] = 1;
      asm volatile("s_sendmsg 0");
    }
    """
    kernel = load(compile_device(text, "gfx942")).kernels["k"]
    out = np.zeros(1, np.int32)
    with pytest.raises(UnsupportedInstruction) as caught:
        kernel.launch(1, 1, [out])
    assert caught.value.name == "s_sendmsg"
    assert caught.value.line is not None
    assert caught.value.line.endswith(":5")
    assert out[0] == 0


@pytest.mark.parametrize("data", [b"", b"hello", b"\x7fELF" + bytes(60)])
def test_what_is_no_code_object(data):
    with pytest.raises(EmulatorError):
        load(data)


def test_host_object_is_refused():
    with pytest.raises(EmulatorError, match="not an AMD code object"):
        load("/proc/self/exe")


def test_parameter_types_of_a_signature():
    assert parameter_types("void f<int, 3>(float const*, std::pair<int, int>)") == [
        "float const*",
        "std::pair<int, int>",
    ]
    assert parameter_types("plain") is None
