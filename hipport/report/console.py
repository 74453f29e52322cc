"""The report for people: findings by cause, worst first, then a table of what was done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hipport.findings import Action, Finding, Severity
from hipport.report.indent import Indented
from hipport.report.model import FilePlan, FileStatus, Report, Snippet, severities
from hipport.report.text import code, safe, shown
from hipport.rules.hazards import Hazard

FRAMES = 3
"""How many places of a cause get a code frame unless all are asked for."""
PLACES = 12
"""How many further places of a cause are named."""

_STYLE = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}


@dataclass(frozen=True)
class Cause:
    """All findings of one slug that ask for the same thing."""

    slug: str
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity:
        """The worst severity among them."""
        return min((f.severity for f in self.findings), key=lambda s: s.rank)


def causes(findings: Iterable[Finding]) -> list[Cause]:
    """Findings grouped by slug: worst severity first, then the most frequent, then by code."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.slug, []).append(finding)
    made = [
        Cause(slug, tuple(sorted(group, key=lambda f: (f.severity.rank, f.path, f.line, f.column))))
        for slug, group in groups.items()
    ]
    return sorted(made, key=lambda c: (c.worst.rank, -len(c.findings), c.findings[0].code))


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def frame(snippet: Snippet, column: int, width: int, bar: str = "│") -> Text:
    """The source line with a caret under a 1-based byte column, cropped to a width in cells."""
    at = min(max(column - 1 - snippet.offset, 0), len(snippet.text))
    before, after = code(snippet.text[:at]), code(snippet.text[at:])
    gutter = f"{snippet.line:>6} {bar} "
    dots = "…" if bar == "│" else "..."
    room = max(width - cell_len(gutter) - 1, 20)
    if cell_len(before) + cell_len(after) > room and cell_len(before) > room * 2 // 3:
        while before and cell_len(before) > room // 2:
            before = before[max(1, (cell_len(before) - room // 2) // 2) :]
        before = dots + before
    elif snippet.offset:
        before = dots + before
    while cell_len(before) + cell_len(after) > room and after:
        after = after[: -max(1, (cell_len(before) + cell_len(after) - room) // 2)]
    line = Text(no_wrap=True, overflow="crop")
    line.append(gutter, "dim")
    line.append(before + after + "\n")
    line.append(" " * (len(gutter) - 2) + f"{bar} ", "dim")
    line.append(" " * cell_len(before) + "^", "bold")
    return line


class ConsoleReport:
    """Prints a report."""

    def __init__(
        self,
        report: Report,
        rules: Mapping[str, Hazard],
        *,
        verbose: bool = False,
        next_step: str = "",
    ) -> None:
        self.report = report
        self.rules = rules
        self.verbose = verbose
        self.next_step = next_step
        self.bar = "│"
        self.snippets = {
            (plan.path, snippet.line): snippet for plan in report.files for snippet in plan.snippets
        }

    def print(self, console: Console) -> None:
        """Print all of it."""
        self.bar = "│" if console.encoding.startswith("utf") else "|"
        for part in self.parts(console.width):
            # A bare text names paths or a command, which a line break would spoil.
            console.print(part, soft_wrap=isinstance(part, Text))

    def parts(self, width: int) -> Iterator[RenderableType]:
        """The pieces of the report, top to bottom."""
        findings = self.report.all_findings()
        for cause in causes(f for f in findings if f.needs_person):
            yield self.cause(cause, width)
        repaired = [f for f in findings if not f.needs_person and f.severity is not Severity.INFO]
        if self.verbose:
            for cause in causes(f for f in findings if not f.needs_person):
                yield self.cause(cause, width)
        elif repaired:
            yield self.repaired(repaired)
        yield from self.files()
        yield self.summary()
        if self.next_step:
            yield Text(self.next_step)

    def cause(self, cause: Cause, width: int) -> RenderableType:
        """One cause: a heading, frames, further places."""
        rule = self.rules.get(cause.slug)
        head = Text()
        head.append(f"{cause.worst.value} {cause.findings[0].code} ", _STYLE[cause.worst])
        head.append(cause.slug, "bold")
        if rule is not None:
            head.append(f"  {rule.title}")
        paths = {f.path for f in cause.findings}
        places = counted(len(cause.findings), "place")
        head.append(f"  {places} in {counted(len(paths), 'file')}", "dim")
        parts: list[RenderableType] = [head]
        with_frame = cause.findings if self.verbose else cause.findings[:FRAMES]
        said = ""
        for finding in with_frame:
            parts.append(Indented(self.place(finding, width - 4, said), 2))
            said = finding.message
        rest = cause.findings[len(with_frame) :]
        if rest:
            parts.append(Indented(_places(rest), 2))
        foot = Text(style="dim")
        if rule is not None and rule.targets:
            foot.append(f"on {', '.join(rule.targets)}; ")
        foot.append(f"more: hipport rule {cause.slug}\n")
        parts.append(Indented(foot, 2))
        return Group(*parts)

    def place(self, finding: Finding, width: int, said: str) -> RenderableType:
        """One finding: where, the line, what; a message just said is not said again."""
        where = Text(overflow="fold")
        where.append(f"{shown(finding.path)}:{finding.line}:{finding.column}", "cyan")
        if not finding.needs_person and finding.action is Action.AUTO:
            where.append("  repaired", "green")
        parts: list[RenderableType] = [where]
        snippet = self.snippets.get((finding.path, finding.line))
        if snippet is not None:
            parts.append(frame(snippet, finding.column, width, self.bar))
        if finding.message != said:
            parts.append(Indented(Text(safe(finding.message)), 2))
        if finding.hint:
            parts.append(Indented(Text(safe(finding.hint), "italic"), 2))
        if finding.action is Action.ASSIST and finding.change is not None:
            offer = f"hipport can rewrite it: --assist {finding.slug}"
            parts.append(Indented(Text(offer, "green"), 2))
        for other in finding.related:
            text = f"{shown(other.path)}:{other.line}: {safe(other.message)}"
            parts.append(Indented(Text(text, "dim"), 2))
        return Group(*parts)

    def repaired(self, findings: Sequence[Finding]) -> RenderableType:
        """What was found and repaired, a line a cause."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for cause in causes(findings):
            rule = self.rules.get(cause.slug)
            table.add_row(
                Text(str(len(cause.findings)), justify="right"),
                Text(cause.findings[0].code),
                Text(cause.slug, "bold"),
                Text(rule.title if rule is not None else ""),
            )
        word = "Repaired" if self.report.command == "convert" else "Repaired by hipport convert"
        return Group(Text(word, "bold green"), Indented(table, 2))

    def files(self) -> Iterator[RenderableType]:
        """Files that were not read or left out, and notes."""
        unread = [p for p in self.report.files if p.status is FileStatus.UNREADABLE]
        for plan in unread:
            line = Text(overflow="fold")
            line.append("unread ", "bold red")
            line.append(f"{shown(plan.path)}: {safe(plan.note)}")
            yield line
        skipped = [p for p in self.report.files if p.status is FileStatus.SKIPPED]
        yield from _limited(
            "skipped", [f"{shown(p.path)}: {safe(p.note)}" for p in skipped], self.verbose
        )
        yield from _limited("note", [safe(note) for note in self.report.notes], self.verbose)

    def summary(self) -> RenderableType:
        """The table at the end."""
        report = self.report
        table = Table(box=box.SIMPLE, show_header=False, pad_edge=False)
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
        files = [f"{len(report.files)} seen"]
        for status in FileStatus:
            number = report.count(status)
            if number or status in (FileStatus.CONVERTED, FileStatus.UNTOUCHED):
                word = "to convert" if _unwritten(report, status) else status.value
                files.append(f"{number} {word}")
        table.add_row("files", ", ".join(files))
        labels = report.edits_by_label()
        if labels:
            total = sum(labels.values())
            listed = ", ".join(f"{label} {number}" for label, number in labels.most_common())
            table.add_row("edits", f"{total}: {listed}")
        findings = report.all_findings()
        by_severity = severities(findings)
        need = sum(1 for f in findings if f.needs_person)
        counts = ", ".join(f"{by_severity[s.value]} {s.value}" for s in Severity)
        verb = "needs" if need == 1 else "need"
        table.add_row("findings", f"{counts}; {need} {verb} a person" if findings else "none")
        torn = [plan for plan in report.files if plan.error_bytes]
        if torn:
            size = sum(plan.error_bytes for plan in torn)
            table.add_row(
                "unparsed",
                f"{counted(size, 'byte')} in {counted(len(torn), 'file')}: {_torn(torn)}",
            )
        if report.extra_files:
            table.add_row("added", ", ".join(shown(path) for path, _ in report.extra_files))
        table.add_row("for", f"ROCm {report.rocm}, in {report.seconds:.1f} s")
        return table


def _unwritten(report: Report, status: FileStatus) -> bool:
    return status is FileStatus.CONVERTED and not report.written


def _torn(plans: Sequence[FilePlan]) -> str:
    worst = sorted(plans, key=lambda plan: (-plan.error_bytes, plan.path))
    listed = ", ".join(shown(plan.path) for plan in worst[:3])
    return listed + (f" and {len(worst) - 3} more" if len(worst) > 3 else "")


def _limited(word: str, lines: Sequence[str], all_of_them: bool) -> Iterator[RenderableType]:
    kept = lines if all_of_them else lines[:8]
    for line in kept:
        text = Text(overflow="fold")
        text.append(f"{word} ", "bold")
        text.append(line)
        yield text
    if len(kept) < len(lines):
        yield Text(f"{word}: {len(lines) - len(kept)} more; -v shows them", "dim")


def _places(findings: Sequence[Finding]) -> Text:
    """``also a.cu:3, 9; b.cu:4`` for places without a frame."""
    lines: dict[str, list[int]] = {}
    for finding in findings[:PLACES]:
        lines.setdefault(finding.path, []).append(finding.line)
    listed = "; ".join(
        f"{shown(path)}:{', '.join(str(n) for n in dict.fromkeys(numbers))}"
        for path, numbers in lines.items()
    )
    more = len(findings) - PLACES
    return Text(
        f"also {listed}" + (f"; {more} more, -v shows them" if more > 0 else ""), overflow="fold"
    )


def one_line(report: Report) -> str:
    """The shortest summary."""
    findings = report.all_findings()
    need = sum(1 for f in findings if f.needs_person)
    converted, unread = report.count(FileStatus.CONVERTED), report.count(FileStatus.UNREADABLE)
    verb = "converted" if report.written else "to convert"
    return (
        f"{counted(len(report.files), 'file')} seen, {converted} {verb}, "
        f"{counted(len(findings), 'finding')}, {need} for a person, {unread} unread"
    )
