"""Ignore files: `.gitignore` at every level and `.git/info/exclude`, as git reads them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from pathlib import Path

from pathspec import GitIgnoreSpec

from hipport.errors import UsageError


def spec_of(lines: Iterable[str]) -> GitIgnoreSpec:
    """Compile git patterns; a line that git could not read either matches nothing."""
    good: list[str] = []
    for line in lines:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            continue
        good.append(line)
    return GitIgnoreSpec.from_lines(good)


def globs(option: str, patterns: tuple[str, ...]) -> GitIgnoreSpec | None:
    """Compile the globs of an option (None where there are none).

    Raises:
        UsageError: a glob is malformed.
    """
    if not patterns:
        return None
    try:
        return GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise UsageError(f"{option}: bad glob: {error}") from error


def _lines(file: Path) -> list[str]:
    try:
        return file.read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


class IgnoreRules:
    """Which paths below a root are ignored. A deeper file wins, within a file the last line."""

    def __init__(self, root: Path, exclude_file: Path | None = None) -> None:
        self._root = root
        self._base = spec_of(_lines(exclude_file)) if exclude_file else None
        self._specs: dict[str, GitIgnoreSpec | None] = {}

    def _spec(self, folder: str) -> GitIgnoreSpec | None:
        if folder not in self._specs:
            lines = _lines(self._root / folder / ".gitignore")
            self._specs[folder] = spec_of(lines) if lines else None
        return self._specs[folder]

    def ignored(self, path: str, is_dir: bool) -> bool:
        """Whether a path (POSIX, relative to the root) is ignored, its parents set aside."""
        folder = posixpath.dirname(path)
        while True:
            spec = self._spec(folder)
            if spec is not None:
                inner = path[len(folder) + 1 :] if folder else path
                verdict = spec.check_file(inner + "/" if is_dir else inner).include
                if verdict is not None:
                    return verdict
            if not folder:
                break
            folder = posixpath.dirname(folder)
        if self._base is None:
            return False
        return bool(self._base.check_file(path + "/" if is_dir else path).include)
