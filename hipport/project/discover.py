"""Which files a run is about.

Links are never followed out of the tree, nor to a file twice, and linked folders not at all, so
that loops cannot occur. What is left out for a reason that a user might not expect is noted.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hipport.errors import UsageError
from hipport.project import git
from hipport.project.git import GitTree
from hipport.project.ignore import IgnoreRules, globs
from hipport.project.kinds import C_LIKE, CONVERTED, Kind, kind_of

OUTPUT_MARK = ".hipport-output.json"
"""A folder that holds this file is the result of an earlier run with `--out`."""

_NEVER = frozenset({".git", ".hg", ".svn", ".bzr", ".jj"})
_BY_NAME = frozenset(
    {"node_modules", "__pycache__", "_skbuild", "CMakeFiles", ".tox", ".nox", ".eggs", ".cache"}
)
_MARKS = {
    "CMakeCache.txt": "a CMake build folder",
    "pyvenv.cfg": "a virtual environment",
    "CACHEDIR.TAG": "a cache folder",
    OUTPUT_MARK: "an earlier output of hipport",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the run.

    `path` is relative to the root, POSIX style; names that are not UTF-8 carry surrogates as from
    `os.fsdecode`. `real` is where its bytes lie, links resolved. `given` marks a file that was
    named on the command line itself.
    """

    path: str
    real: Path
    kind: Kind
    link: bool = False
    given: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path that is not converted, and why."""

    path: str
    note: str


@dataclass(frozen=True)
class Discovery:
    """What was found below the given paths.

    Attributes:
        root: what all paths are relative to: the top of the git work tree, else the common parent.
        files: what to convert, by path.
        others: what a copy of the tree takes along unchanged, links included.
        unreadable: what could not be looked at.
        skipped: files left out on purpose.
        notes: other things worth a line.
        tree: the git work tree, if all paths lie in one.
        outside: why there is no tree.
        inner: submodules and other work trees inside, by their folder.
    """

    root: Path
    files: tuple[Entry, ...]
    others: tuple[Entry, ...] = ()
    unreadable: tuple[LeftOut, ...] = ()
    skipped: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()
    tree: GitTree | None = None
    outside: str = ""
    inner: Mapping[str, GitTree] = field(default_factory=dict)

    def tree_of(self, path: str) -> tuple[GitTree | None, str]:
        """The work tree that a path belongs to, and the path in it."""
        folder = posixpath.dirname(path)
        while folder:
            if folder in self.inner:
                return self.inner[folder], path[len(folder) + 1 :]
            folder = posixpath.dirname(folder)
        return self.tree, path

    @cached_property
    def by_path(self) -> dict[str, Entry]:
        """Every entry, converted or not."""
        return {e.path: e for e in (*self.files, *self.others)}


def _given(path: str) -> Path:
    """An absolute path whose folder is free of links; a file's own link stays.

    Raises:
        UsageError: there is no such path.
    """
    plain = Path(os.path.abspath(path))
    if not os.path.lexists(plain):
        raise UsageError(f"{path}: no such file or folder")
    return plain.resolve() if plain.is_dir() else plain.parent.resolve() / plain.name


def _root(paths: Sequence[Path]) -> tuple[Path, GitTree | None, str]:
    folders = [p if p.is_dir() else p.parent for p in paths]
    common = Path(os.path.commonpath(folders))
    tree, why = git.find(folders[0])
    if tree is None:
        return common, None, why
    for folder in folders[1:]:
        if folder != tree.top and tree.top not in folder.parents:
            return common, None, "the paths lie in different git work trees"
    return tree.top, tree, ""


def discover(
    paths: Sequence[str | os.PathLike[str]],
    *,
    include: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
    respect_gitignore: bool = True,
) -> Discovery:
    """Find the files below paths.

    Args:
        paths: files and folders; a file named here is taken whatever ignore files say.
        include: globs (as in `.gitignore`, relative to the root); only what matches is converted.
        exclude: globs of what is not converted.
        respect_gitignore: leave out what git ignores (a tracked file is never ignored).

    Raises:
        UsageError: a path does not exist or a glob is malformed.
    """
    if not paths:
        raise UsageError("no path given")
    starts = [_given(os.fspath(p)) for p in paths]
    root, tree, outside = _root(starts)
    walk = _Walk(root, tree, respect_gitignore)
    for start in starts:
        walk.start(start)
    return walk.result(globs("--include", include), globs("--exclude", exclude), outside)


class _Scope:
    """What one work tree (or none) says about the paths below a folder."""

    def __init__(self, root: Path, folder: str, tree: GitTree | None) -> None:
        self._start = len(folder) + 1 if folder else 0
        self.rules = IgnoreRules(root / folder, tree.exclude_file if tree is not None else None)
        self.tracked: frozenset[str] = tree.tracked if tree is not None else frozenset()
        self._folders = frozenset(_parents(self.tracked))

    def ignored(self, path: str, is_dir: bool) -> bool:
        return self.rules.ignored(path[self._start :], is_dir)

    def tracks(self, path: str) -> bool:
        return path[self._start :] in self.tracked

    def tracks_below(self, folder: str) -> bool:
        return folder[self._start :] in self._folders


@dataclass
class _Walk:
    root: Path
    tree: GitTree | None
    respect_gitignore: bool
    found: dict[str, Entry] = field(default_factory=dict)
    links: dict[str, Entry] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    seen_folders: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    inner: dict[str, GitTree] = field(default_factory=dict)
    ignored: int = 0

    def __post_init__(self) -> None:
        self.scope = _Scope(self.root, "", self.tree)

    def relative(self, path: Path) -> str:
        text = path.relative_to(self.root).as_posix()
        return "" if text == "." else text

    def start(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            self.folder(path)
        else:
            self.file(self.relative(path), path, given=True)

    def folder(self, top: Path) -> None:
        stack = [(self.relative(top), self.scope, False, False)]
        while stack:
            folder, scope, only_tracked, hidden = stack.pop()
            if folder in self.seen_folders:
                continue
            self.seen_folders.add(folder)
            try:
                with os.scandir(self.root / folder) as scan:
                    entries = sorted(scan, key=lambda e: e.name)
            except OSError as error:
                self.unreadable[folder or "."] = f"folder cannot be read: {reason(error)}"
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                is_dir = entry.is_dir(follow_symlinks=False)
                left_out = self.left_out(scope, path, is_dir, only_tracked)
                if is_dir:
                    only = self.enter(scope, path, left_out)
                    if only is not None:
                        shy = entry.name.startswith(".") and not scope.tracks_below(path)
                        below = self.scope_of(path, scope)
                        stack.append((path, below, only and below is scope, hidden or shy))
                elif not left_out and entry.name not in _NEVER:
                    self.file(path, Path(entry.path), given=False)
                    if hidden:
                        self.hidden.add(path)

    def scope_of(self, folder: str, around: _Scope) -> _Scope:
        """The scope below a folder: its own if it is the top of a work tree."""
        if not (self.root / folder / ".git").exists():
            return around
        tree, _ = git.find(self.root / folder)
        if tree is None or tree.top != self.root / folder:
            return around
        self.inner[folder] = tree
        if self.tree is not None:
            self.notes[f"{folder}: a git repository of its own; changes in it show there"] = None
        return _Scope(self.root, folder, tree)

    def left_out(self, scope: _Scope, path: str, is_dir: bool, only_tracked: bool) -> bool:
        """Whether git would not show a path."""
        if scope.tracks(path):
            return False
        ignored = only_tracked or (self.respect_gitignore and scope.ignored(path, is_dir))
        if ignored and not is_dir:
            self.ignored += 1
        return ignored

    def enter(self, scope: _Scope, path: str, left_out: bool) -> bool | None:
        """None: stay out of a folder; else whether only its tracked files count."""
        name = posixpath.basename(path)
        if name in _NEVER:
            return None
        has_tracked = scope.tracks_below(path) or scope.tracks(path)
        if left_out and not has_tracked:
            self.ignored += 1
            return None
        if has_tracked:
            return left_out
        for mark, what in _MARKS.items():
            if (self.root / path / mark).is_file():
                self.notes[f"{path}: {what}, left out"] = None
                return None
        if name in _BY_NAME:
            self.notes[f"{path}: left out by its name; name it as a PATH to convert it"] = None
            return None
        return left_out

    def file(self, path: str, where: Path, given: bool) -> None:
        kind = kind_of(path)
        if given and kind is Kind.OTHER:
            kind = Kind.SOURCE
        wanted = kind in CONVERTED
        try:
            status = where.lstat()
            is_link = stat.S_ISLNK(status.st_mode)
            if is_link:
                status = where.stat()
        except OSError as error:
            if wanted or given:
                dangling = where.is_symlink() and error.errno == errno.ENOENT
                self.unreadable[path] = "dangling link" if dangling else reason(error)
            if where.is_symlink():
                self.found[path] = Entry(path, where, Kind.OTHER, link=True)
            return
        if stat.S_ISDIR(status.st_mode):
            self.found[path] = Entry(path, where, Kind.OTHER, link=True)
            self.notes[f"{path}: link to a folder, not followed"] = None
        elif not stat.S_ISREG(status.st_mode):
            if wanted:
                self.skipped[path] = "not a regular file"
        elif is_link:
            self.links[path] = Entry(path, Path(os.path.realpath(where)), kind, True, given)
        else:
            self.found[path] = Entry(path, where, kind, False, given)

    def resolve_links(self) -> None:
        """Give each linked file one name: its own where that was found, else the first link's."""
        taken = {e.real for e in self.found.values() if not e.link and e.kind in CONVERTED}
        for path, entry in sorted(self.links.items()):
            alias = Entry(path, entry.real, Kind.OTHER, link=True)
            if self.root not in entry.real.parents:
                if entry.kind in CONVERTED:
                    self.skipped[path] = "link to a file outside the tree"
                self.found[path] = alias
            elif entry.real in taken or entry.kind not in CONVERTED:
                self.found[path] = alias
            else:
                taken.add(entry.real)
                self.found[path] = entry

    def result(self, include: object, exclude: object, outside: str) -> Discovery:
        from pathspec import GitIgnoreSpec

        self.resolve_links()
        files: list[Entry] = []
        others: list[Entry] = []
        for path in sorted(self.found):
            entry = self.found[path]
            kept = entry.kind in CONVERTED
            if kept and path in self.hidden and not entry.given:
                kept = False
                shy = _hidden_part(path)
                if entry.kind in C_LIKE:
                    self.notes[f"{shy}: hidden, not converted; name it as a PATH to convert it"] = (
                        None
                    )
            if kept and isinstance(include, GitIgnoreSpec):
                kept = include.match_file(path)
            if kept and isinstance(exclude, GitIgnoreSpec):
                kept = not exclude.match_file(path)
            (files if kept else others).append(entry)
            if entry.given and not kept:
                self.skipped.setdefault(path, "left out by --include or --exclude")
        notes = list(self.notes)
        if self.ignored:
            notes.append(f"{self.ignored} files and folders left out by .gitignore")
        return Discovery(
            root=self.root,
            files=tuple(files),
            others=tuple(others),
            unreadable=tuple(LeftOut(*item) for item in sorted(self.unreadable.items())),
            skipped=tuple(LeftOut(*item) for item in sorted(self.skipped.items())),
            notes=tuple(notes),
            tree=self.tree,
            outside=outside,
            inner=self.inner,
        )


def reason(error: OSError) -> str:
    """An operating system error in a few lower-case words."""
    if error.errno == errno.ELOOP:
        return "link loop"
    return (error.strerror or str(error)).lower()


def _hidden_part(path: str) -> str:
    parts = path.split("/")
    at = next(i for i, part in enumerate(parts) if part.startswith("."))
    return "/".join(parts[: at + 1])


def _parents(paths: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return found
