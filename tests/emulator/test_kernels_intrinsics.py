"""The recorded results of CUDA's device functions agree with what their documents say."""

from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest

from tests.emulator.kernels import ROOT

FOLDER = ROOT / "fixtures" / "intrinsics"


@pytest.fixture(scope="module")
def table():
    sys.path.insert(0, str(FOLDER))
    try:
        import intrinsics
    finally:
        sys.path.remove(str(FOLDER))
    return intrinsics


@pytest.fixture(scope="module")
def recorded(table):
    return table.load()


def test_everything_in_the_table_is_recorded(table, recorded):
    assert len(table.ROWS) >= 450
    for row in table.ROWS:
        found = recorded[row.name]
        assert (found.result, found.arguments, found.expression) == (
            row.result,
            row.arguments,
            row.expression,
        )
        assert found.output.shape == (table.COUNT,)


def test_source_is_what_the_table_generates(table):
    assert (FOLDER / "intrinsics.cu").read_text() == table.source()


def _b(words, dtype=np.uint8):
    return np.ascontiguousarray(words).view(dtype).reshape(len(words), -1).astype(np.int64)


def _w(parts, dtype=np.uint8):
    return np.ascontiguousarray(parts.astype(dtype)).view(np.uint32)[:, 0]


def _byte_perm(a, b, s):
    both = np.concatenate([_b(a), _b(b)], 1)
    return _w(np.stack([both[np.arange(len(a)), (s >> 4 * k) & 7] for k in range(4)], 1))


def _clamped(value, low, high):
    return np.clip(np.nan_to_num(value, nan=0.0, posinf=1e30, neginf=-1e30), low, high)


def _shift(values, counts, bits):
    ones = (1 << bits) - 1
    pairs = zip(values.tolist(), counts.tolist(), strict=True)
    return np.array([v << n & ones if n < bits else 0 for v, n in pairs], np.uint64)


FORMULAS = {
    "__vadd4": lambda a, b: _w(_b(a) + _b(b)),
    "__vsub2": lambda a, b: _w(_b(a, np.uint16) - _b(b, np.uint16), np.uint16),
    "__vaddss4": lambda a, b: _w(np.clip(_b(a, np.int8) + _b(b, np.int8), -128, 127), np.int8),
    "__vavgu4": lambda a, b: _w((_b(a) + _b(b) + 1) // 2),
    "__vhaddu4": lambda a, b: _w((_b(a) + _b(b)) // 2),
    "__vcmpgts2": lambda a, b: _w(-(_b(a, np.int16) > _b(b, np.int16)).astype(int), np.int16),
    "__vsetltu4": lambda a, b: _w(_b(a) < _b(b)),
    "__vsads4": lambda a, b: np.abs(_b(a, np.int8) - _b(b, np.int8)).sum(1),
    "__vabsss4": lambda a: _w(np.minimum(np.abs(_b(a, np.int8)), 127)),
    "__byte_perm": _byte_perm,
    "__dp4a": lambda a, b, c: ((_b(a, np.int8) * _b(b, np.int8)).sum(1) + c).astype(np.int32),
    "__hadd": lambda a, b: (a.astype(np.int64) + b) >> 1,
    "__urhadd": lambda a, b: (a.astype(np.int64) + b + 1) >> 1,
    "__popcll": lambda a: [int(v).bit_count() for v in a],
    "__ffs": lambda a: [(int(v) & -int(v)).bit_length() for v in a],
    "__float2int_rn": lambda a: _clamped(np.rint(a.astype(np.float64)), -(2**31), 2**31 - 1),
    "__float2uint_rz": lambda a: _clamped(np.trunc(a.astype(np.float64)), 0, 2**32 - 1),
    "__double2float_rn": lambda a: a.astype(np.float32),
    "__float2half_rn": lambda a: a.astype(np.float16).view(np.uint16),
    "__float2bfloat16_rn": lambda a: a.astype(ml_dtypes.bfloat16).view(np.uint16),
    "__fadd_rn": lambda a, b: a + b,
    "__ddiv_rn": lambda a, b: a / b,
    "fminf": np.fmin,
    "ptx lop3.b32 0xe8": lambda a, b, c: a & b | a & c | b & c,
    "ptx cvt.rni.sat.u8.f32": lambda a: _clamped(np.rint(a), 0, 255),
    # PTX clamps shift counts; the same expression on AMD takes the low bits of the count.
    "operator_shl_u64": lambda a, b: _shift(a, b, 64),
    "__nv_cvt_fp8_to_halfraw E4M3": lambda a: (
        a.view(ml_dtypes.float8_e4m3fn).astype(np.float16).view(np.uint16)
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_recorded_agrees_with_the_formula(recorded, name):
    row = recorded[name]
    with np.errstate(all="ignore"):
        wanted = np.array(FORMULAS[name](*row.inputs))
    actual, wanted = row.output, wanted.astype(row.output.dtype)
    if row.result == "h1":
        # Which NaN comes out is not what is compared.
        kind = ml_dtypes.bfloat16 if "bfloat" in name else np.float16
        actual, wanted = (v.view(kind).astype(np.float32) for v in (actual, wanted))
    np.testing.assert_array_equal(actual, wanted)
