"""``hipport query``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console

    from hipport.rules.api import ApiRow

_CARDS = 12


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--rocm", metavar="VERSION", help="ROCm version to look up for.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Show long lists in full, too.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour; auto heeds NO_COLOR and the terminal.",
)
def query(
    names: tuple[str, ...], rocm: str | None, as_json: bool, verbose: bool, color: str
) -> int:
    """Look up CUDA or HIP names: counterpart, header, library, versions, differences.

    NAME may be a glob; quote it. Exit status 1 says that a name is not known.

    \b
    hipport query cudaMalloc cublasGemmEx --rocm 6.4
    hipport query 'cufft*' --json
    hipport query '*'
    """
    from hipport.api import Options
    from hipport.cli.show import Talk
    from hipport.rules.lookup import Lookup
    from hipport.run import load_rules

    table = load_rules(Options(rocm=rocm))
    lookup = Lookup(table)
    found: dict[str, ApiRow] = {}
    unknown: dict[str, list[str]] = {}
    for name in names:
        rows = lookup.find(name)
        found.update((row.cuda, row) for row in rows)
        if not rows:
            unknown[name] = lookup.near(name)
    if as_json:
        _print_json(table.rocm, list(found.values()), unknown)
        return int(bool(unknown))
    console = Talk(color=color).console()
    if len(found) > _CARDS and not verbose:
        _list(list(found.values()), table.rocm)
    else:
        for i, row in enumerate(found.values()):
            if i:
                console.print()
            _card(console, row, table.rocm)
    errors = Talk(color=color).console(stderr=True)
    for name, near in unknown.items():
        more = f"; did you mean {', '.join(near)}?" if near else ""
        errors.print(f"hipport: no name '{name}'{more}", soft_wrap=True)
    return int(bool(unknown))


def record(row: ApiRow) -> dict[str, object]:
    """A row as JSON shows it."""
    from hipport.rules import lookup

    return {
        "cuda": row.cuda,
        "kind": row.kind,
        "table": row.library,
        "library": lookup.library(row),
        "status": lookup.status(row).value,
        "hip": row.hip or None,
        "header": row.hip_header or None,
        "cuda_added": row.cuda_added or None,
        "cuda_deprecated": row.cuda_deprecated or None,
        "cuda_removed": row.cuda_removed or None,
        "hip_added": row.hip_added or None,
        "hip_deprecated": row.hip_deprecated or None,
        "hip_removed": row.hip_removed or None,
        "earlier": [{"before": v, "hip": name or None} for v, name in lookup.history(row)],
        "newest": row.newest or None,
        "differs": row.differs or None,
        "replacement": row.replacement or None,
        "note": row.note or None,
        "documentation": lookup.documentation(row) or None,
    }


def _print_json(rocm: str, rows: list[ApiRow], unknown: dict[str, list[str]]) -> None:
    import json

    data = {
        "version": 1,
        "rocm": rocm,
        "rows": [record(row) for row in rows],
        "unknown": [{"name": name, "near": near} for name, near in unknown.items()],
    }
    click.echo(json.dumps(data, indent=2))


def _list(rows: list[ApiRow], rocm: str) -> None:
    from hipport.rules.lookup import library

    width = min(44, max(len(row.cuda) for row in rows))
    lines = [f"{r.cuda:<{width}}  {r.hip or '-':<{width}}  {library(r)}".rstrip() for r in rows]
    with_hip = sum(bool(row.hip) for row in rows)
    click.echo("\n".join(lines))
    click.echo(f"{len(rows)} names, {with_hip} with a counterpart in ROCm {rocm}")


def _span(added: str, deprecated: str, removed: str) -> str:
    parts = (("since", added), ("deprecated in", deprecated), ("removed in", removed))
    return ", ".join(f"{word} {version}" for word, version in parts if version)


def _card(console: Console, row: ApiRow, rocm: str) -> None:
    from rich.text import Text

    from hipport.rules import lookup

    said = lookup.status(row)
    target = row.hip or f"none in ROCm {rocm}"
    if said is lookup.Status.GUIDANCE:
        target += " (to be ported by hand)"
    elif said is lookup.Status.SAME:
        target += " (the name stays)"
    earlier = "; ".join(
        f"before {version}: {name or 'none'}" for version, name in lookup.history(row)
    )
    lines = (
        ("HIP", target),
        ("header", row.hip_header),
        ("library", f"{lookup.library(row)}, {row.kind}"),
        ("CUDA versions", _span(row.cuda_added, row.cuda_deprecated, row.cuda_removed)),
        ("HIP versions", _span(row.hip_added, row.hip_deprecated, row.hip_removed)),
        ("other ROCm", earlier),
        ("differs", row.differs),
        ("instead", row.replacement),
        ("note", row.note),
        ("documentation", lookup.documentation(row)),
    )
    console.print(Text(row.cuda, style="bold"))
    for label, text in lines:
        if text:
            console.print(f"  {label:<14} {text}", soft_wrap=True)
