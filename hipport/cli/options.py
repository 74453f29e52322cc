"""Options that several commands share, and what they turn into."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from hipport.api import Options

F = TypeVar("F", bound=Callable[..., Any])

_VERSION = re.compile(r"\d+(?:\.\d+){0,2}\Z")
_TARGET = re.compile(r"gfx[0-9a-f]{3,4}\Z")


def _rocm(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _VERSION.match(value):
        raise click.BadParameter(f"'{value}' is not a version such as 6.4")
    return value


def _targets(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name for item in value for name in item.split(",") if name)
    for name in names:
        if not _TARGET.match(name):
            raise click.BadParameter(f"'{name}' is not a target such as gfx90a")
    return names


def analysis_options(function: F) -> F:
    """What to convert for and what to look at."""
    for option in reversed(
        (
            click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
            click.option(
                "--rocm", metavar="VERSION", callback=_rocm, help="ROCm version to convert for."
            ),
            click.option(
                "--target",
                "targets",
                multiple=True,
                metavar="GFX",
                callback=_targets,
                help="Target such as gfx90a; may be repeated.",
            ),
            click.option(
                "--assist",
                multiple=True,
                metavar="SLUG|all",
                help="Also apply a rule's assisted rewrites; may be repeated.",
            ),
            click.option(
                "--include",
                multiple=True,
                metavar="GLOB",
                help="Convert only what matches; may be repeated.",
            ),
            click.option(
                "--exclude",
                multiple=True,
                metavar="GLOB",
                help="Do not convert what matches; may be repeated.",
            ),
            click.option(
                "--no-gitignore", is_flag=True, help="Look at files that git ignores, too."
            ),
            click.option(
                "-j",
                "--jobs",
                type=click.IntRange(min=1),
                metavar="N",
                help="Worker processes (default: one a processor).",
            ),
        )
    ):
        function = option(function)
    return function


def output_options(function: F) -> F:
    """How to talk."""
    for option in reversed(
        (
            click.option(
                "--json",
                "json_file",
                metavar="FILE",
                help="Write the report as JSON; - is standard output.",
            ),
            click.option("-v", "--verbose", count=True, help="Show every place and every note."),
            click.option("-q", "--quiet", count=True, help="One line only; twice: nothing."),
            click.option(
                "--color",
                type=click.Choice(["auto", "always", "never"]),
                default="auto",
                help="Colour; auto heeds NO_COLOR and the terminal.",
            ),
        )
    ):
        function = option(function)
    return function


def options_of(
    *,
    rocm: str | None,
    targets: tuple[str, ...],
    assist: tuple[str, ...],
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    no_gitignore: bool,
    jobs: int | None,
) -> Options:
    """The options of a run."""
    return Options(
        rocm=rocm,
        assist=frozenset(name for item in assist for name in item.split(",") if name),
        jobs=jobs,
        include=include,
        exclude=exclude,
        targets=targets,
        respect_gitignore=not no_gitignore,
    )
