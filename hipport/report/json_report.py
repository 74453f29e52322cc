"""The machine-readable report; its schema is ``docs/schema/report-1.json``."""

from __future__ import annotations

import json
from typing import Any

import hipport
from hipport.findings import Severity
from hipport.report.model import FilePlan, FileStatus, Report, severities
from hipport.report.text import safe, shown

SCHEMA = "hipport-report-1"


def _file(plan: FilePlan) -> dict[str, Any]:
    out: dict[str, Any] = {
        "path": shown(plan.path),
        "status": plan.status.value,
        "size": plan.size,
        "lines": plan.lines,
        "edits": sum(count for _, count in plan.edits_by_label),
        "unparsed_bytes": plan.error_bytes,
    }
    if plan.digest:
        out["sha256"] = plan.digest
    if plan.error_lines:
        out["unparsed_lines"] = list(plan.error_lines)
    if plan.renamed:
        out["renamed"] = shown(plan.renamed)
    if plan.note:
        out["note"] = safe(plan.note)
    return out


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data."""
    findings = report.all_findings()
    by_severity = severities(findings)
    return {
        "schema": SCHEMA,
        "tool": {"name": "hipport", "version": hipport.__version__},
        "command": report.command,
        "root": shown(report.root),
        "rocm": report.rocm,
        "exit_code": report.exit_code(),
        "seconds": round(report.seconds, 3),
        "summary": {
            "files": {
                "seen": len(report.files),
                **{status.value: report.count(status) for status in FileStatus},
            },
            "edits": dict(sorted(report.edits_by_label().items())),
            "findings": {severity.value: by_severity[severity.value] for severity in Severity},
            "need_a_person": sum(1 for f in findings if f.needs_person),
            "unparsed": {
                "files": sum(1 for plan in report.files if plan.error_bytes),
                "bytes": sum(plan.error_bytes for plan in report.files),
            },
        },
        "findings": [_safe(f.as_json()) for f in findings],
        "files": [_file(plan) for plan in report.files],
        "written": [shown(path) for path in report.written],
        "added": [shown(path) for path, _ in report.extra_files],
        "notes": [safe(note) for note in report.notes],
    }


def _safe(value: Any) -> Any:
    """Strings from sources may hold what is no Unicode text."""
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, dict):
        return {key: _safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_safe(item) for item in value]
    return value


def render(report: Report) -> str:
    """The report as JSON text, ASCII only."""
    return json.dumps(as_json(report), indent=1) + "\n"
