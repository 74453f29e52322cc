"""Python: kernels in strings, PyTorch extensions, guards on CUDA."""

from __future__ import annotations

from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.convert.pyfiles.guards import guard_findings
from hipport.convert.pyfiles.kernels import kernel_changes
from hipport.convert.pyfiles.setup import setup_changes
from hipport.findings import Finding
from hipport.parse.python import PyFile
from hipport.parse.unit import Unit
from hipport.source import Change, Span


def python_changes(unit: Unit, context: Context) -> Iterator[Finding | Change | Span]:
    """Everything that hipport has to say about a Python file."""
    if not any(word in unit.data for word in (b"cuda", b"CUDA", b"__global__", b"nvcc", b"nccl")):
        return
    file = PyFile(unit.data)
    yield from kernel_changes(unit, context, file)
    yield from setup_changes(unit, context, file)
    yield from guard_findings(unit, context, file)
