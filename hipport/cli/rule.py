"""``hipport rule``."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", metavar="SLUG|CODE", required=False)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour; auto heeds NO_COLOR and the terminal.",
)
def rule(name: str | None, color: str) -> int:
    """Explain a finding: what it means, why, before and after. Without a name: list all.

    \b
    hipport rule ballot-width
    hipport rule HP3004
    """
    from hipport.cli.show import Talk
    from hipport.report.page import listing, page
    from hipport.rules import hazards

    console = Talk(color=color).console()
    if name is None:
        console.print(listing(hazards.load().values()))
        return 0
    found = hazards.find(name)
    if found is None:
        raise click.UsageError(f"no rule '{name}'{_nearest(name)}")
    console.print(page(found))
    return 0


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    from hipport.rules import hazards

    known = {h.slug: h.slug for h in hazards.load().values()}
    known.update({h.code.lower(): h.code for h in hazards.load().values()})
    near = get_close_matches(name.lower(), known, 1)
    return f"; did you mean {known[near[0]]}?" if near else "; 'hipport rule' lists them"
