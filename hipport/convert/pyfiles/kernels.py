"""CUDA sources inside Python strings: converted in place, positions mapped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hipport.checks.context import Context
from hipport.findings import Action, Finding, Severity
from hipport.parse.facts import collect, merge
from hipport.parse.python import PyFile, PyString
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, SourceFile, Span

_KERNEL = re.compile(rb"__global__|__device__|#[ \t]*include[ \t]*[<\"](?:cu|hip/|torch/)")
_CODE = re.compile(rb"[;{}()]")


def _is_kernel(text: PyString) -> bool:
    return _KERNEL.search(text.content) is not None and len(_CODE.findall(text.content)) > 3


def kernel_changes(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding | Change]:
    """Plan every string that holds device code as a source of its own."""
    from hipport.convert.plan import plan_file

    for text in file.strings:
        if not _is_kernel(text):
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
        names = frozenset(context.api.renames) | frozenset(context.api.unmapped)
        facts = merge([*context.project.files.values(), collect(unit.path, text.content, names)])
        inner_context = replace(context, project=facts)
        plan = plan_file(SourceFile(Path(unit.path), text.content), inner_context)
        if plan.output is None and not plan.findings:
            continue
        yield from _findings(unit, text, plan.findings)
        for edit in plan.edits:
            mapped = _map(text, edit)
            if mapped is not None:
                yield Change((mapped,), priority=10, label="kernel-string")
        what = "device code in a string was converted in place"
        needs = [n for n in plan.needs if n.startswith('"')]
        if needs:
            what += f"; it needs the text of {', '.join(needs)} in front"
        yield context.finding(
            "kernel-string",
            unit,
            text.span,
            action=Action.FLAG if needs else Action.AUTO,
            severity=Severity.WARNING if needs else Severity.INFO,
            what=what,
        )


def _findings(unit: Unit, text: PyString, findings: tuple[Finding, ...]) -> Iterator[Finding]:
    for finding in findings:
        start = text.offsets[min(finding.span.start, len(text.offsets) - 1)]
        end = text.offsets[min(finding.span.end, len(text.offsets) - 1)]
        line, column = unit.source.line_col(start)
        yield replace(
            finding,
            path=unit.path,
            line=line,
            column=column,
            span=Span(start, max(start, end)),
            change=None,
        )


def _map(text: PyString, edit: Edit) -> Edit | None:
    """An edit of the string's content as an edit of the file."""
    start, end = text.offsets[edit.span.start], text.offsets[edit.span.end]
    new = edit.text
    if not text.raw:
        new = new.replace(b"\\", b"\\\\")
        quote = b'"'
        new = new.replace(quote, b'\\"')
        if b"\n" in new and b"\n" not in text.content:
            new = new.replace(b"\n", b"\\n")
    extent = None
    if edit.extent is not None:
        extent = Span(text.offsets[edit.extent.start], text.offsets[edit.extent.end])
    return Edit(Span(start, end), new, extent)
