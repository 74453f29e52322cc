"""CUDA sources inside Python strings: converted in place, positions mapped."""

from __future__ import annotations

from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.convert.embedded import Text, is_kernel, plan_text
from hipport.findings import Action, Finding, Severity
from hipport.parse.python import PyFile
from hipport.parse.unit import Unit
from hipport.source import Change


def kernel_changes(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding | Change]:
    """Plan every string that holds device code as a source of its own."""
    for text in file.strings:
        if not is_kernel(text.content):
            continue
        if text.formatted:
            yield context.finding(
                "kernel-string",
                unit,
                text.span,
                action=Action.FLAG,
                severity=Severity.WARNING,
                what="an f-string with device code is not converted: its text is made at run time",
            )
            continue
        yield from plan_text(unit, context, Text(text.span, text.content, text.offsets, text.raw))
