"""Whole kernels against NumPy, on every target."""

from __future__ import annotations

import numpy as np

VADD = """
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
"""
BLOCK_SUM = """
__global__ void block_sum(const int* in, int* out, int n) {
  __shared__ int part[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? in[i] : 0;
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_down(v, o);
  int lane = threadIdx.x % warpSize, w = threadIdx.x / warpSize;
  if (lane == 0) part[w] = v;
  __syncthreads();
  if (w == 0) {
    v = lane < blockDim.x / warpSize ? part[lane] : 0;
    for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_down(v, o);
    if (lane == 0) out[blockIdx.x] = v;
  }
}
"""
BALLOT = """
__global__ void ballot_count(const int* in, int* count, int* rank, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool p = i < n && in[i] > 0;
  unsigned long long m = __ballot(p);
  int lane = threadIdx.x % warpSize;
  if (i < n) rank[i] = __popcll(m & ((1ull << lane) - 1));
  if (lane == 0) count[i / warpSize] = __popcll(m);
}
"""


def test_vector_add(compile_hip, target):
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 1000), np.float32)
    c = np.zeros(1024, np.float32)
    compile_hip(VADD, target).kernels["vadd"].launch(4, 256, [a, b, c, 1000])
    np.testing.assert_array_equal(c[:1000], a + b)
    assert not c[1000:].any()


def test_block_sum(compile_hip, target):
    rng = np.random.default_rng(2)
    x = rng.integers(-1000, 1000, 1000).astype(np.int32)
    out = np.zeros(4, np.int32)
    compile_hip(BLOCK_SUM, target).kernels["block_sum"].launch(4, 256, [x, out, 1000])
    padded = np.zeros(1024, np.int32)
    padded[:1000] = x
    np.testing.assert_array_equal(out, padded.reshape(4, 256).sum(1))


def test_ballot(compile_hip, target):
    rng = np.random.default_rng(3)
    n = 1000
    x = rng.integers(-5, 5, n).astype(np.int32)
    kernel = compile_hip(BALLOT, target).kernels["ballot_count(int const*, int*, int*, int)"]
    wave = kernel.wave_size
    assert wave == (32 if target == "gfx1100" else 64)
    count, rank = np.zeros(1024 // wave, np.int32), np.zeros(n, np.int32)
    kernel.launch(4, 256, [x, count, rank, n])
    p = np.zeros(1024, bool)
    p[:n] = x > 0
    p = p.reshape(-1, wave)
    np.testing.assert_array_equal(count, p.sum(1))
    np.testing.assert_array_equal(rank, (np.cumsum(p, 1) - p).reshape(-1)[:n])
