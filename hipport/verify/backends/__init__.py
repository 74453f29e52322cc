"""Where a kernel can run: one interface for every back end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hipport.verify.spec import KernelSpec

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a launch gave: the outputs of each run, or why there are none.

    `fault` is one line: the kernel did something that must not be (an access out of bounds, an
    instruction that is not there). It excludes outputs."""

    outputs: tuple[Mapping[str, Array], ...] = ()
    fault: str = ""
    seconds: float = 0.0

    @property
    def ran(self) -> bool:
        """Whether there are outputs to compare."""
        return not self.fault


class Backend(Protocol):
    """Runs a kernel of a source text as its specification says."""

    name: str

    def run(
        self, source: bytes, spec: KernelSpec, data: Mapping[str, Array], repeat: int = 1
    ) -> Outcome:
        """Launch `spec.kernel` of `source` on copies of `data`, `repeat` times."""
