"""Kernels that go wrong on wavefronts of 64 when merely renamed, and their look-alikes."""

from __future__ import annotations

import pytest

from hipport.emulator import EmulatorError
from hipport.verify.spec import KernelSpec, Renamed
from tests.emulator import kernels

SPECS = tuple(s for s in kernels.SPECS if s.hazards or s.source.stem in kernels.WAVEFRONT)
WARPS = tuple(s for s in SPECS if s.source.stem in kernels.WAVEFRONT)
NUMERIC = {slug for s in SPECS for slug in s.hazards if 64 in s.renamed}
# Rewritten wherever they stand, since whether the answer differs depends on the data.
ANSWERED_ANYWAY = {"vote-scope", "lane-arithmetic", "sync-mask-width"}
UNREPORTED = {
    "shift_by_width": "a shift count from data; no rule can tell 32 from 31",
    "width_wraps": "HIP 5's own fault: a source lane beyond the width is not wrapped",
}


def _name(spec: KernelSpec) -> str:
    return spec.name


@pytest.mark.parametrize("target", ["gfx942", "gfx1100"])
@pytest.mark.parametrize("spec", SPECS, ids=_name)
def test_renamed(spec, target):
    """What the specification says of the renamed source is what happens."""
    wanted = spec.renamed[kernels.WAVE[target]]
    if wanted is Renamed.COMPILE:
        with pytest.raises(EmulatorError, match="error:"):
            kernels.run(spec, kernels.renamed(spec.source), target)
        return
    outcome = kernels.run(spec, kernels.renamed(spec.source), target)
    assert outcome.ran == (wanted is not Renamed.FAULT), outcome.fault
    found = kernels.differences(spec, outcome.outputs[0], kernels.recorded(spec))
    assert bool(found) == (wanted is Renamed.WRONG), found


@pytest.mark.parametrize("target", kernels.TARGETS)
@pytest.mark.parametrize("spec", WARPS, ids=_name)
def test_converted(spec, target):
    """Conversion repairs what renaming breaks; what it leaves wrong, the specification says."""
    outcome = kernels.run(spec, kernels.converted(spec.source), target)
    assert outcome.ran, outcome.fault
    wrong = spec.converted[kernels.WAVE[target]] is Renamed.WRONG
    for wanted in (kernels.expected(spec), kernels.recorded(spec)):
        found = kernels.differences(spec, outcome.outputs[0], wanted)
        assert bool(found) == wrong, found


@pytest.mark.parametrize("spec", [s for s in SPECS if s.hazards], ids=_name)
def test_reported(spec, request):
    """Nothing that goes wrong is silent: the hazard is reported inside that very kernel."""
    if spec.name in UNREPORTED:
        request.applymarker(pytest.mark.xfail(strict=True, reason=UNREPORTED[spec.name]))
    assert kernels.findings(spec) & set(spec.hazards)


def test_lookalikes_cause_no_alarm():
    """Of kernels that are right as they are, only what does not build is reported."""
    for spec in kernels.SPECS:
        if spec.source.stem == "lookalikes":
            assert not kernels.findings(spec) & NUMERIC - ANSWERED_ANYWAY, spec.name
