"""Progress, and a report's way to the terminal and to files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from hipport.api import Progress
from hipport.errors import UsageError

if TYPE_CHECKING:
    from hipport.report.model import Report


@dataclass(frozen=True)
class Talk:
    """How much is said, where, and in which colours."""

    json_file: str | None = None
    verbose: int = 0
    quiet: int = 0
    color: str = "auto"
    stdout_taken: bool = False
    """Whether standard output belongs to a machine."""

    def console(self, *, stderr: bool = False) -> Console:
        """A console for people."""
        file = sys.stderr if stderr or self.stdout_taken or self.json_file == "-" else sys.stdout
        return Console(
            file=file,
            force_terminal=True if self.color == "always" else None,
            no_color=True if self.color == "never" else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def check(self) -> None:
        """See that the JSON file can be written before any work is done.

        Raises:
            UsageError: its folder does not exist, or it is a folder itself.
        """
        if self.json_file in (None, "-"):
            return
        file = Path(str(self.json_file))
        if file.is_dir() or not file.absolute().parent.is_dir():
            raise UsageError(f"--json {self.json_file}: cannot be written there")


_STAGES = {"read": "Reading", "convert": "Converting"}


@contextmanager
def progress(talk: Talk) -> Iterator[Progress | None]:
    """A progress bar on standard error, if that is a terminal; gone when done."""
    console = talk.console(stderr=True)
    if talk.quiet or not console.is_terminal or not sys.stderr.isatty():
        yield None
        return
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    # No refreshing thread: worker processes are forked while the bar is up.
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        auto_refresh=False,
        transient=True,
    )
    tasks = {}
    last = 0.0

    def report(stage: str, done: int, total: int) -> None:
        nonlocal last
        if stage not in tasks:
            tasks[stage] = bar.add_task(_STAGES.get(stage, stage), total=total)
        bar.update(tasks[stage], completed=done)
        now = time.monotonic()
        if now - last > 0.1 or done == total:
            last = now
            bar.refresh()

    with bar:
        yield report


def show(report: Report, talk: Talk, *, next_step: str = "") -> None:
    """Print a report and write its JSON form.

    Raises:
        UsageError: the JSON file cannot be written.
    """
    if talk.json_file is not None:
        _write_json(report, talk.json_file)
    if talk.quiet > 1:
        return
    from hipport.report.console import ConsoleReport, one_line
    from hipport.rules import hazards

    console = talk.console()
    if talk.quiet:
        console.print(one_line(report))
        return
    ConsoleReport(report, hazards.load(), verbose=talk.verbose > 0, next_step=next_step).print(
        console
    )


def _write_json(report: Report, target: str) -> None:
    from hipport.report import json_report

    text = json_report.render(report)
    if target == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    from hipport.project.write import write_atomic

    try:
        write_atomic(Path(target).resolve(), text.encode())
    except OSError as error:
        raise UsageError(f"--json {target}: {(error.strerror or str(error)).lower()}") from error
