"""Git's view of a tree: its top level, whether it is clean, what is tracked, moving files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git import Repo


class TreeState(str, Enum):
    """Whether git could bring back what a run overwrites."""

    CLEAN = "clean"
    DIRTY = "dirty"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class GitTree:
    """A work tree. Made by `find`."""

    top: Path
    _repo: Repo

    def _text(self, *arguments: str) -> str:
        # GitPython turns attributes into subcommands; execute() keeps bytes in names intact.
        raw = self._repo.git.execute(
            ["git", *arguments], stdout_as_string=False, strip_newline_in_stdout=False
        )
        return os.fsdecode(raw)

    @property
    def exclude_file(self) -> Path:
        """The tree's private ignore file."""
        return Path(self._repo.common_dir) / "info" / "exclude"

    @cached_property
    def tracked(self) -> frozenset[str]:
        """Paths in the index, relative to the top, POSIX style."""
        return frozenset(name for name in self._text("ls-files", "-z").split("\0") if name)

    @cached_property
    def hidden_changes(self) -> frozenset[str]:
        """Tracked paths whose changes git was told not to see (assume-unchanged, skip-worktree)."""
        rows = self._text("ls-files", "-v", "-z").split("\0")
        return frozenset(row[2:] for row in rows if row[:1].islower() or row[:1] == "S")

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Status lines of tracked files that differ from the last commit."""
        out = self._text(
            "status", "--porcelain=v1", "-z", "--untracked-files=no", "--ignore-submodules=dirty"
        )
        return tuple(row for row in out.split("\0") if row)

    @property
    def state(self) -> TreeState:
        """Clean or dirty; untracked files do not count (see `protects`)."""
        return TreeState.DIRTY if self.changed else TreeState.CLEAN

    def protects(self, path: str) -> bool:
        """Whether git holds a copy of a clean tree's file."""
        return path in self.tracked and path not in self.hidden_changes

    def move(self, pairs: list[tuple[str, str]]) -> None:
        """``git mv`` for each pair of paths relative to the top.

        Raises:
            OSError: git refused.
        """
        from git.exc import GitCommandError

        for old, new in pairs:
            try:
                self._repo.git.mv("--", old, new)
            except GitCommandError as error:
                raise OSError(f"git mv {old} {new}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = str(getattr(error, "stderr", "") or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].strip("'\" ") if lines else "failed"


def find(folder: Path) -> tuple[GitTree | None, str]:
    """The work tree that a folder lies in, or None and why there is none that can be used."""
    outside = "not inside a git work tree"
    if not any((p / ".git").exists() for p in (folder, *folder.parents)):
        return None, outside
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    try:
        from git import Repo
        from git.exc import GitCommandNotFound, GitError
    except ImportError:
        return None, "git cannot be run"
    try:
        repo = Repo(folder, search_parent_directories=True)
        if repo.working_tree_dir is None:
            return None, outside
        top = Path(repo.working_tree_dir).resolve()
        # In a hook git's variables may point elsewhere, and reading must take no locks.
        repo.git.update_environment(
            GIT_DIR=str(repo.git_dir), GIT_WORK_TREE=str(top), GIT_OPTIONAL_LOCKS="0"
        )
        tree = GitTree(top, repo)
        _ = tree.tracked
    except GitCommandNotFound:
        return None, "git is not installed"
    except (GitError, OSError, ValueError) as error:
        return None, f"git cannot read the work tree: {_reason(error)}"
    return tree, ""
