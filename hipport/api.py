"""The public Python API: what the commands call."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hipport.project.discover import Discovery
    from hipport.report.model import Report

__all__ = ["Mode", "Options", "check_paths", "convert_paths"]

Paths = Sequence[str | os.PathLike[str]]
Progress = Callable[[str, int, int], None]


class Mode(str, Enum):
    """Where a conversion goes."""

    IN_PLACE = "in place"
    COPY = "copy"
    """A converted copy of the tree in another folder."""
    PLAN = "plan"
    """Nowhere: the report holds the new contents (``FilePlan.output``)."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked to do.

    `rocm` is the ROCm version to convert for (None: the installed one, else the newest known).
    `assist` names the slugs whose assisted rewrites are applied too; ``"all"`` means every one.
    `jobs` is the number of worker processes (None: one a processor). `include` and `exclude` are
    globs as in `.gitignore`, relative to the root of the run.
    """

    rocm: str | None = None
    assist: frozenset[str] = frozenset()
    jobs: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    respect_gitignore: bool = True


def _discover(paths: Paths, options: Options) -> Discovery:
    from hipport.project.discover import discover

    return discover(
        paths,
        include=options.include,
        exclude=options.exclude,
        respect_gitignore=options.respect_gitignore,
    )


def check_paths(
    paths: Paths, options: Options | None = None, *, progress: Progress | None = None
) -> Report:
    """Plan a conversion and report; write nothing.

    Raises:
        UsageError: a path does not exist, or the options name something unknown.
    """
    from hipport.run import plan_project

    options = options or Options()
    found = _discover(paths, options)
    return plan_project(found, options, command="check", progress=progress)


def convert_paths(
    paths: Paths,
    options: Options | None = None,
    *,
    mode: Mode = Mode.IN_PLACE,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    rename: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Convert files and report.

    Args:
        paths: files and folders.
        options: what to convert for, and what to look at.
        mode: where the result goes; `Mode.COPY` needs `out`.
        out: the folder of the copy. It mirrors the root of the run and holds what lies below
            `paths`.
        force: write in place whatever git says, or over a folder that is not an earlier output.
        rename: give ``.cu`` files the suffix ``.hip``.
        progress: called with a stage's name, the files done and all files.

    Raises:
        UsageError: writing is refused, a path does not exist, or an option is unknown.
    """
    from hipport.convert import output
    from hipport.errors import UsageError
    from hipport.run import plan_project

    options = options or Options()
    found = _discover(paths, options)
    if (mode is Mode.COPY) != (out is not None):
        raise UsageError("a folder for the copy and the mode that makes one belong together")
    if mode is Mode.IN_PLACE and not force:
        output.guard_tree(found)
    if out is not None:
        output.check_out(Path(out), found, force)
    report = plan_project(found, options, command="convert", rename=rename, progress=progress)
    if mode is Mode.IN_PLACE:
        if not force:
            output.guard_tracked(found, report)
        return output.in_place(found, report)
    if out is not None:
        return output.copy_tree(found, report, Path(out))
    return report
