"""Each fault has a kernel that triggers exactly it, and a clean twin that runs."""

from __future__ import annotations

import numpy as np
import pytest

from hipport.emulator import EmulatorError, KernelFault, Ptr, Watch, uninitialised

SOURCE = r"""
extern "C" {
__global__ void shift(const int* in, int* out, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i + by];
}
__global__ void fill(int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
__global__ void lds(int* out, int at) {
  extern __shared__ int buf[];
  buf[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = buf[threadIdx.x + at];
}
__global__ void neighbour(int* out, int sync) {
  __shared__ int buf[257];
  buf[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) buf[256] = 0;
  if (sync) __syncthreads();
  out[threadIdx.x] = buf[255 - threadIdx.x];
}
__global__ void partial(int* out, int all) {
  __shared__ int buf[256];
  if (all || threadIdx.x % 2 == 0) buf[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = buf[threadIdx.x];
}
__global__ void divergent(int* out, int half) {
  __shared__ int buf[256];
  buf[threadIdx.x] = 1;
  if (threadIdx.x < half) {
    __syncthreads();
    out[threadIdx.x] = buf[255 - threadIdx.x];
  }
  out[threadIdx.x] += 1;
}
__global__ void early(int* out, int n) {
  __shared__ int buf[256];
  if (threadIdx.x >= n) return;
  buf[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = buf[n - 1 - threadIdx.x];
}
__global__ void shuffle(int* out, int n) {
  int i = threadIdx.x;
  if (i < n) out[i] = __shfl(i, i + 1);
}
__global__ void spin(volatile int* flag) {
  while (*flag == 0) {}
}
__global__ void die(int* out, int when) {
  if (threadIdx.x == when) __builtin_trap();
  out[threadIdx.x] = 1;
}
__global__ void mixed(char* out, int at) {
  *(int*)(out + at) = 7;
}
__global__ void collide(int* out, int same) {
  out[0] = same ? 5 : (int)threadIdx.x + (int)blockIdx.x;
}
__global__ void count(int* out) { atomicAdd(out, 1); }
__global__ void across(int* out) { out[blockIdx.x % 2] = blockIdx.x; }
__global__ void last_block(int* part, int* done, int* total, int n) {
  __shared__ bool last;
  part[blockIdx.x] = blockIdx.x;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(done, 1) == gridDim.x - 1;
  __syncthreads();
  if (last && threadIdx.x == 0) { int s = 0; for (int i = 0; i < n; i++) s += part[i]; *total = s; }
}
}
"""


@pytest.fixture
def kernels(compile_hip, target):
    return compile_hip(SOURCE, target).kernels


def fault_of(call):
    with pytest.raises(KernelFault) as caught:
        call()
    return caught.value.fault


def line_of(text: str) -> int:
    lines = ("#include <hip/hip_runtime.h>\n" + SOURCE).split("\n")
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_out_of_bounds_read_names_buffer_index_and_line(kernels):
    a, b = np.arange(1000, dtype=np.int32), np.zeros(1000, np.int32)
    kernels["shift"].launch(4, 256, [a, b, 999, 1], names=["in", "out", "n", "by"])
    np.testing.assert_array_equal(b[:999], a[1:])
    fault = fault_of(
        lambda: kernels["shift"].launch(4, 256, [a, b, 1000, 1], names=["in", "out", "n", "by"])
    )
    assert fault.kind == "out-of-bounds"
    assert (fault.buffer, fault.index, fault.write) == ("in", 1000, False)
    assert (fault.block, fault.thread) == ((3, 0, 0), (231, 0, 0))
    assert fault.line is not None
    assert fault.line.endswith(f":{line_of('out[i] = in[i + by]')}")


def test_out_of_bounds_before_a_buffer(kernels):
    a, b = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    fault = fault_of(lambda: kernels["shift"].launch(1, 64, [a, b, 10, -3]))
    assert (fault.kind, fault.index) == ("out-of-bounds", -3)


def test_pointer_into_a_buffer(kernels):
    a, b = np.arange(10, dtype=np.int32), np.zeros(10, np.int32)
    kernels["shift"].launch(1, 64, [Ptr(a, 12), b, 7, -3])
    np.testing.assert_array_equal(b[:7], a[:7])


def test_null_pointer(kernels):
    fault = fault_of(lambda: kernels["fill"].launch(1, 64, [None, 10]))
    assert fault.kind == "out-of-bounds"
    assert "null pointer" in fault.message


def test_read_only_buffer(kernels):
    out = np.zeros(64, np.int32)
    kernels["fill"].launch(1, 64, [out, 64])
    out.flags.writeable = False
    fault = fault_of(lambda: kernels["fill"].launch(1, 64, [out, 64]))
    assert (fault.kind, fault.write, fault.index) == ("read-only", True, 0)


def test_lds_bounds(kernels):
    out = np.zeros(64, np.int32)
    kernels["lds"].launch(1, 64, [out, 0], lds=256)
    fault = fault_of(lambda: kernels["lds"].launch(1, 64, [out, 1], lds=256))
    assert (fault.kind, fault.thread) == ("lds-out-of-bounds", (63, 0, 0))


def test_lds_race(kernels):
    out = np.zeros(256, np.int32)
    kernels["neighbour"].launch(1, 256, [out, 1], watch=Watch(races=True))
    np.testing.assert_array_equal(out, np.arange(256)[::-1])
    fault = fault_of(lambda: kernels["neighbour"].launch(1, 256, [out, 0], watch=Watch(races=True)))
    assert fault.kind == "lds-race"
    assert fault.other is not None


def test_global_race_within_an_instruction(kernels):
    out = np.zeros(1, np.int32)
    kernels["collide"].launch(1, 64, [out, 1], watch=Watch(races=True))
    fault = fault_of(lambda: kernels["collide"].launch(1, 32, [out, 0], watch=Watch(races=True)))
    assert (fault.kind, fault.index) == ("race", 0)


def test_global_race_across_blocks(kernels):
    out = np.zeros(2, np.int32)
    kernels["across"].launch(2, 1, [out], watch=Watch(races=True))
    fault = fault_of(lambda: kernels["across"].launch(3, 1, [out], watch=Watch(races=True)))
    assert (fault.kind, fault.block) == ("race", (2, 0, 0))


def test_atomics_and_hand_over_by_counter_do_not_race(kernels):
    out = np.zeros(1, np.int32)
    kernels["count"].launch(4, 256, [out], watch=Watch(races=True))
    assert out[0] == 1024
    part, done, total = np.zeros(4, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    kernels["last_block"].launch(4, 1, [part, done, total, 4], watch=Watch(races=True))
    assert total[0] == 6


def test_uninitialised_lds(kernels):
    out = np.zeros(256, np.int32)
    watch = Watch(uninitialised=True)
    kernels["partial"].launch(1, 256, [out, 1], watch=watch)
    fault = fault_of(lambda: kernels["partial"].launch(1, 256, [out, 0], watch=watch))
    assert (fault.kind, fault.thread) == ("uninitialised-lds", (1, 0, 0))


def test_uninitialised_buffer(kernels):
    a, b = np.zeros(8, np.int32), np.zeros(8, np.int32)
    watch = Watch(uninitialised=True)
    kernels["shift"].launch(1, 64, [a, uninitialised(b), 8, 0], watch=watch)
    fault = fault_of(
        lambda: kernels["shift"].launch(1, 64, [uninitialised(a), b, 8, 0], watch=watch)
    )
    assert (fault.kind, fault.index) == ("uninitialised", 0)


def test_divergent_barrier(kernels):
    out = np.zeros(256, np.int32)
    watch = Watch(barriers=True)
    kernels["divergent"].launch(1, 256, [out, 256], watch=watch)
    fault = fault_of(lambda: kernels["divergent"].launch(1, 256, [out, 16], watch=watch))
    assert fault.kind == "divergent-barrier"


def test_early_exit_is_no_divergent_barrier(kernels):
    out = np.zeros(256, np.int32)
    kernels["early"].launch(1, 256, [out, 100], watch=Watch(barriers=True))
    np.testing.assert_array_equal(out[:100], np.arange(100)[::-1])


def test_shuffle_from_inactive_lane(kernels, target):
    lanes = 32 if target == "gfx1100" else 64
    out = np.zeros(lanes, np.int32)
    kernels["shuffle"].launch(1, lanes, [out, lanes], watch=Watch(lanes=True))
    fault = fault_of(
        lambda: kernels["shuffle"].launch(1, lanes, [out, 20], watch=Watch(lanes=True))
    )
    assert (fault.kind, fault.thread) == ("inactive-lane", (19, 0, 0))


def test_endless_loop(kernels):
    flag = np.ones(1, np.int32)
    kernels["spin"].launch(1, 1, [flag], watch=Watch(budget=100_000))
    flag[0] = 0
    fault = fault_of(lambda: kernels["spin"].launch(1, 1, [flag], watch=Watch(budget=100_000)))
    assert fault.kind == "budget"


def test_trap(kernels):
    out = np.zeros(64, np.int32)
    kernels["die"].launch(1, 64, [out, 64])
    assert fault_of(lambda: kernels["die"].launch(1, 64, [out, 3])).kind == "trap"


def test_misaligned(kernels):
    out = np.zeros(16, np.uint8)
    kernels["mixed"].launch(1, 1, [out, 4], watch=Watch(alignment=True))
    kernels["mixed"].launch(1, 1, [out, 2])
    fault = fault_of(lambda: kernels["mixed"].launch(1, 1, [out, 2], watch=Watch(alignment=True)))
    assert (fault.kind, fault.offset) == ("misaligned", 2)


def test_arguments_that_do_not_fit_are_refused(kernels):
    out = np.zeros(64, np.int32)
    with pytest.raises(EmulatorError, match="takes 2 arguments, got 1"):
        kernels["fill"].launch(1, 64, [out])
    with pytest.raises(EmulatorError, match="contiguous"):
        kernels["fill"].launch(1, 64, [out[::2], 10])
    with pytest.raises(EmulatorError, match="at most 1024"):
        kernels["fill"].launch(1, 2048, [out, 10])
    with pytest.raises(EmulatorError, match="is a pointer"):
        kernels["fill"].launch(1, 64, [3.5, 10])
    with pytest.raises(KeyError, match="no such kernel"):
        kernels["absent"]
