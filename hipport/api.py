"""The public Python API: what the commands call."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Options"]


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to do.

    `rocm` is the ROCm version to convert for (None: the installed one, else the newest known).
    `assist` names the slugs whose assisted rewrites are applied too; ``"all"`` means every one.
    """

    rocm: str | None = None
    native_wave: bool = False
    assist: frozenset[str] = frozenset()
    jobs: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    respect_gitignore: bool = True
