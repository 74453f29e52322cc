"""``hipport convert``."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

import click

from hipport.cli.options import analysis_options, options_of, output_options

if TYPE_CHECKING:
    from hipport.report.model import Report


@click.command()
@analysis_options
@click.option("--out", metavar="DIR", help="Write a converted copy of the tree to DIR.")
@click.option("--diff", is_flag=True, help="Print unified diffs; write nothing.")
@click.option("--force", is_flag=True, help="Write even where git could not bring back the old.")
@click.option("--rename", is_flag=True, help="Rename .cu to .hip; includes and build files follow.")
@output_options
def convert(
    paths: tuple[str, ...],
    out: str | None,
    diff: bool,
    force: bool,
    rename: bool,
    json_file: str | None,
    verbose: int,
    quiet: int,
    color: str,
    **chosen: Any,
) -> int:
    """Convert CUDA sources below PATH... to HIP.

    In a clean git work tree files are converted in place. Elsewhere choose --out, --diff or
    --force.

    \b
    hipport convert .
    hipport convert src/ --diff | less
    hipport convert . --out ../as-hip --rename
    """
    from hipport.api import Mode, convert_paths
    from hipport.cli.show import Talk, progress, show

    if diff and out is not None:
        raise click.UsageError("--diff writes nothing; leave out --out")
    if diff and json_file == "-":
        raise click.UsageError("--diff and --json - both want standard output; give --json a file")
    mode = Mode.PLAN if diff else Mode.COPY if out is not None else Mode.IN_PLACE
    talk = Talk(json_file, verbose, quiet, color, stdout_taken=diff)
    talk.check()
    with progress(talk) as bar:
        report = convert_paths(
            paths,
            options_of(**chosen),
            mode=mode,
            out=out,
            force=force,
            rename=rename,
            progress=bar,
        )
    if diff:
        report = _print_diff(report, talk.color)
    show(report, talk, next_step=_next_step(report, out, diff))
    return report.exit_code()


def _print_diff(report: Report, color: str) -> Report:
    """Print the diff: as it is to a pipe, in colours to a terminal."""
    from dataclasses import replace

    from hipport.report.diff import report_diff, stale
    from hipport.report.model import FileStatus

    changed = set(stale(report))
    if sys.stdout.isatty() and color != "never":
        from hipport.cli.show import Talk

        _colored(b"".join(report_diff(report)), Talk(color=color))
    else:
        for piece in report_diff(report):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    if not changed:
        return report
    files = tuple(
        replace(
            plan,
            status=FileStatus.UNREADABLE,
            output=None,
            note="changed while hipport ran; not in the diff",
        )
        if plan.path in changed
        else plan
        for plan in report.files
    )
    return replace(report, files=files)


def _colored(diff: bytes, talk: Any) -> None:
    from rich.text import Text

    from hipport.report.text import safe

    styles = {"+": "green", "-": "red", "@": "cyan"}
    console = talk.console()
    for line in diff.split(b"\n")[:-1]:
        text = safe(line.decode("utf-8", "backslashreplace"))
        bold = text.startswith(("diff ", "--- ", "+++ ", "rename "))
        console.print(Text(text, "bold" if bold else styles.get(text[:1], "")), soft_wrap=True)


def _next_step(report: Report, out: str | None, diff: bool) -> str:
    if diff or not report.written:
        return ""
    if out is not None:
        return f"The converted copy is in {out}."
    if not (report.root / ".git").exists():
        return ""
    since = " HEAD -M" if any(plan.renamed for plan in report.files) else ""
    return f"To see what changed: git -C {shlex.quote(str(report.root))} diff{since}"
