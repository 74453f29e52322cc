"""Compile HIP text for the emulator's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hipport.emulator import Module, load
from hipport.emulator.devcompile import compile_device

TARGETS = ("gfx90a", "gfx942", "gfx1100")

Compile = Callable[..., Module]


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def compile_hip() -> Compile:
    """compile_hip(text, target, *options) -> Module"""

    def build(text: str, target: str, *options: str) -> Module:
        source = "#include <hip/hip_runtime.h>\n" + text
        return load(compile_device(source, target, options or ("-O2",)))

    return build
