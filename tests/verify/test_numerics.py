"""The comparison: what agrees, what does not, and what is told about it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hipport.verify.numerics import (
    ULP_CLASSES,
    Verdict,
    compare,
    ordered,
    spread,
    ulp_distance,
    worst,
)
from hipport.verify.spec import Tolerance

FLOATS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)


def f32(*values):
    return np.array(values, np.float32)


def test_equal_arrays_match():
    for dtype in (*FLOATS, np.int8, np.uint64):
        x = np.arange(20).astype(dtype)
        result = compare("x", x, x.copy())
        assert result.verdict is Verdict.MATCH
        assert (result.elements, result.mismatches, result.max_abs) == (20, 0, 0.0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_ulp_apart(dtype):
    x = np.array([1.0, -3.0, 100.0]).astype(dtype)
    y = x.copy()
    y.view(f"u{y.dtype.itemsize}")[1] += 1
    assert ulp_distance(x, y).tolist() == [0, 1, 0]
    exact = compare("x", y, x)
    assert exact.verdict is Verdict.MISMATCH
    assert exact.mismatches == 1
    assert exact.first[0].index == (1,)
    assert exact.max_ulp == 1
    assert compare("x", y, x, Tolerance(ulp=1)).verdict is Verdict.MATCH


@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_ulp_distance_counts_representable_values(a, b):
    x, y = f32(a), f32(b)
    steps = int(ulp_distance(x, y)[0])
    assert steps == int(ulp_distance(y, x)[0])
    assert (steps == 0) == (a == b)
    if 0 < steps < 40:
        walk = x.copy()
        for _ in range(steps):
            walk = np.nextafter(walk, y)
        assert walk == y


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_order_of_doubles_is_kept(a, b):
    x, y = ordered(np.array([a])), ordered(np.array([b]))
    assert bool(x[0] < y[0]) == (a < b)


def test_far_apart_doubles_do_not_overflow():
    distance = ulp_distance(np.array([-1e300]), np.array([1e300]))[0]
    assert distance > 1e18


def test_relative_and_absolute_bounds_add():
    expected, actual = f32(100, 0, 1), f32(100.05, 1e-4, 1)
    assert compare("x", actual, expected, Tolerance(rel=1e-3, abs=1e-3)).verdict is Verdict.MATCH
    assert compare("x", actual, expected, Tolerance(rel=1e-3)).mismatches == 1
    assert compare("x", actual, expected, Tolerance(abs=1e-3)).mismatches == 1


def test_nan_and_infinity():
    nan, inf = np.nan, np.inf
    loose = Tolerance(rel=1e9, abs=1e9, ulp=1e20)
    same = compare("x", f32(nan, inf, -inf), f32(nan, inf, -inf), loose)
    assert same.verdict is Verdict.MATCH
    for a, b in ((nan, 1), (1, nan), (inf, -inf), (inf, 3e38), (nan, inf), (0, inf)):
        result = compare("x", f32(1, a), f32(1, b), loose)
        assert result.verdict is Verdict.MISMATCH, (a, b)
        assert (result.mismatches, result.special) == (1, 1)


def test_signs_of_zero_agree_and_are_counted():
    result = compare("x", f32(0.0, -0.0, 1), f32(-0.0, -0.0, 1))
    assert result.verdict is Verdict.MATCH
    assert result.zero_signs == 1


def test_integers_have_no_tolerance():
    a = np.array([1, 2**63, 7], np.uint64)
    b = np.array([1, 0, 7], np.uint64)
    result = compare("x", a, b, Tolerance(rel=1, abs=1e30))
    assert result.verdict is Verdict.MISMATCH
    assert result.max_abs == 2.0**63
    assert result.first[0].actual == 2**63


def test_any_order():
    a, b = np.array([3, 1, 2]), np.array([1, 2, 3])
    assert compare("x", a, b).mismatches == 3
    assert compare("x", a, b, any_order=True).verdict is Verdict.MATCH
    assert compare("x", np.array([3, 1, 1]), b, any_order=True).verdict is Verdict.MISMATCH


def test_missing_shape_and_type_never_match():
    x = f32(1, 2)
    assert compare("x", None, x).why == "missing on the actual side"
    assert compare("x", x, None).verdict is Verdict.MISMATCH
    assert compare("x", x, x.reshape(1, 2)).verdict is Verdict.MISMATCH
    assert "float64" in compare("x", x.astype(np.float64), x).why


def test_structures_compare_fields_and_ignore_padding():
    dtype = np.dtype([("a", "u1"), ("b", "f4")], align=True)
    x, y = np.zeros(3, dtype), np.frombuffer(b"\x00\xff\xff\xff\0\0\0\0" * 3, dtype).copy()
    assert compare("x", x, y).verdict is Verdict.MATCH
    y["b"][1] = 2
    result = compare("x", x, y)
    assert (result.verdict, result.mismatches, result.why) == (Verdict.MISMATCH, 1, "field b")


def test_noise_explains_only_what_it_covers():
    expected = f32(1, 2, 3)
    runs = [f32(1, 2, 3), f32(1, 2.01, 3), f32(1, 1.99, 3)]
    noise = spread(runs)
    np.testing.assert_allclose(noise, [0, 0.02, 0], atol=1e-6)
    near = compare("x", f32(1, 2.015, 3), expected, noise=noise)
    assert near.verdict is Verdict.WITHIN_NOISE
    assert "1 within the spread" in near.why
    assert compare("x", f32(1, 2.015, 3.01), expected, noise=noise).verdict is Verdict.MISMATCH
    assert compare("x", f32(1, np.nan, 3), expected, noise=noise).verdict is Verdict.MISMATCH


def test_histogram_covers_every_finite_element():
    x = np.ones(100, np.float32)
    y = x.copy()
    y.view(np.uint32)[:10] += np.arange(10, dtype=np.uint32)
    result = compare("x", y, x, Tolerance(ulp=16))
    assert sum(result.ulps) == 100
    assert len(result.ulps) == len(ULP_CLASSES) + 1
    assert result.ulps[:5] == (91, 1, 1, 2, 4)


def test_one_line_for_a_person():
    line = compare("sum", f32(1, 2.5), f32(1, 2)).line()
    assert line.startswith("sum: mismatch, 1 of 2 differ; first at [1]: 2.5 instead of 2.0")
    assert "\n" not in line


def test_worst():
    assert worst([Verdict.MATCH, Verdict.WITHIN_NOISE]) is Verdict.WITHIN_NOISE
    assert worst([Verdict.MISMATCH, Verdict.MATCH]) is Verdict.MISMATCH
    assert worst([]) is Verdict.UNVERIFIABLE
    assert not worst([]).good
