"""One run over a project: facts of every file, then a plan for every file, in worker processes."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from hipport import pool
from hipport.api import Options
from hipport.checks import Context
from hipport.convert.other import plan_other
from hipport.convert.plan import plan_file
from hipport.convert.rename import Renames, follow
from hipport.data import rules_dir
from hipport.errors import UsageError
from hipport.findings import Finding
from hipport.parse.facts import FileFacts, collect, merge
from hipport.project.discover import Discovery, Entry, reason
from hipport.project.generated import generated_hip, twins
from hipport.project.kinds import C_LIKE
from hipport.report.model import FilePlan, FileStatus, Report, Snippet
from hipport.rules import api, hazards
from hipport.source import SourceFile

Progress = Callable[[str, int, int], None]
"""Called with the stage (``read`` or ``convert``), the files done and all files."""

_SECONDS = 120.0
_SECONDS_PER_MIB = 30.0
_LARGEST = 256 << 20
_CROP = 240


@dataclass(frozen=True, slots=True)
class Job:
    """One file of a run."""

    entry: Entry
    size: int
    twin: bool


@dataclass(frozen=True)
class Reader:
    """Reads a job's bytes; what cannot be read or is no input becomes a `FilePlan` at once."""

    root: Path

    def read(self, job: Job) -> bytes | FilePlan:
        """The bytes of a file."""
        path = job.entry.path
        if job.size > _LARGEST:
            note = f"larger than {_LARGEST >> 20} MiB; name smaller files or use --exclude"
            return FilePlan(path, FileStatus.UNREADABLE, size=job.size, note=note)
        try:
            data = job.entry.real.read_bytes()
        except FileNotFoundError:
            return FilePlan(path, FileStatus.UNREADABLE, note="vanished while hipport ran")
        except OSError as error:
            return FilePlan(path, FileStatus.UNREADABLE, note=reason(error))
        why = "" if job.entry.given else generated_hip(data, job.twin)
        if why:
            return FilePlan(path, FileStatus.SKIPPED, size=len(data), note=why)
        return data


def _collect(reader: Reader, names: frozenset[bytes], job: Job) -> FileFacts | FilePlan:
    data = reader.read(job)
    if isinstance(data, FilePlan):
        return data
    if job.entry.kind not in C_LIKE:
        return FileFacts(job.entry.path)
    return collect(job.entry.path, data, names)


def _plan(reader: Reader, context: Context, renames: Renames | None, job: Job) -> FilePlan:
    data = reader.read(job)
    if isinstance(data, FilePlan):
        return data
    source = SourceFile(Path(job.entry.path), data)
    kind = job.entry.kind
    plan = plan_file(source, context) if kind in C_LIKE else plan_other(source, kind, context)
    if renames is not None:
        plan = follow(plan, source, renames)
    return replace(plan, snippets=snippets(source, plan.findings))


def snippets(source: SourceFile, findings: Sequence[Finding]) -> tuple[Snippet, ...]:
    """The original lines that findings name, long ones cropped around the first column named."""
    if not findings:
        return ()
    if not source.ascii_compatible:
        text = source.data.decode(source.encoding, "replace").removeprefix("\ufeff")
        source = SourceFile(source.path, text.encode())
    places: dict[int, int] = {}
    for finding in findings:
        places[finding.line] = min(finding.column, places.get(finding.line, finding.column))
    out = []
    for line, column in sorted(places.items()):
        if line > len(source.line_starts):
            continue
        text_bytes = source.text(source.line_span(line)).rstrip(b"\r\n")
        start = 0 if column <= _CROP else column - _CROP // 2
        out.append(Snippet(line, text_bytes[start : start + 2 * _CROP], start))
    return tuple(out)


def _jobs(discovery: Discovery) -> list[Job]:
    twin = twins(discovery.by_path)
    out = []
    for entry in discovery.files:
        try:
            size = entry.real.stat().st_size
        except OSError:
            size = 0
        out.append(Job(entry, size, entry.path in twin))
    return out


def _seconds(job: Job) -> float:
    return _SECONDS + _SECONDS_PER_MIB * (job.size >> 20)


def _weight(job: Job) -> int:
    # Looking at a file costs something however small it is.
    return job.size + 2000


def _unreadable(job: Job, failure: pool.Failure) -> FilePlan:
    return FilePlan(
        job.entry.path,
        FileStatus.UNREADABLE,
        size=job.size,
        note=f"left as it is: {failure.reason}",
    )


def installed_rocm() -> str | None:
    """Major and minor version of the ROCm on this machine, if there is one."""
    root = Path(os.environ.get("ROCM_PATH") or "/opt/rocm")
    try:
        text = (root / ".info" / "version").read_text()
    except (OSError, UnicodeDecodeError):
        return None
    match = re.match(r"(\d+\.\d+)", text.strip())
    return match.group(1) if match else None


def load_rules(options: Options) -> api.ApiTable:
    """The name tables for the options' ROCm version, else the installed one, else the newest.

    Raises:
        UsageError: hipport does not know the version that the options name.
    """
    if options.rocm is None:
        with contextlib.suppress(api.UnknownRocm):
            return api.load(installed_rocm())
        return api.load(None)
    try:
        return api.load(options.rocm)
    except api.UnknownRocm as error:
        raise UsageError(f"--rocm: {error}") from error


@dataclass
class _Stage:
    """Runs one function over the jobs, with progress and as many workers as make sense."""

    jobs: Sequence[Job]
    workers: int
    progress: Progress | None
    failed: dict[str, FilePlan] = field(default_factory=dict)

    def run(
        self, name: str, function: Callable[[Job], FileFacts | FilePlan]
    ) -> list[FileFacts | FilePlan]:
        jobs = [job for job in self.jobs if job.entry.path not in self.failed]
        out: list[FileFacts | FilePlan | None] = [None] * len(jobs)
        if pool.can_fork() or sum(_weight(job) for job in jobs) > 200_000:
            results = pool.run(
                function, jobs, workers=self.workers, seconds=_seconds, weight=_weight
            )
        else:
            results = ((i, pool.attempt(function, job)) for i, job in enumerate(jobs))
        for done, (index, result) in enumerate(results, 1):
            if isinstance(result, pool.Failure):
                result = _unreadable(jobs[index], result)
            if isinstance(result, FilePlan) and result.status in (
                FileStatus.UNREADABLE,
                FileStatus.SKIPPED,
            ):
                self.failed[result.path] = result
            else:
                out[index] = result
            if self.progress is not None:
                self.progress(name, done, len(jobs))
        return [item for item in out if item is not None]


def plan_project(
    discovery: Discovery,
    options: Options,
    *,
    command: str,
    rename: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Plan every file of a project; write nothing.

    Raises:
        UsageError: the options name something that hipport does not know.
    """
    began = time.monotonic()
    table = load_rules(options)
    rules = hazards.load()
    _check_slugs(options, rules)
    reader = Reader(discovery.root)
    stage = _Stage(_jobs(discovery), options.jobs or pool.default_workers(), progress)
    names = frozenset(table.renames) | frozenset(table.unmapped)
    facts = stage.run("read", partial(_collect, reader, names))
    project = merge([item for item in facts if isinstance(item, FileFacts)])
    renames = None
    if rename:
        renames = Renames.of(discovery, frozenset(stage.failed), rules)
    context = Context(table, rules, project, options)
    planned = stage.run("convert", partial(_plan, reader, context, renames))
    files = {plan.path: plan for plan in planned if isinstance(plan, FilePlan)}
    files.update(stage.failed)
    for item in discovery.skipped:
        files[item.path] = FilePlan(item.path, FileStatus.SKIPPED, note=item.note)
    for item in discovery.unreadable:
        files[item.path] = FilePlan(item.path, FileStatus.UNREADABLE, note=item.note)
    extra, notes = compat_files(discovery.root, files.values())
    return Report(
        root=discovery.root,
        rocm=table.rocm,
        files=tuple(files[path] for path in sorted(files)),
        seconds=time.monotonic() - began,
        command=command,
        extra_files=extra,
        notes=(*discovery.notes, *(renames.notes if renames is not None else ()), *notes),
    )


def compat_files(
    root: Path, plans: Iterable[FilePlan]
) -> tuple[tuple[tuple[str, bytes], ...], list[str]]:
    """Helper headers that plans ask for and the project lacks, and notes about them."""
    wanted = sorted({need.strip('"') for plan in plans for need in plan.needs})
    extra: list[tuple[str, bytes]] = []
    notes: list[str] = []
    for name in wanted:
        content = (rules_dir() / "compat" / name).read_bytes()
        there = root / name
        if not os.path.lexists(there):
            extra.append((name, content))
            continue
        try:
            old = there.read_bytes()
        except OSError:
            old = b""
        if old == content:
            continue
        if old.startswith(b"// " + name.encode()):
            notes.append(f"{name}: differs from this version's; kept, compare the two yourself")
        else:
            notes.append(f"{name}: the project has a file of that name, so hipport's was not added")
    return tuple(extra), notes


def _check_slugs(options: Options, rules: Mapping[str, hazards.Hazard]) -> None:
    known = {"all", *rules, *(h.code for h in rules.values())}
    for slug in sorted(options.assist):
        if slug not in known:
            near = get_close_matches(slug, known, 1)
            more = f"; did you mean {near[0]}?" if near else ""
            raise UsageError(f"--assist: unknown rule '{slug}'{more}")
