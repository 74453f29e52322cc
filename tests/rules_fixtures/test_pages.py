"""Every rule has a page, a check that reports it, and codes of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hipport.checks.registry import known_slugs
from hipport.rules.hazards import load

ROOT = Path(__file__).resolve().parents[2]
# Reported by front ends that are no checks of C++ sources.
ELSEWHERE = ("HP1", "HP2", "HP7", "HP8", "HP5022", "HP5037")


def test_pages_are_current() -> None:
    script = ROOT / "scripts" / "rule_pages.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0


def test_every_rule_has_a_check() -> None:
    orphans = {
        slug
        for slug, hazard in load().items()
        if slug not in known_slugs() and not hazard.code.startswith(ELSEWHERE)
    }
    assert not orphans


def test_every_check_has_a_rule() -> None:
    assert known_slugs() <= load().keys()
