"""Shared by tests: plan a few files as one project, without touching the disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hipport.api import Options
from hipport.checks import Context
from hipport.convert.plan import plan_file
from hipport.findings import Finding, Severity
from hipport.parse.facts import collect, merge
from hipport.report.model import FilePlan
from hipport.rules import api, hazards
from hipport.source import SourceFile


@dataclass(frozen=True)
class Planned:
    """Plans by path, with the usual questions."""

    sources: dict[str, bytes]
    plans: dict[str, FilePlan]

    def text(self, path: str = "a.cu") -> str:
        """The converted text of a file (the original where nothing changed)."""
        output = self.plans[path].output
        return (self.sources[path] if output is None else output).decode("utf-8", "surrogateescape")

    def findings(self, path: str = "a.cu", slug: str | None = None) -> list[Finding]:
        """Findings of a slug in a file, or all that are more than information."""
        return [
            f
            for f in self.plans[path].findings
            if f.slug == slug or (slug is None and f.severity is not Severity.INFO)
        ]

    def lines(self, slug: str, path: str = "a.cu") -> list[int]:
        """Lines on which a slug is reported."""
        return sorted({f.line for f in self.findings(path, slug)})


def plan(sources: str | bytes | dict[str, str | bytes], options: Options | None = None) -> Planned:
    """Plan one source (as ``a.cu``) or several by path."""
    options = options or Options()
    named = sources if isinstance(sources, dict) else {"a.cu": sources}
    files = {path: data.encode() if isinstance(data, str) else data for path, data in named.items()}
    table = api.load(options.rocm)
    names = frozenset(table.renames) | frozenset(table.unmapped)
    project = merge([collect(path, data, names) for path, data in files.items()])
    context = Context(table, hazards.load(), project, options)
    plans = {p: plan_file(SourceFile(Path(p), d), context) for p, d in files.items()}
    return Planned(files, plans)


def again(planned: Planned, options: Options | None = None) -> Planned:
    """Plan the converted files once more."""
    return plan(
        {
            path: planned.sources[path] if p.output is None else p.output
            for path, p in planned.plans.items()
        },
        options,
    )
