"""Where converted files go: in place, or into a copy of the tree."""

from __future__ import annotations

import json
import os
import posixpath
import shutil
import stat
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from hipport.errors import UsageError
from hipport.project.discover import OUTPUT_MARK, Discovery, Entry, reason
from hipport.project.git import TreeState
from hipport.project.write import ChangedMeanwhile, digest_of, remove_strays, write_atomic
from hipport.report.model import FilePlan, FileStatus, Report

_OFFER = "use --out DIR (a converted copy), --diff (print only) or --force (write anyway)"
_MARK_SCHEMA = "hipport-output-1"


def guard_tree(discovery: Discovery) -> None:
    """Refuse to write in place where git could not bring back what is lost.

    Raises:
        UsageError: the paths are outside git, or the work tree has changes.
    """
    tree = discovery.tree
    if tree is None:
        raise UsageError(f"{discovery.root}: {discovery.outside}; {_OFFER}")
    if tree.state is TreeState.DIRTY:
        first = tree.changed[0][3:]
        more = f" and {len(tree.changed) - 1} more" if len(tree.changed) > 1 else ""
        raise UsageError(
            f"{tree.top}: the work tree has uncommitted changes ({first}{more}); commit them, or "
            + _OFFER
        )


def guard_tracked(discovery: Discovery, report: Report) -> None:
    """Refuse to write in place over files that git holds no copy of.

    Raises:
        UsageError: a file to be written is not tracked, or lies in a submodule with changes.
    """
    exposed: list[str] = []
    for plan in _changed(report):
        path = _relative(discovery, plan)
        tree, inner = discovery.tree_of(path)
        if tree is None or not tree.protects(inner):
            exposed.append(path)
        elif tree is not discovery.tree and tree.state is TreeState.DIRTY:
            first = tree.changed[0][3:]
            raise UsageError(
                f"{tree.top}: the work tree has uncommitted changes ({first}); commit them, or "
                + _OFFER
            )
    if exposed:
        more = f" and {len(exposed) - 1} more" if len(exposed) > 1 else ""
        raise UsageError(
            f"{exposed[0]}{more}: git holds no copy of what would be overwritten; commit it, or "
            + _OFFER
        )


def _changed(report: Report) -> list[FilePlan]:
    return [plan for plan in report.files if plan.output is not None or plan.renamed]


def _relative(discovery: Discovery, plan: FilePlan) -> str:
    return discovery.by_path[plan.path].real.relative_to(discovery.root).as_posix()


def in_place(discovery: Discovery, report: Report) -> Report:
    """Write changed files where they are; what could not be written is marked so."""
    plans = {plan.path: plan for plan in report.files}
    written: list[str] = []
    todo = _changed(report)
    remove_strays({discovery.by_path[plan.path].real.parent for plan in todo})
    for plan in todo:
        entry = discovery.by_path[plan.path]
        try:
            if plan.output is not None:
                write_atomic(entry.real, plan.output, expect=plan.digest)
                written.append(plan.path)
            if plan.renamed:
                _move(discovery, plan)
        except ChangedMeanwhile:
            plans[plan.path] = _failed(plan, "changed while hipport ran; left as it is")
        except OSError as error:
            plans[plan.path] = _failed(plan, f"cannot be written: {reason(error)}")
    for name, content in report.extra_files:
        write_atomic(discovery.root / name, content)
        written.append(name)
    return replace(
        report, files=tuple(plans[path] for path in sorted(plans)), written=tuple(written)
    )


def _move(discovery: Discovery, plan: FilePlan) -> None:
    old, new = discovery.root / plan.path, discovery.root / plan.renamed
    if os.path.lexists(new):
        raise FileExistsError(17, f"{plan.renamed} exists")
    tree, inner = discovery.tree_of(plan.path)
    if tree is not None and inner in tree.tracked:
        tree.move([(inner, discovery.tree_of(plan.renamed)[1])])
    else:
        os.rename(old, new)


def _failed(plan: FilePlan, note: str) -> FilePlan:
    return replace(plan, status=FileStatus.UNREADABLE, output=None, renamed="", note=note)


def check_out(out: Path, discovery: Discovery, force: bool) -> None:
    """Refuse an output folder that would mix with the source or with somebody's files.

    Raises:
        UsageError: see the message.
    """
    target = Path(os.path.realpath(out))
    root = discovery.root
    if target == root or root in target.parents:
        raise UsageError(
            f"--out {out}: lies inside the source tree {root}; choose a folder beside it"
        )
    if target in root.parents:
        raise UsageError(f"--out {out}: holds the source tree {root}; choose a folder beside it")
    if not os.path.lexists(out):
        return
    if not out.is_dir():
        raise UsageError(f"--out {out}: is not a folder")
    try:
        empty = not any(out.iterdir())
    except OSError as error:
        raise UsageError(f"--out {out}: {reason(error)}") from error
    if empty or force:
        return
    mark = _read_mark(out)
    if mark is None:
        raise UsageError(
            f"--out {out}: is not empty and not an earlier output; choose another, or use --force"
        )
    edited = [
        path for path, digest in sorted(mark.items()) if _digest(out / path) not in (digest, "")
    ]
    if edited:
        more = f" and {len(edited) - 1} more" if len(edited) > 1 else ""
        raise UsageError(
            f"--out {out}: {edited[0]}{more} changed since it was written; use --force to overwrite"
        )


def _read_mark(out: Path) -> dict[str, str] | None:
    try:
        raw = json.loads((out / OUTPUT_MARK).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(raw, dict) or raw.get("schema") != _MARK_SCHEMA:
        return None
    files = raw.get("files")
    if not isinstance(files, dict):
        return None
    return {
        str(path): str(digest)
        for path, digest in files.items()
        if not posixpath.isabs(path) and ".." not in path.split("/")
    }


def _write_mark(out: Path, files: dict[str, str]) -> None:
    content = {"schema": _MARK_SCHEMA, "files": dict(sorted(files.items()))}
    write_atomic(out / OUTPUT_MARK, json.dumps(content, indent=0).encode())


def _digest(path: Path) -> str:
    try:
        return digest_of(path.read_bytes())
    except OSError:
        return ""


def copy_tree(discovery: Discovery, report: Report, out: Path) -> Report:
    """Write a converted copy of everything that was found; `check_out` comes first.

    Raises:
        UsageError: the folder cannot be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        before = _read_mark(out) or {}
        _write_mark(out, before)
    except OSError as error:
        raise UsageError(f"--out {out}: {reason(error)}") from error
    plans = {plan.path: plan for plan in report.files}
    made: dict[str, str] = {}
    written: list[str] = []
    copied = frozenset(discovery.by_path)
    through = {e.real: plans[e.path] for e in discovery.files if e.link and e.path in plans}
    for entry in (*discovery.files, *discovery.others):
        plan = plans.get(entry.path)
        name = (plan.renamed if plan is not None else "") or entry.path
        try:
            if entry.link and _copy_link(discovery, entry, out / name, copied):
                continue
            made[name] = _copy(entry, plan or through.get(entry.real), out / name)
            if plan is not None and plan.output is not None:
                written.append(name)
        except ChangedMeanwhile:
            plans[entry.path] = _failed(
                plan or FilePlan(entry.path, FileStatus.UNREADABLE), "changed while hipport ran"
            )
        except OSError as error:
            plans[entry.path] = _failed(
                plan or FilePlan(entry.path, FileStatus.UNREADABLE),
                f"cannot be copied: {reason(error)}",
            )
    for name, content in report.extra_files:
        write_atomic(out / name, content)
        made[name] = digest_of(content)
        written.append(name)
    _remove_stale(out, before, made)
    _write_mark(out, made)
    return replace(
        report, files=tuple(plans[path] for path in sorted(plans)), written=tuple(written)
    )


def _copy(entry: Entry, plan: FilePlan | None, target: Path) -> str:
    """Write one file of the copy; return its digest."""
    status = entry.real.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(0, "not a regular file")
    data = entry.real.read_bytes()
    if plan is not None and plan.output is not None:
        if digest_of(data) != plan.digest:
            raise ChangedMeanwhile
        data = plan.output
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        target.unlink()
    mode = stat.S_IMODE(status.st_mode)
    write_atomic(target, data, mode=mode, durable=False)
    if stat.S_IMODE(target.stat().st_mode) != mode:
        target.chmod(mode)
    return digest_of(data)


def _copy_link(discovery: Discovery, entry: Entry, target: Path, copied: frozenset[str]) -> bool:
    """Make a link of the copy where what it points at is copied too (or hangs anyway)."""
    source = discovery.root / entry.path
    text = os.readlink(source)
    real = Path(os.path.realpath(source))
    inside = discovery.root in real.parents
    if inside and real.is_file() and real.relative_to(discovery.root).as_posix() not in copied:
        return False
    if inside and os.path.isabs(text):
        text = os.path.relpath(real, os.path.realpath(source.parent))
    target.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(target):
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
    os.symlink(text, target)
    return True


def _remove_stale(out: Path, before: Iterable[str], made: dict[str, str]) -> None:
    """Remove what an earlier run wrote and this one no longer makes."""
    folders = set()
    for path in set(before) - set(made):
        file = out / path
        try:
            file.unlink()
        except OSError:
            continue
        folders.add(file.parent)
    for folder in sorted(folders, key=lambda f: -len(f.parts)):
        while folder != out:
            try:
                folder.rmdir()
            except OSError:
                break
            folder = folder.parent
