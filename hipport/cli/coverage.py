"""``hipport coverage``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hipport.cli.options import _rocm

if TYPE_CHECKING:
    from rich.console import Console

    from hipport.coverage import Coverage, NameUse, Share

_NAMES = 15


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--rocm", metavar="VERSION", callback=_rocm, help="ROCm version to look at.")
@click.option("--include", multiple=True, metavar="GLOB", help="Look only at what matches.")
@click.option("--exclude", multiple=True, metavar="GLOB", help="Do not look at what matches.")
@click.option("--no-gitignore", is_flag=True, help="Look at files that git ignores, too.")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Worker processes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show every name.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour; auto heeds NO_COLOR and the terminal.",
)
def coverage(
    paths: tuple[str, ...],
    rocm: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    no_gitignore: bool,
    jobs: int | None,
    as_json: bool,
    verbose: bool,
    color: str,
) -> int:
    """Show which CUDA names the C, C++ and CUDA files below PATH... use.

    Mapped names are converted or stay; assisted ones have a counterpart that differs, or a named
    replacement; unmapped ones have none in the ROCm version; unknown ones look like CUDA's and
    stand in no table. Exit status 3 says that some file could not be read.

    \b
    hipport coverage .
    hipport coverage src/ --rocm 6.4 --json
    """
    from hipport.api import Options
    from hipport.cli.show import Talk, progress
    from hipport.coverage import measure

    options = Options(
        rocm=rocm,
        jobs=jobs,
        include=include,
        exclude=exclude,
        respect_gitignore=not no_gitignore,
    )
    talk = Talk(json_file="-" if as_json else None, color=color)
    with progress(talk) as bar:
        result = measure(paths, options, progress=bar)
    if as_json:
        import json

        click.echo(json.dumps(record(result), indent=2))
    else:
        _print(talk.console(), result, verbose)
    return 3 if result.unreadable else 0


def record(result: Coverage) -> dict[str, object]:
    """A result as JSON shows it."""
    from hipport.coverage import Share

    return {
        "version": 1,
        "rocm": result.rocm,
        "files": result.files,
        "cuda_files": result.cuda_files,
        "files_of_other_kinds": result.others,
        "seconds": round(result.seconds, 3),
        "totals": {share.value: result.count(share) for share in Share},
        "libraries": [
            {
                "library": item.library,
                "uses": item.uses,
                **{share.value: item.names[share] for share in Share},
            }
            for item in result.libraries()
        ],
        "names": [
            {
                "name": use.name,
                "share": use.share.value,
                "library": use.library,
                "hip": (use.row.hip or None) if use.row else None,
                "differs": (use.row.differs or None) if use.row else None,
                "replacement": (use.row.replacement or None) if use.row else None,
                "uses": use.uses,
                "files": use.files,
                "places": [{"path": p.path, "line": p.line} for p in use.places],
            }
            for use in result.names
        ],
        "unreadable": [{"path": path, "note": note} for path, note in result.unreadable],
        "skipped": [{"path": path, "note": note} for path, note in result.skipped],
    }


def _print(console: Console, result: Coverage, verbose: bool) -> None:
    from rich import box
    from rich.table import Table

    from hipport.coverage import Share

    counts = ", ".join(
        f"{result.count(share)} {share.value}" for share in Share if result.count(share)
    )
    console.print(
        f"{len(result.names)} CUDA names in {result.cuda_files} of {result.files} files,"
        f" for ROCm {result.rocm}" + (f": {counts}" if counts else ""),
        soft_wrap=True,
    )
    if result.names:
        table = Table(box=box.SIMPLE)
        table.add_column("library")
        for share in Share:
            table.add_column(share.value, justify="right")
        table.add_column("uses", justify="right")
        for item in result.libraries():
            numbers = [str(item.names[share] or "-") for share in Share]
            table.add_row(item.library, *numbers, str(item.uses))
        console.print(table)
    shown = (Share.ASSISTED, Share.UNMAPPED, Share.UNKNOWN)
    for share in (*shown, Share.MAPPED) if verbose else shown:
        _print_names(console, result, share, verbose)
    if result.others:
        console.print(
            f"{result.others} Python, build and other files are not counted; "
            "'hipport check' reads them",
            soft_wrap=True,
        )
    for path, note in result.skipped:
        console.print(f"{path}: left out, {note}", soft_wrap=True)
    for path, note in result.unreadable:
        console.print(f"{path}: {note}", soft_wrap=True)


def _print_names(console: Console, result: Coverage, share: Share, verbose: bool) -> None:
    uses = [use for use in result.names if use.share is share]
    if not uses:
        return
    console.print(f"{share.value}:")
    listed = uses if verbose else uses[:_NAMES]
    for use in listed:
        console.print("  " + _line(use), soft_wrap=True)
    if len(listed) < len(uses):
        console.print(f"  and {len(uses) - len(listed)} more (-v shows them)")
    console.print()


def _line(use: NameUse) -> str:
    at = use.places[0]
    text = f"{use.name}  {use.uses} x, {at.path}:{at.line}"
    if use.row is None:
        return text
    if use.row.hip:
        text += f"  {use.row.hip}"
    if use.row.differs:
        text += f" ({use.row.differs})"
    if use.row.replacement:
        text += f"; instead: {use.row.replacement}"
    return text
