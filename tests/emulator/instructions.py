"""Run single machine instructions on chosen bit patterns.

A kernel holds one inline-assembly statement an instruction; its operands come from memory and its
result goes to memory, so decoding, operand fetch, the operation and the write-back are all real.
"""

# ruff: noqa: E501  (commands and tables)
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hipport.emulator import load
from hipport.emulator.devcompile import compile_device

Array = np.ndarray[Any, Any]

#: Operand kinds: NumPy type of the value and bits of the register.
KINDS: dict[str, tuple[Any, int]] = {
    "f16": (np.float16, 32),
    "f32": (np.float32, 32),
    "f64": (np.float64, 64),
    "u8": (np.uint8, 32),
    "u16": (np.uint16, 32),
    "i16": (np.int16, 32),
    "u32": (np.uint32, 32),
    "i32": (np.int32, 32),
    "u64": (np.uint64, 64),
    "i64": (np.int64, 64),
    "n5": (np.uint32, 32),  # a shift count or another small number, 0..63
    "e": (np.int32, 32),  # an exponent, -400..400
}


@dataclass(frozen=True, slots=True)
class Case:
    """One instruction: assembly with %0 (result) and %1… (sources), operand kinds, the truth.

    `truth` gets NumPy arrays of the source kinds and returns the result as an array of the result
    kind; `ulp` is the error allowed on float results, in units in the last place.
    """

    text: str
    result: str
    sources: tuple[str, ...]
    truth: Callable[..., Any]
    ulp: int = 0
    scalar: bool = False


def case(text: str, signature: str, truth: Callable[..., Any], ulp: int = 0) -> Case:
    """case("v_add_f32 %0, %1, %2", "f32 f32 f32", truth): result kind first."""
    result, *sources = signature.split()
    return Case(text, result, tuple(sources), truth, ulp, text.startswith("s_"))


def values(kind: str, count: int, seed: int) -> Array:
    """Special values of `kind` mixed with random bit patterns and ordinary numbers."""
    rng = np.random.default_rng([seed, sum(kind.encode())])
    dtype = np.dtype(KINDS[kind][0])
    if kind == "n5":
        return rng.integers(0, 64, count).astype(np.uint32)
    if kind == "e":
        return rng.integers(-400, 400, count).astype(np.int32)
    raw = rng.integers(0, 256, (count, dtype.itemsize)).astype(np.uint8).view(dtype).reshape(count)
    if dtype.kind == "f":
        info = np.finfo(dtype)
        special = np.array(
            [0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2, 3, -2.5, np.inf, -np.inf, np.nan, info.max, info.min,
             info.tiny, -info.tiny, info.smallest_subnormal, -3 * info.smallest_subnormal,
             info.tiny / 2, 255.5, 256, 65504, -65536 if dtype.itemsize > 2 else -60000,
             1 + info.eps, 1 - info.epsneg],
            dtype,
        )  # fmt: skip
        near = (rng.standard_normal(count) * 100).astype(dtype)
        raw = np.where(rng.random(count) < 0.5, near, raw)
    else:
        info_i = np.iinfo(dtype)
        special = np.array([0, 1, 2, 31, 32, 255, info_i.max, info_i.min, info_i.max - 1], dtype)
    return np.where(rng.random(count) < 0.35, rng.choice(special, count), raw)


def bits(array: Array) -> Array:
    """The bit patterns as 64-bit unsigned numbers (small kinds in the low bits)."""
    return array.view(f"u{array.dtype.itemsize}").astype(np.uint64)


def run(target: str, cases: Sequence[Case], count: int = 192) -> list[Array]:
    """The results of every case, as arrays of the result kind."""
    scalar = cases[0].scalar
    kinds = list(dict.fromkeys(k for c in cases for k in c.sources))
    inputs = np.concatenate([bits(values(k, count, s)) for k in kinds for s in range(3)])
    where = {k: 3 * i for i, k in enumerate(kinds)}
    body = []
    letter = "s" if scalar else "v"
    index = "blockIdx.x" if scalar else "blockIdx.x * blockDim.x + threadIdx.x"
    for j, c in enumerate(cases):
        width = {32: "unsigned", 64: "unsigned long long"}
        names = []
        lines = []
        for s, kind in enumerate(c.sources):
            ctype = width[KINDS[kind][1]]
            value = f"({ctype})in[{where[kind] + s} * n + i]"
            lines.append(f"{ctype} x{s} = {'uniform(' + value + ')' if scalar else value};")
            names.append(f'"{letter}"(x{s})')
        ctype = width[KINDS[c.result][1]]
        lines.append(f"{ctype} d = 0;")
        lines.append(
            f'asm volatile("{c.text}" : "+&{letter}"(d) : {", ".join(names)} : "vcc", "scc");'
        )
        lines.append(f"out[{j} * n + i] = d;")
        body.append("{ " + " ".join(lines) + " }")
    source = (
        "#include <hip/hip_runtime.h>\n"
        "__device__ unsigned uniform(unsigned x) { return __builtin_amdgcn_readfirstlane(x); }\n"
        "__device__ unsigned long long uniform(unsigned long long x) {\n"
        "  return (unsigned long long)uniform((unsigned)(x >> 32)) << 32 | uniform((unsigned)x); }\n"
        'extern "C" __global__ void k(const unsigned long long* in, unsigned long long* out, int n)'
        f" {{\n int i = {index};\n" + "\n".join(body) + "\n}\n"
    )
    module = load(compile_device(source, target, ("-O1",), lines=False))
    out = np.zeros(len(cases) * count, np.uint64)
    grid, block = (count, 1) if scalar else (count // 64, 64)
    module.kernels["k"].launch(grid, block, [inputs, out, count])
    found = []
    for j, c in enumerate(cases):
        dtype = np.dtype(KINDS[c.result][0])
        raw = out[j * count : (j + 1) * count]
        found.append(raw.astype(f"u{dtype.itemsize}").view(dtype))
    return found


def check(target: str, cases: Sequence[Case], count: int = 192) -> None:
    """Assert that every case gives its truth; the message shows the first lane that differs."""
    results = run(target, cases, count)
    wrong = []
    for c, got in zip(cases, results, strict=True):
        sources = [values(k, count, s) for s, k in enumerate(c.sources)]
        with np.errstate(all="ignore"):
            want = np.asarray(c.truth(*sources)).astype(KINDS[c.result][0])
        if want.dtype.kind == "f":
            same = (bits(got) == bits(want)) | (np.isnan(got) & np.isnan(want))
            if c.ulp:
                u = want.dtype.itemsize
                near = np.abs(got.view(f"i{u}").astype(np.int64) - want.view(f"i{u}"))
                same |= near <= c.ulp
        else:
            same = got == want
        if not same.all():
            at = int(np.argmin(same))
            shown = ", ".join(f"{s[at]!r}" for s in sources)
            wrong.append(
                f"{c.text.split()[0]}({shown}): got {got[at]!r} ({int(bits(got)[at]):#x}), want "
                f"{want[at]!r} ({int(bits(want)[at]):#x}); {int((~same).sum())} of {count} differ"
            )
    assert not wrong, "\n".join(wrong)
