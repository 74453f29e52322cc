"""CUDA sources inside strings: planned as sources of their own, positions mapped back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hipport.checks.context import Context
from hipport.findings import Action, Finding, Severity
from hipport.parse.facts import collect, merge
from hipport.parse.tokens import Kind
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, SourceFile, Span

_KERNEL = re.compile(rb"__global__|__device__|#[ \t]*include[ \t]*[<\"](?:cu|hip/|torch/)")
_CODE = re.compile(rb"[;{}()]")
_RAW = re.compile(rb'(?:u8|[uUL])?R"([^()\\\s]*)\(')


@dataclass(frozen=True)
class Text:
    """A string's content, and for each content byte (and one behind) the offset in the file.

    `raw` says that backslashes and quotes stand for themselves.
    """

    span: Span
    content: bytes
    offsets: tuple[int, ...]
    raw: bool


def is_kernel(content: bytes) -> bool:
    """Whether a string holds device code."""
    return _KERNEL.search(content) is not None and len(_CODE.findall(content)) > 3


def plan_text(unit: Unit, context: Context, text: Text) -> Iterator[Finding | Change]:
    """Findings and changes of one string with device code."""
    from hipport.convert.plan import plan_file

    names = frozenset(context.api.renames) | frozenset(context.api.unmapped)
    path = f"{unit.path}.string"
    facts = merge([*context.project.files.values(), collect(path, text.content, names)])
    plan = plan_file(SourceFile(Path(path), text.content), replace(context, project=facts))
    if plan.output is None and not plan.findings:
        return
    for finding in plan.findings:
        yield _mapped(unit, text, finding)
    for edit in plan.edits:
        yield Change((_edit(text, edit),), priority=10, label="kernel-string")
    needs = [n for n in plan.needs if n.startswith('"')]
    what = "device code in a string was converted in place"
    if needs:
        what += f"; it needs the text of {', '.join(needs)} in front"
    start = _KERNEL.search(text.content)
    line = text.content.rfind(b"\n", 0, start.start() if start else 0) + 1
    at = text.offsets[line]
    yield context.finding(
        "kernel-string",
        unit,
        Span(at, text.span.end),
        action=Action.FLAG if needs else Action.AUTO,
        severity=Severity.WARNING if needs else Severity.INFO,
        what=what,
    )


def _mapped(unit: Unit, text: Text, finding: Finding) -> Finding:
    last = len(text.offsets) - 1
    start = text.offsets[min(finding.span.start, last)]
    end = text.offsets[min(finding.span.end, last)]
    line, column = unit.source.line_col(start)
    return replace(
        finding,
        path=unit.path,
        line=line,
        column=column,
        span=Span(start, max(start, end)),
        change=None,
    )


def _edit(text: Text, edit: Edit) -> Edit:
    """An edit of the string's content as an edit of the file."""
    new = edit.text
    if not text.raw:
        new = new.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    extent = None
    if edit.extent is not None:
        extent = Span(text.offsets[edit.extent.start], text.offsets[edit.extent.end])
    return Edit(Span(text.offsets[edit.span.start], text.offsets[edit.span.end]), new, extent)


def cpp_strings(unit: Unit, context: Context) -> Iterator[Finding | Change]:
    """Raw string literals with device code in C++ sources (run-time compilation)."""
    if unit.path.endswith(".string") or b'R"' not in unit.data:
        return
    for token in unit.tokens:
        if token.kind is not Kind.STRING:
            continue
        opening = _RAW.match(token.text)
        if opening is None:
            continue
        start = token.start + opening.end()
        end = token.end - len(opening.group(1)) - 2
        content = unit.data[start:end]
        if is_kernel(content):
            text = Text(Span(start, end), content, tuple(range(start, end + 1)), raw=True)
            yield from plan_text(unit, context, text)
