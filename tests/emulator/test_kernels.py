"""The kernel fixtures: converted sources on every target against NumPy and an NVIDIA GPU."""

from __future__ import annotations

import hashlib

import pytest

from hipport.emulator import EmulatorError
from hipport.verify import harness
from hipport.verify.numerics import Verdict, compare_outputs
from hipport.verify.spec import KernelSpec, Renamed
from tests.emulator import kernels

SEEDS = (0, 1, 2)
# Sources whose kernels need no repair besides names.
PLAIN = tuple(s for s in kernels.SPECS if s.source.stem not in kernels.WAVEFRONT)


def _name(spec: KernelSpec) -> str:
    return spec.name


def test_there_are_enough_fixtures():
    wrong = [s for s in kernels.SPECS if s.renamed[64] is Renamed.WRONG]
    assert len(kernels.SPECS) >= 60
    assert len(wrong) >= 20
    assert len({s.name for s in kernels.SPECS}) == len(kernels.SPECS)


@pytest.mark.parametrize("spec", kernels.SPECS, ids=_name)
def test_reference_agrees_with_nvidia(spec):
    """The NumPy functions were written without the GPU's answers; both must agree."""
    for seed in SEEDS:
        found = kernels.differences(
            spec, kernels.recorded(spec, seed), kernels.expected(spec, seed)
        )
        assert not found, f"seed {seed}"


@pytest.mark.parametrize("spec", kernels.SPECS, ids=_name)
def test_recordings_belong_to_these_sources_and_data(spec):
    about = kernels.about(spec)
    assert about["source"] == hashlib.sha256(spec.source.read_bytes()).hexdigest()
    for seed in SEEDS:
        data = harness.encode_input(spec, spec.data(seed))
        assert about["inputs"][f"{spec.name}.{seed}"] == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("target", kernels.TARGETS)
@pytest.mark.parametrize("spec", PLAIN, ids=_name)
def test_converted(spec, target):
    try:
        outcome = kernels.run(spec, kernels.converted(spec.source), target)
    except EmulatorError:
        if spec.converted[kernels.WAVE[target]] is Renamed.COMPILE:
            return  # reported, not repaired; where it builds it must be right
        raise
    assert outcome.ran, outcome.fault
    actual = outcome.outputs[0]
    assert not kernels.differences(spec, actual, kernels.expected(spec))
    assert not kernels.differences(spec, actual, kernels.recorded(spec))


@pytest.mark.parametrize("spec", PLAIN, ids=_name)
def test_a_wrong_result_is_seen(spec):
    """The comparison is sharp: one element changed in each output, and it no longer matches."""
    wrong = {n: a.copy() for n, a in kernels.recorded(spec).items()}
    for array in wrong.values():
        bits = array.reshape(-1).view("u1")
        bits[array.dtype.itemsize * (array.size // 2)] ^= 0xFF
        bits[array.dtype.itemsize * (array.size // 2) + array.dtype.itemsize - 1] ^= 0x7F
    results = compare_outputs(spec, wrong, kernels.expected(spec))
    assert {r.verdict for r in results} == {Verdict.MISMATCH}
