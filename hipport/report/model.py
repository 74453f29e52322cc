"""The result of a run, free of how it is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from hipport.findings import Finding, Severity
from hipport.source import Edit


class FileStatus(str, Enum):
    """What became of one file."""

    CONVERTED = "converted"
    """There are edits."""
    UNTOUCHED = "untouched"
    """Read, and nothing to change."""
    SKIPPED = "skipped"
    """Left out on purpose (vendored or generated HIP, not text); `note` says why."""
    UNREADABLE = "unreadable"
    """Could not be read or understood at all; `note` says why."""


@dataclass(frozen=True, slots=True)
class Snippet:
    """A line that findings point at: `text` begins at byte `offset` of the line."""

    line: int
    text: bytes
    offset: int = 0


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What hipport would do to one file: the only thing that a worker process returns.

    `path` is relative to the root of the run, POSIX style. `output` is the new content (None
    where nothing changes). `digest` is the SHA-256 of the bytes that the plan was made from.
    `edits_by_label` counts applied changes by library or slug. `error_bytes` is the size of the
    regions that the parser could not understand, `error_lines` where they begin. `renamed` is the
    new path where the file gets one. `snippets` are the original lines that findings name.
    """

    path: str
    status: FileStatus
    size: int = 0
    lines: int = 0
    digest: str = ""
    edits: tuple[Edit, ...] = ()
    output: bytes | None = None
    findings: tuple[Finding, ...] = ()
    edits_by_label: tuple[tuple[str, int], ...] = ()
    error_bytes: int = 0
    error_lines: tuple[int, ...] = ()
    needs: tuple[str, ...] = ()
    note: str = ""
    renamed: str = ""
    snippets: tuple[Snippet, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run."""

    root: Path
    rocm: str
    files: tuple[FilePlan, ...]
    findings: tuple[Finding, ...] = ()
    """Findings that belong to no single file (those of files are in `files`)."""
    seconds: float = 0.0
    command: str = "check"
    written: tuple[str, ...] = ()
    extra_files: tuple[tuple[str, bytes], ...] = ()
    """Files that the conversion adds (path relative to the root, content)."""
    notes: tuple[str, ...] = field(default=())

    def all_findings(self) -> list[Finding]:
        """Every finding, by path, line, column and code."""
        every = [f for plan in self.files for f in plan.findings] + list(self.findings)
        return sorted(every, key=lambda f: (f.path, f.line, f.column, f.code))

    def count(self, status: FileStatus) -> int:
        """Number of files of a status."""
        return sum(1 for plan in self.files if plan.status is status)

    def edits_by_label(self) -> Counter[str]:
        """Applied changes by library or slug."""
        total: Counter[str] = Counter()
        for plan in self.files:
            total.update(dict(plan.edits_by_label))
        return total

    def exit_code(self) -> int:
        """0 clean, 1 findings that need a person, 3 some input could not be read or parsed."""
        if any(plan.status is FileStatus.UNREADABLE for plan in self.files):
            return 3
        if any(
            f.slug == "unparsed" and f.severity is not Severity.INFO for f in self.all_findings()
        ):
            return 3
        return 1 if any(f.needs_person for f in self.all_findings()) else 0


def severities(findings: Iterable[Finding]) -> Counter[str]:
    """Findings by severity."""
    return Counter(f.severity.value for f in findings)
