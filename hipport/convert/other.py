"""Plans for files that are not C or C++: build files, Python, scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from hipport.checks.context import Context
from hipport.convert.buildfiles.cmake import cmake_changes
from hipport.convert.buildfiles.text import make_changes, requirement_changes, script_changes
from hipport.convert.plan import base_plan, by_place, compose
from hipport.convert.pyfiles import python_changes
from hipport.findings import Finding
from hipport.parse.unit import Unit
from hipport.project.kinds import Kind
from hipport.report.model import FilePlan, FileStatus
from hipport.source import Change, SourceFile, Span

Producer = Callable[[Unit, Context], Iterable[Finding | Change | Span]]

_PRODUCERS: dict[Kind, Producer] = {
    Kind.CMAKE: cmake_changes,
    Kind.PYTHON: python_changes,
    Kind.MAKE: make_changes,
    Kind.SHELL: script_changes,
    Kind.REQUIREMENTS: requirement_changes,
}
KINDS = frozenset(_PRODUCERS)
"""Kinds that `plan_other` takes."""


def plan_other(source: SourceFile, kind: Kind, context: Context) -> FilePlan:
    """Plan one build file, Python file or script. Never raises for any content."""
    base = base_plan(source)
    if not source.ascii_compatible or kind not in _PRODUCERS:
        return base
    unit = Unit(source)
    findings: list[Finding] = []
    changes: list[Change] = []
    errors: list[Span] = []
    for item in _PRODUCERS[kind](unit, context):
        if isinstance(item, Finding):
            findings.append(item)
        elif isinstance(item, Change):
            changes.append(item)
        else:
            errors.append(item)
    edits, findings, accepted = compose(len(source.data), context, findings, changes)
    labels = Counter(c.label or "other" for c in accepted)
    output = edits.apply(source.data) if len(edits) else None
    if output == source.data:
        output = None
    return replace(
        base,
        status=FileStatus.CONVERTED if output is not None else FileStatus.UNTOUCHED,
        edits=tuple(edits.ordered()) if output is not None else (),
        output=output,
        findings=tuple(sorted(set(findings), key=by_place)),
        edits_by_label=tuple(sorted(labels.items())) if output is not None else (),
        error_bytes=sum(len(s) for s in errors),
        error_lines=tuple(unit.line(s.start) for s in errors),
    )
