"""A rule's page on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hipport.report.indent import Indented
from hipport.rules.hazards import Hazard

_ACTIONS = {
    "auto": "repaired by hipport convert",
    "assist": "hipport convert --assist {slug} rewrites it",
    "flag": "left to you",
}


def page(rule: Hazard) -> RenderableType:
    """Everything there is to say about a rule."""
    head = Text()
    head.append(f"{rule.code} {rule.slug}", "bold")
    head.append(f"  {rule.title}")
    facts = Text(style="dim")
    facts.append(f"{rule.severity.value}; {_ACTIONS[rule.action.value].format(slug=rule.slug)}")
    facts.append(f"; effort {rule.effort}")
    if rule.targets:
        facts.append(f"; on {', '.join(rule.targets)}")
    parts: list[RenderableType] = [head, facts, Text(), Text(rule.why)]
    for title, text in (("Before", rule.before), ("After", rule.after)):
        if text:
            parts += [Text(), Text(title, "bold"), Indented(Text(text), 4)]
    if rule.links:
        parts += [Text(), Text("See also", "bold")]
        parts += [Indented(Text(link, overflow="fold"), 4) for link in rule.links]
    return Group(*parts)


def listing(rules: Iterable[Hazard]) -> RenderableType:
    """All rules, a line each, by code."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for rule in sorted(rules, key=lambda r: r.code):
        table.add_row(rule.code, Text(rule.slug, "bold"), rule.severity.value, Text(rule.title))
    return table
