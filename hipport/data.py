"""Where hipport's data files lie, in a source checkout and in an installed wheel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def rules_dir() -> Path:
    """Return the folder that holds the rules.

    Raises:
        FileNotFoundError: the installation is broken and carries no rules.
    """
    package = Path(__file__).resolve().parent
    for candidate in (package / "_rules", package.parent / "rules"):
        if candidate.is_dir():
            return candidate
    raise FileNotFoundError(f"hipport's rules are missing beside {package}; reinstall hipport")
