"""Compare two arrays element by element and say how far apart they are.

Integers agree when equal. Floats agree by a `Tolerance`. NaN agrees with NaN only, an infinity
with the same infinity only; -0 and +0 agree and are counted. A buffer that is missing, or whose
shape or type differs, never agrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from hipport.verify.spec import KernelSpec, Tolerance

Array = np.ndarray[Any, Any]
EXACT = Tolerance()
_SHOWN = 8
# Upper ends (inclusive) of the ULP histogram's classes; the last class takes the rest.
ULP_CLASSES = (0, 1, 2, 4, 8, 16, 64, 256, 4096, 2**16, 2**24)


class Verdict(str, Enum):
    """The answer for a buffer, or for all buffers of a kernel (the worst of them)."""

    MATCH = "match"
    WITHIN_NOISE = "match within noise"
    UNVERIFIABLE = "unverifiable"
    MISMATCH = "mismatch"
    FAULT = "fault"

    @property
    def good(self) -> bool:
        """Whether the port computes the same."""
        return self in (Verdict.MATCH, Verdict.WITHIN_NOISE)


_WORSE = list(Verdict)


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of several verdicts; no verdict at all is UNVERIFIABLE."""
    return max(verdicts, key=_WORSE.index, default=Verdict.UNVERIFIABLE)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One element that does not agree."""

    index: tuple[int, ...]
    actual: Any
    expected: Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """How one buffer compares.

    `max_abs` and `max_rel` are over elements finite on both sides; `max_ulp` counts representable
    values between (0 for integers). `ulps` pairs with ULP_CLASSES and one class above.
    `special` counts elements where NaN or infinity stands on one side only, `zero_signs` those
    where only the sign of zero differs. `why` explains a verdict that is no plain match."""

    name: str
    verdict: Verdict
    elements: int
    mismatches: int
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: float = 0.0
    ulps: tuple[int, ...] = ()
    special: int = 0
    zero_signs: int = 0
    first: tuple[Mismatch, ...] = ()
    why: str = ""

    def line(self) -> str:
        """One line for a person."""
        text = f"{self.name}: {self.verdict.value}"
        if self.mismatches:
            text += f", {self.mismatches} of {self.elements} differ"
        if self.first:
            m = self.first[0]
            at = ",".join(str(i) for i in m.index)
            text += f"; first at [{at}]: {m.actual} instead of {m.expected}"
        if self.max_ulp:
            text += f"; at most {self.max_abs:.3g} apart (relative {self.max_rel:.3g}, "
            text += f"{self.max_ulp:.4g} ULP)"
        return f"{text} ({self.why})" if self.why else text


def _is_float(dtype: np.dtype[Any]) -> bool:
    # ml_dtypes' narrow floats are of kind "V" for NumPy.
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.fields is None)


def ordered(values: Array) -> Array:
    """Float bit patterns as integers (int64) whose difference counts representable values.

    -0 and +0 map to the same number. Works for any IEEE-like format of 1, 2, 4 or 8 bytes."""
    size = values.dtype.itemsize
    bits = np.ascontiguousarray(values).view(f"i{size}").astype(np.int64)
    if size == 8:
        low = np.int64(-(2**63))
        return np.where(bits < 0, low - bits, bits)
    sign = 1 << (8 * size - 1)
    magnitude = bits & (sign - 1)
    out: Array = np.where(bits < 0, -magnitude, magnitude)
    return out


def ulp_distance(actual: Array, expected: Array) -> Array:
    """Representable values between two arrays of one float type, as float64 (NaN: 0 if both)."""
    a, b = ordered(actual), ordered(expected)
    # Of opposite signs the difference may overflow int64; in float64 it only loses low bits.
    same = (a < 0) == (b < 0)
    exact = np.abs(np.where(same, a - b, 0)).astype(np.float64)
    far = np.abs(a.astype(np.float64)) + np.abs(b.astype(np.float64))
    distance = np.where(same, exact, far)
    x, y = actual.astype(np.float64), expected.astype(np.float64)
    return np.where(np.isnan(x) & np.isnan(y), 0.0, distance)


def compare(
    name: str,
    actual: Array | None,
    expected: Array | None,
    tolerance: Tolerance = EXACT,
    *,
    any_order: bool = False,
    noise: Array | float | None = None,
) -> Comparison:
    """Compare one buffer. `noise` is the absolute spread of repeated reference runs, for each
    element or for all: a difference that only `noise` explains gives WITHIN_NOISE."""
    if actual is None or expected is None:
        side = "actual" if actual is None else "reference"
        return Comparison(name, Verdict.MISMATCH, 0, 0, why=f"missing on the {side} side")
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return Comparison(
            name,
            Verdict.MISMATCH,
            expected.size,
            expected.size,
            why=f"{actual.dtype}{list(actual.shape)} against "
            f"{expected.dtype}{list(expected.shape)}",
        )
    if expected.dtype.fields is not None:
        return _structures(name, actual, expected, tolerance, noise)
    if any_order:
        actual, expected = np.sort(actual, axis=None), np.sort(expected, axis=None)
    if not _is_float(expected.dtype):
        return _integers(name, actual, expected)
    return _floats(name, actual, expected, tolerance, noise)


def _structures(
    name: str,
    actual: Array,
    expected: Array,
    tolerance: Tolerance,
    noise: Array | float | None,
) -> Comparison:
    # Padding bytes mean nothing: only the fields count.
    parts = [
        compare(f"{name}.{f}", actual[f], expected[f], tolerance)
        for f in expected.dtype.names or ()
    ]
    bad = [p for p in parts if not p.verdict.good]
    return Comparison(
        name,
        worst([p.verdict for p in parts]),
        sum(p.elements for p in parts),
        sum(p.mismatches for p in parts),
        max(p.max_abs for p in parts),
        max(p.max_rel for p in parts),
        max(p.max_ulp for p in parts),
        special=sum(p.special for p in parts),
        zero_signs=sum(p.zero_signs for p in parts),
        first=bad[0].first if bad else (),
        why=f"field {bad[0].name.rsplit('.', 1)[-1]}" if bad else "",
    )


def _first(bad: Array, actual: Array, expected: Array) -> tuple[Mismatch, ...]:
    places = np.argwhere(bad)[:_SHOWN]
    return tuple(
        Mismatch(tuple(int(i) for i in p), actual[tuple(p)].item(), expected[tuple(p)].item())
        for p in places
    )


def _integers(name: str, actual: Array, expected: Array) -> Comparison:
    bad = actual != expected
    count = int(bad.sum())
    if not count:
        return Comparison(name, Verdict.MATCH, expected.size, 0)
    # Python integers: the difference of two 64-bit values needs 65 bits.
    apart = max(
        abs(int(a) - int(e)) for a, e in zip(actual[bad].flat, expected[bad].flat, strict=True)
    )
    return Comparison(
        name,
        Verdict.MISMATCH,
        expected.size,
        count,
        max_abs=float(apart),
        first=_first(bad, actual, expected),
    )


def _floats(
    name: str,
    actual: Array,
    expected: Array,
    tolerance: Tolerance,
    noise: Array | float | None,
) -> Comparison:
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(e)
    same = (a == e) | (np.isnan(a) & np.isnan(e))
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(finite, np.abs(a - e), 0.0)
        scale = np.where(finite, np.abs(e), 0.0)
        relative = np.divide(apart, scale, out=np.zeros_like(apart), where=scale > 0)
    ulp = np.where(finite, ulp_distance(actual, expected), 0.0)
    near = finite & (
        ((ulp <= tolerance.ulp) & (tolerance.ulp > 0))
        | (apart <= tolerance.abs + tolerance.rel * scale)
    )
    bad = ~(same | near)
    verdict, why = Verdict.MATCH, ""
    if bad.any():
        verdict = Verdict.MISMATCH
        if noise is not None:
            excused = bad & finite & (apart <= tolerance.abs + tolerance.rel * scale + noise)
            if bool((excused == bad).all()):
                verdict = Verdict.WITHIN_NOISE
                why = f"{int(bad.sum())} within the spread of repeated reference runs"
                bad = np.zeros_like(bad)
    special = ~finite & ~same
    edges = np.array(ULP_CLASSES, np.float64)
    classes = np.searchsorted(edges, ulp[finite], side="left")
    return Comparison(
        name,
        verdict,
        expected.size,
        int(bad.sum()),
        float(apart.max(initial=0.0)),
        float(relative.max(initial=0.0)),
        float(ulp.max(initial=0.0)),
        tuple(int(n) for n in np.bincount(classes, minlength=len(edges) + 1)),
        int(special.sum()),
        int(((a == 0) & (e == 0) & (np.signbit(a) != np.signbit(e))).sum()),
        _first(bad, actual, expected),
        why,
    )


def compare_outputs(
    spec: KernelSpec,
    actual: Mapping[str, Array],
    expected: Mapping[str, Array],
    noise: Mapping[str, Array] | None = None,
) -> tuple[Comparison, ...]:
    """Compare every output of a kernel; one that is missing on a side does not match."""
    return tuple(
        compare(
            b.name,
            actual.get(b.name),
            expected.get(b.name),
            spec.tolerance_of(b),
            any_order=b.any_order,
            noise=None if noise is None else noise.get(b.name),
        )
        for b in spec.outputs
    )


def spread(runs: Sequence[Array]) -> Array:
    """How far apart repeated runs of one buffer lie, for each element (float64)."""
    stack = np.stack([r.astype(np.float64) for r in runs])
    with np.errstate(invalid="ignore"):
        out: Array = np.nan_to_num(stack.max(0) - stack.min(0))
    return out
