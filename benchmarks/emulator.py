"""How fast the emulated device is: `python benchmarks/emulator.py`.

Every figure is a ratio or a time taken in one run on one machine, so say which machine beside it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from hipport.emulator import load
from hipport.emulator.build import compiler
from hipport.emulator.devcompile import compile_device

# About 200 machine instructions a thread: a chain the compiler cannot shorten.
SOURCE = """
#include <hip/hip_runtime.h>
extern "C" __global__ void chain(const float* x, const int* y, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], b = 1.0f; int k = y[i];
#pragma unroll
  for (int r = 0; r < 48; r++) { b = b * a + 0.25f; k = (k ^ (k << 3)) + r; a = a - 0.001f; }
  out[i] = b + (float)k;
}
extern "C" __global__ void reduce(const float* x, float* out, int n) {
  __shared__ float s[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int o = 128; o > 0; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}
"""
HOST = """
void chain(const float* x, const int* y, float* out, int n) {
  for (int i = 0; i < n; i++) {
    float a = x[i], b = 1.0f; int k = y[i];
    for (int r = 0; r < 48; r++) {
      b = b * a + 0.25f; k = (int)((unsigned)(k ^ (k << 3)) + (unsigned)r); a = a - 0.001f;
    }
    out[i] = b + (float)k;
  }
}
"""


def best(run, times: int = 3) -> float:
    """Shortest of a few runs, in seconds."""
    return min(run() for _ in range(times))


def host_seconds(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> float:
    """The same kernel in C, one thread, -O2."""
    with tempfile.TemporaryDirectory() as folder:
        source, built = Path(folder, "h.c"), Path(folder, "h.so")
        source.write_text(HOST)
        subprocess.run(
            [*compiler(), "-O2", "-fwrapv", "-shared", "-fPIC", str(source), "-o", str(built)],
            check=True,
        )
        f = ctypes.CDLL(str(built)).chain

        def once() -> float:
            start = time.perf_counter()
            f(*(a.ctypes.data_as(ctypes.c_void_p) for a in (x, y, out)), len(x))
            return time.perf_counter() - start

        return best(once)


def fresh(target: str, code: bytes) -> tuple[float, float]:
    """(translate and compile into an empty cache, from that cache), both with load and launch."""
    x, out = np.ones(256, np.float32), np.zeros(1, np.float32)
    before = os.environ.get("HIPPORT_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HIPPORT_CACHE_DIR"] = folder
        try:
            seconds = []
            for _ in range(2):
                start = time.perf_counter()
                load(code).kernels["reduce"].launch(1, 256, [x, out, 256])
                seconds.append(time.perf_counter() - start)
        finally:
            if before is None:
                del os.environ["HIPPORT_CACHE_DIR"]
            else:
                os.environ["HIPPORT_CACHE_DIR"] = before
    return seconds[0], seconds[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1_000_000, help="GPU threads")
    options = parser.parse_args()
    n = options.threads
    rng = np.random.default_rng(0)
    x = rng.random(n, np.float32)
    y = rng.integers(0, 1000, n).astype(np.int32)
    out = np.zeros(n, np.float32)
    reference = np.zeros(n, np.float32)
    host = host_seconds(x, y, reference)
    cores = len(os.sched_getaffinity(0))
    print(f"{n} threads; the same kernel in C with -O2 on one core: {host:.3f} s")
    print(
        "| target | instructions a thread | 1 core, s | lane-instr/s | "
        f"{cores} cores, s | lane-instr/s | against C, 1 core | first run, s | from cache, ms |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for target in ("gfx90a", "gfx942", "gfx1100"):
        code = compile_device(SOURCE, target)
        first, cached = fresh(target, code)
        kernel = load(code).kernels["chain"]
        kernel.prepare()
        blocks = -(-n // 256)
        runs = {
            threads: [kernel.launch(blocks, 256, [x, y, out, n], threads=threads) for _ in range(3)]
            for threads in (1, cores)
        }
        results = {threads: min(r.seconds for r in done) for threads, done in runs.items()}
        assert np.allclose(out, reference, rtol=1e-5), "the emulator and C disagree"
        lanes = runs[1][0].instructions * kernel.wave_size
        print(
            f"| {target} | {lanes / (blocks * 256):.0f} | {results[1]:.3f} | "
            f"{lanes / results[1]:.2e} | {results[cores]:.3f} | {lanes / results[cores]:.2e} | "
            f"{results[1] / host:.1f}x | {first:.2f} | {cached * 1000:.0f} |"
        )


if __name__ == "__main__":
    main()
