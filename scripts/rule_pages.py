"""Write docs/rules.md, the pages of all rules, from the hazard entries.

python scripts/rule_pages.py            write it
python scripts/rule_pages.py --check    exit status 1 where the file is out of date
"""

from __future__ import annotations

import sys
from pathlib import Path

from hipport.rules.hazards import Hazard, load

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rules.md"


def page(hazard: Hazard) -> str:
    """One rule's page in Markdown."""
    parts = [
        f"## {hazard.code} {hazard.slug}",
        f"**{hazard.title}** · {hazard.severity.value} · {hazard.action.value}",
        hazard.why,
    ]
    for title, code in (("Before", hazard.before), ("After", hazard.after)):
        if code:
            parts.append(f"{title}:\n\n```cuda\n{code}\n```")
    if hazard.links:
        parts.append("See: " + "; ".join(hazard.links))
    return "\n\n".join(parts)


def text() -> str:
    """The whole file."""
    hazards = sorted(load().values(), key=lambda h: h.code)
    head = (
        "# Rules\n\nWritten by `python scripts/rule_pages.py` from `rules/hazards/*.yaml`. "
        "`hipport rule SLUG` prints one.\n\n"
        "*auto* is rewritten by default, *assist* on request (`--assist SLUG`), *flag* is "
        "explained.\n"
    )
    index = "\n".join(
        f"- {h.code} [{h.slug}](#{h.code.lower()}-{h.slug}): {h.title}" for h in hazards
    )
    return head + "\n" + index + "\n\n" + "\n\n".join(page(h) for h in hazards) + "\n"


def main() -> int:
    """Write or check the file."""
    new = text()
    if "--check" in sys.argv[1:]:
        same = PAGE.exists() and PAGE.read_text() == new
        if not same:
            print("docs/rules.md is out of date: python scripts/rule_pages.py", file=sys.stderr)
        return 0 if same else 1
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
