"""The compatibility header's functions, run on the emulator against independent formulas."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hipport.data import rules_dir
from hipport.emulator import load
from hipport.emulator.devcompile import compile_device

COUNT = 512
SPECIAL = (0, 1, 2, 31, 32, 33, 63, 64, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x80808080)
KERNEL = """
#include "hipport_compat.h"
extern "C" __global__ void run(const unsigned* a, const unsigned* b, const unsigned* c,
                               const unsigned* d, unsigned* out) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = blockDim.x * gridDim.x;
  out[i] = hipport_bfe_u32(a[i], b[i], c[i]);
  out[n + i] = hipport_bfe_s32(a[i], b[i], c[i]);
  out[2 * n + i] = hipport_bfi_b32(a[i], d[i], b[i], c[i]);
  out[3 * n + i] = hipport_prmt(a[i], d[i], b[i]);
  out[4 * n + i] = hipport_dp4a((int)a[i], (int)d[i], (int)b[i]);
  out[5 * n + i] = hipport_dp4a(a[i], d[i], b[i]);
  out[6 * n + i] = hipport_dp2a_lo((int)a[i], (int)d[i], (int)b[i]);
  out[7 * n + i] = hipport_dp2a_hi(a[i], d[i], b[i]);
}
"""


def signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def bfe_u32(a: int, b: int, c: int, d: int) -> int:
    place, length = b & 255, c & 255
    return sum(1 << i for i in range(min(length, 32)) if place + i < 32 and a >> (place + i) & 1)


def bfe_s32(a: int, b: int, c: int, d: int) -> int:
    place, length = b & 255, c & 255
    sign_at = min(place + length - 1, 31)
    sign = a >> sign_at & 1 if length else 0
    result = 0
    for i in range(32):
        bit = a >> (place + i) & 1 if i < length and place + i <= 31 else sign
        result |= bit << i
    return result


def bfi_b32(a: int, b: int, c: int, d: int) -> int:
    place, length = b & 255, c & 255
    result = d
    for i in range(length):
        if place + i > 31:
            break
        result = result & ~(1 << (place + i)) | (a >> i & 1) << (place + i)
    return result


def prmt(a: int, b: int, c: int, d: int) -> int:
    whole = (d << 32 | a).to_bytes(8, "little")
    out = bytearray()
    for i in range(4):
        nibble = b >> (4 * i) & 15
        byte = whole[nibble & 7]
        out.append((0xFF if byte & 0x80 else 0) if nibble & 8 else byte)
    return int.from_bytes(out, "little")


def parts(value: int, bits: int, sign: bool) -> list[int]:
    pieces = [value >> i & ((1 << bits) - 1) for i in range(0, 32, bits)]
    return [signed(p, bits) for p in pieces] if sign else pieces


def dp4a_s(a: int, b: int, c: int, d: int) -> int:
    return sum(x * y for x, y in zip(parts(a, 8, True), parts(d, 8, True), strict=True)) + b


def dp4a_u(a: int, b: int, c: int, d: int) -> int:
    return sum(x * y for x, y in zip(parts(a, 8, False), parts(d, 8, False), strict=True)) + b


def dp2a_lo_s(a: int, b: int, c: int, d: int) -> int:
    return sum(x * y for x, y in zip(parts(a, 16, True), parts(d, 8, True)[:2], strict=True)) + b


def dp2a_hi_u(a: int, b: int, c: int, d: int) -> int:
    return sum(x * y for x, y in zip(parts(a, 16, False), parts(d, 8, False)[2:], strict=True)) + b


FORMULAS: tuple[Callable[[int, int, int, int], int], ...] = (
    bfe_u32, bfe_s32, bfi_b32, prmt, dp4a_s, dp4a_u, dp2a_lo_s, dp2a_hi_u,
)  # fmt: skip


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_equal_to_the_definitions(target: str) -> None:
    header = (rules_dir() / "compat" / "hipport_compat.h").read_text()
    text = KERNEL.replace('#include "hipport_compat.h"', header)
    module = load(compile_device(text, target))
    random = np.random.default_rng(7)
    inputs = [random.integers(0, 1 << 32, COUNT, dtype=np.uint32) for _ in range(4)]
    for index, values in enumerate(inputs):
        values[: len(SPECIAL)] = np.roll(np.array(SPECIAL, dtype=np.uint32), index * 3)
    # Places and lengths that matter are small; keep some large ones.
    inputs[1][64:384] %= 40
    inputs[2][64:320] %= 40
    out = np.zeros(len(FORMULAS) * COUNT, dtype=np.uint32)
    module.kernels["run"].launch(COUNT // 64, 64, [*inputs, out])
    results = out.reshape(len(FORMULAS), COUNT)
    for row, formula in zip(results, FORMULAS, strict=True):
        for i in range(COUNT):
            a, b, c, d = (int(values[i]) for values in inputs)
            wanted = formula(a, b, c, d) & 0xFFFFFFFF
            assert int(row[i]) == wanted, (formula.__name__, hex(a), b, c, hex(d))
