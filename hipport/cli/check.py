"""``hipport check``."""

from __future__ import annotations

from typing import Any

import click

from hipport.cli.options import analysis_options, options_of, output_options


@click.command()
@analysis_options
@output_options
def check(
    paths: tuple[str, ...],
    json_file: str | None,
    verbose: int,
    quiet: int,
    color: str,
    **chosen: Any,
) -> int:
    """Report what a conversion of PATH... would do and find; write nothing.

    \b
    hipport check src/ --target gfx90a
    hipport check . --json report.json
    """
    from hipport.api import check_paths
    from hipport.cli.show import Talk, progress, show

    talk = Talk(json_file, verbose, quiet, color)
    talk.check()
    with progress(talk) as bar:
        report = check_paths(paths, options_of(**chosen), progress=bar)
    show(report, talk)
    return report.exit_code()
