"""Which CUDA names a project uses, and what the tables know about each."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from hipport import pool
from hipport.api import Options, Paths, Progress
from hipport.convert.names import OwnNames, qualifier_of
from hipport.parse.facts import _INCLUDE, FileFacts, ProjectFacts, _own_names, merge
from hipport.parse.tokens import Kind as Token
from hipport.parse.unit import Unit
from hipport.project.discover import discover
from hipport.project.kinds import C_LIKE
from hipport.report.model import FilePlan, FileStatus
from hipport.rules.api import UNCONVERTED, ApiRow, ApiTable
from hipport.rules.lookup import BY_NAMESPACE, all_rows
from hipport.run import Job, Reader, _jobs, load_rules
from hipport.source import SourceFile

T = TypeVar("T")

_PLACES = 5
_SECONDS = 120.0
_WORD = re.compile(rb"[A-Za-z_]\w*")
_FORMS = re.compile(rb"(?:cuda|cublas|cufft|curand|cusparse|cusolver|cudnn|nccl|nvrtc)[A-Z]\w*")
"""Forms that hardly anyone but NVIDIA uses: such a name counts though no table knows it."""
_ORDINARY = re.compile(rb"[a-z][a-z0-9]*")
"""The shape of names that C's own library has too, such as `sinf`."""
_HAS_CUDA_WORDS = re.compile(rb"cu|CU|nv|NV|nccl|NCCL|__|thrust|wmma|atomic|dim3|cooperative")


class Share(str, Enum):
    """How a CUDA name gets across."""

    MAPPED = "mapped"
    """hipport converts it, or it stays as it is."""
    ASSISTED = "assisted"
    """There is a counterpart that differs, or a named replacement: a person looks at it."""
    UNMAPPED = "unmapped"
    """The ROCm version has nothing for it."""
    UNKNOWN = "unknown"
    """It looks like CUDA's, and no table has it."""


def share(row: ApiRow) -> Share:
    """How a row's name gets across in its ROCm version."""
    if row.hip:
        by_hand = row.library in UNCONVERTED - BY_NAMESPACE
        return Share.ASSISTED if by_hand or row.differs else Share.MAPPED
    # Where another ROCm version has the name, the replacement only says which.
    return Share.ASSISTED if row.replacement and not row.newest else Share.UNMAPPED


@dataclass(frozen=True, slots=True)
class Place:
    """A use: path, and line from 1."""

    path: str
    line: int


@dataclass(frozen=True, slots=True)
class NameUse:
    """One CUDA name that a project uses; `row` is None for an unknown one."""

    name: str
    share: Share
    library: str
    uses: int
    files: int
    places: tuple[Place, ...]
    row: ApiRow | None = None


@dataclass(frozen=True, slots=True)
class LibraryUse:
    """Counts of names by `Share`, and all uses, of one library."""

    library: str
    names: Mapping[Share, int]
    uses: int


@dataclass(frozen=True)
class Coverage:
    """The CUDA names of a project.

    `files` are those looked at, `cuda_files` those that use a CUDA name. `unreadable` holds path
    and reason. `others` counts files of kinds whose names are not counted (Python, build files).
    """

    rocm: str
    names: tuple[NameUse, ...]
    files: int
    cuda_files: int
    others: int
    unreadable: tuple[tuple[str, str], ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    def count(self, what: Share) -> int:
        """How many names."""
        return sum(name.share is what for name in self.names)

    def libraries(self) -> list[LibraryUse]:
        """Counts by library, the most used first."""
        grouped: dict[str, list[NameUse]] = {}
        for name in self.names:
            grouped.setdefault(name.library, []).append(name)
        out = [
            LibraryUse(
                library,
                {s: sum(n.share is s for n in names) for s in Share},
                sum(n.uses for n in names),
            )
            for library, names in grouped.items()
        ]
        return sorted(out, key=lambda item: (-item.uses, item.library))


@dataclass(frozen=True, slots=True)
class FileUses:
    """The uses in one file: lines by name."""

    path: str
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Known:
    """What a worker needs to know."""

    rows: frozenset[bytes]
    headers: frozenset[bytes]
    scopes: frozenset[bytes]
    """First parts of the qualified names that the tables know."""
    counted: frozenset[bytes]
    """Names that count without a qualifier."""
    words: frozenset[bytes]
    """Both."""

    @classmethod
    def of(cls, table: ApiTable) -> _Known:
        rows = {row.cuda.encode(): row for row in all_rows(table)}
        headers = frozenset(n for n, row in rows.items() if row.kind == "header")
        qualified = [n for n in rows if b"::" in n] + list(table.namespaces)
        names = {
            name
            for name, row in rows.items()
            if row.kind not in ("header", "namespace")
            and b"::" not in name
            and not (row.hip in ("", row.cuda) and _ORDINARY.fullmatch(name))
            and not (row.library in ("cub", "thrust") and not name.startswith(b"CUB_"))
            and row.library != "caffe2"
        }
        scopes = frozenset(n.split(b"::")[0] for n in qualified)
        counted = frozenset(names)
        return cls(frozenset(rows), headers, scopes, counted, counted | scopes)


def _screened(known: _Known, data: bytes) -> frozenset[bytes]:
    """The words of a file that may be CUDA names; looking at the others costs much time."""
    if not _HAS_CUDA_WORDS.search(data):
        return frozenset()
    names = known.words
    return frozenset(w for w in set(_WORD.findall(data)) if w in names or _FORMS.fullmatch(w))


def _facts(reader: Reader, known: _Known, job: Job) -> FileFacts | FilePlan:
    data = reader.read(job)
    if isinstance(data, FilePlan):
        return data
    path = job.entry.path
    facts = FileFacts(path, tuple(dict.fromkeys(_INCLUDE.findall(data))))
    words = _screened(known, data)
    source = SourceFile(Path(path), data)
    if not words or not source.ascii_compatible:
        return facts
    # Of a file's facts only its own definitions matter here; the others cost a look at the tree.
    return replace(facts, own=tuple(_own_names(Unit(source), words)))


def _uses(reader: Reader, known: _Known, project: ProjectFacts, job: Job) -> FileUses | FilePlan:
    data = reader.read(job)
    if isinstance(data, FilePlan):
        return data
    source = SourceFile(Path(job.entry.path), data)
    includes = known.headers.intersection(_INCLUDE.findall(data))
    if not source.ascii_compatible or not (includes or _screened(known, data)):
        return FileUses(job.entry.path)
    unit = Unit(source)
    own = OwnNames(project.own_names(unit.path), unit.path)
    tokens = unit.code_tokens
    lines: dict[str, list[int]] = {}

    def use(name: bytes, at: int) -> None:
        lines.setdefault(name.decode("utf-8", "replace"), []).append(unit.line(at))

    for i, token in enumerate(tokens):
        if token.kind is Token.HEADER:
            name = token.text[1:-1].strip()
            if name in known.headers:
                use(name, token.start)
            continue
        if token.kind is not Token.IDENT or (i and tokens[i - 1].text in (b".", b"->")):
            continue
        qualifier = qualifier_of(tokens, i)
        if token.text in known.scopes and not qualifier:
            parts = [token.text]
            at = i
            while at + 2 < len(tokens) and tokens[at + 1].text == b"::":
                at += 2
                parts.append(tokens[at].text)
            longest = _longest(parts, known.rows)
            if longest and not own.find(token.text, token.start, None):
                use(longest, token.start)
            continue
        counted = token.text in known.counted
        if not counted and not _FORMS.fullmatch(token.text):
            continue
        if own.find(token.text, token.start, qualifier) or (qualifier and not counted):
            continue
        use(token.text, token.start)
    return FileUses(job.entry.path, {name: tuple(at) for name, at in lines.items()})


def _longest(parts: Sequence[bytes], rows: frozenset[bytes]) -> bytes:
    """The longest qualified name that the tables know; a bare namespace is no use of one."""
    for length in range(len(parts), 0, -1):
        name = b"::".join(parts[:length])
        if name in rows and len(parts) > 1:
            return name
    return b""


@dataclass
class _Stage(Generic[T]):
    """One function over the files that earlier stages could read, in worker processes."""

    name: str
    function: Callable[[Job], T | FilePlan]
    failed: dict[str, FilePlan]

    def run(self, jobs: Sequence[Job], workers: int, progress: Progress | None) -> list[T]:
        left = [job for job in jobs if job.entry.path not in self.failed]
        out: dict[int, T] = {}
        results = pool.run(
            self.function, left, workers=workers, seconds=_seconds, weight=lambda j: j.size + 2000
        )
        for done, (index, result) in enumerate(results, 1):
            path = left[index].entry.path
            if isinstance(result, pool.Failure):
                note = f"not counted: {result.reason}"
                self.failed[path] = FilePlan(path, FileStatus.UNREADABLE, note=note)
            elif isinstance(result, FilePlan):
                self.failed[path] = result
            else:
                out[index] = result
            if progress is not None:
                progress(self.name, done, len(left))
        return [out[index] for index in sorted(out)]


def _seconds(job: Job) -> float:
    return _SECONDS + 30.0 * (job.size >> 20)


def measure(
    paths: Paths, options: Options | None = None, *, progress: Progress | None = None
) -> Coverage:
    """Count the CUDA names that the C, C++ and CUDA files below `paths` use.

    Names that the project defines itself are left out, as are members and what stands in comments
    and strings.

    Raises:
        UsageError: a path does not exist, or the options name something unknown.
    """
    began = time.monotonic()
    options = options or Options()
    table = load_rules(options)
    found = discover(
        paths,
        include=options.include,
        exclude=options.exclude,
        respect_gitignore=options.respect_gitignore,
    )
    jobs = [job for job in _jobs(found) if job.entry.kind in C_LIKE]
    reader = Reader(found.root)
    known = _Known.of(table)
    workers = options.jobs or pool.default_workers()
    failed: dict[str, FilePlan] = {}
    reading = _Stage("read", partial(_facts, reader, known), failed)
    project = merge(reading.run(jobs, workers, progress))
    counting = _Stage("count", partial(_uses, reader, known, project), failed)
    files = counting.run(jobs, workers, progress)
    left_out = [
        *((plan.path, plan.status, plan.note) for plan in failed.values()),
        *((item.path, FileStatus.UNREADABLE, item.note) for item in found.unreadable),
        *((item.path, FileStatus.SKIPPED, item.note) for item in found.skipped),
    ]
    return Coverage(
        rocm=table.rocm,
        names=tuple(_names(files, table)),
        files=len(files),
        cuda_files=sum(bool(item.lines) for item in files),
        others=len(found.files) - len(jobs),
        unreadable=tuple((p, n) for p, s, n in sorted(left_out) if s is FileStatus.UNREADABLE),
        skipped=tuple((p, n) for p, s, n in sorted(left_out) if s is FileStatus.SKIPPED),
        seconds=time.monotonic() - began,
    )


def _names(files: Sequence[FileUses], table: ApiTable) -> list[NameUse]:
    rows = {row.cuda: row for row in all_rows(table)}
    places: dict[str, list[Place]] = {}
    for item in files:
        for name, lines in item.lines.items():
            places.setdefault(name, []).extend(Place(item.path, line) for line in lines)
    out = []
    for name, where in places.items():
        row = rows.get(name)
        out.append(
            NameUse(
                name=name,
                share=share(row) if row is not None else Share.UNKNOWN,
                library=row.library if row is not None else "unknown",
                uses=len(where),
                files=len({place.path for place in where}),
                places=tuple(where[:_PLACES]),
                row=row,
            )
        )
    return sorted(out, key=lambda use: (-use.uses, use.name))
