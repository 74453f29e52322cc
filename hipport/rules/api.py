"""The name tables of ``rules/api``: which CUDA name is which HIP name, by ROCm version.

A table is one library. Its columns are `COLUMNS`; `alternatives` holds words ``<V=NAME``: before
ROCm V the name is NAME (nothing: the version has none). The first word whose V is above the
version asked for counts, then `hip_added` and `hip_removed` of `hip` do.
``headers.tsv`` and ``namespaces.tsv`` have fewer columns; ``decisions.tsv`` says why rows differ
from published maps and is not loaded.
"""

from __future__ import annotations

import marshal
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hipport.data import rules_dir

KNOWN = ("5.7", "6.2", "6.4", "7.0", "7.2", "10.0")
RELEASES = ("5.7", "6.0", "6.1", "6.2", "6.3", "6.4", "7.0", "7.1", "7.2", "10.0")
"""Versions between the known ones are served too: the tables hold the version of each change."""

COLUMNS = (
    "cuda", "kind", "hip", "hip_header", "cuda_added", "cuda_deprecated", "cuda_removed",
    "hip_added", "hip_deprecated", "hip_removed", "alternatives", "differs", "replacement", "note",
)  # fmt: skip
KINDS = frozenset(
    {"function", "type", "enum", "macro", "struct", "header", "namespace", "class", "variable"}
)
UNCONVERTED = frozenset({"cub", "dnn", "caffe2", "nvml", "cupti", "cutlass", "libcudacxx", "thrust",
                         "wmma", "groups"})  # fmt: skip
"""Libraries whose names are guidance: namespaces, checks of their own or a person's work."""

GUARDS = frozenset({"__CUDACC__", "__CUDA_ARCH__", "CUDA_VERSION", "CUDART_VERSION", "__NVCC__"})
"""Macros that the guard checks handle; a table must not name them."""

_OTHER = frozenset({"headers", "namespaces", "decisions"})
_HEADER_COLUMNS = ("cuda", "hip", "library", "alternatives")
_FORMAT = "5"
_VERSION = re.compile(r"\d+(\.\d+)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_~][A-Za-z0-9_]*)*")


class UnknownRocm(ValueError):
    """The ROCm version is none that hipport knows."""


class ApiError(ValueError):
    """A name table is wrong; the message names the file, the row and the column."""


@dataclass(frozen=True, slots=True)
class ApiRow:
    """One CUDA name, resolved for one ROCm version (`hip` is empty where that has none)."""

    cuda: str
    kind: str
    library: str
    hip: str
    hip_header: str = ""
    replacement: str = ""
    cuda_added: str = ""
    cuda_deprecated: str = ""
    cuda_removed: str = ""
    hip_added: str = ""
    hip_deprecated: str = ""
    hip_removed: str = ""
    alternatives: str = ""
    differs: str = ""
    note: str = ""
    newest: str = ""
    """The HIP name of the newest version, whichever was asked for."""


class _Rows(Mapping[bytes, ApiRow]):
    """Rows that become objects when they are asked for; making them all would take longer."""

    def __init__(self, raw: dict[bytes, bytes]) -> None:
        self._raw = raw

    def __getitem__(self, name: bytes) -> ApiRow:
        return ApiRow(*self._raw[name].decode().split("\t"))

    def get(self, name: bytes, default: Any = None) -> Any:
        """A row, or the default."""
        raw = self._raw.get(name)
        return default if raw is None else ApiRow(*raw.decode().split("\t"))

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)


@dataclass(frozen=True)
class ApiTable:
    """All names for one ROCm version."""

    rocm: str
    renames: Mapping[bytes, bytes]
    headers: Mapping[bytes, bytes]
    namespaces: Mapping[bytes, bytes]
    unmapped: Mapping[bytes, ApiRow]
    rows: Mapping[bytes, ApiRow]

    def row(self, name: bytes) -> ApiRow | None:
        """The row of a CUDA name."""
        return self.rows.get(name)


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers without trailing zeros, so that 6.4 and 6.4.0 are one.

    Raises:
        ValueError: it is no version.
    """
    if not _VERSION.fullmatch(version):
        raise ValueError(version)
    parts = [int(p) for p in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


def check_version(version: str) -> str:
    """The version as given, where hipport knows its release (patch levels are fine).

    Raises:
        UnknownRocm: no such release; the message names the nearest.
    """
    text = version.strip()
    head = ".".join(text.split(".")[:2])
    if _VERSION.fullmatch(text) and head in RELEASES:
        return text
    listed = ", ".join(KNOWN)
    if not _VERSION.fullmatch(text):
        raise UnknownRocm(f"unknown ROCm version '{version}'; known: {listed}")
    want = numbers(text)
    near = [r for r in RELEASES if want and r.split(".")[0] == text.split(".")[0]]
    near = near or [min(RELEASES, key=lambda r: abs(numbers(r)[0] - (want or (0,))[0]))]
    raise UnknownRocm(
        f"unknown ROCm version '{version}'; did you mean {' or '.join(near[-2:])}? known: {listed}"
    )


def installed_rocm() -> str | None:
    """Version of the ROCm on this machine, where it says one."""
    named = os.environ.get("ROCM_PATH")
    roots = [Path(named)] if named else [Path("/opt/rocm"), *sorted(Path("/opt").glob("rocm-*"))]
    for root in roots:
        try:
            text = (root / ".info" / "version").read_text()
        except (OSError, UnicodeDecodeError):
            continue
        match = re.match(r"\d+\.\d+(\.\d+)?", text.strip())
        if match:
            return match.group(0)
    return None


def default_rocm() -> str:
    """The installed version, or the newest known one not above it, or the newest known."""
    installed = installed_rocm()
    if installed is None:
        return KNOWN[-1]
    try:
        return check_version(installed)
    except UnknownRocm:
        older = [r for r in RELEASES if numbers(r) <= numbers(installed)]
        return older[-1] if older else RELEASES[0]


@dataclass(frozen=True, slots=True)
class Source:
    """A raw row with where it stands."""

    library: str
    values: Mapping[str, str]
    alternatives: tuple[tuple[tuple[int, ...], str], ...]


def _bad(file: Path, line: int, column: str, what: str) -> ApiError:
    return ApiError(f"{file.name}, row {line}, column '{column}': {what}")


def _alternatives(text: str, name: str = r"\w*") -> tuple[tuple[tuple[int, ...], str], ...]:
    found = []
    for word in text.split():
        match = re.fullmatch(rf"<(\d+(?:\.\d+)*)=({name})", word)
        if match is None:
            raise ValueError(f"'{word}' is not of the form <VERSION=NAME")
        found.append((numbers(match.group(1)), match.group(2)))
    if found != sorted(found, key=lambda pair: pair[0]):
        raise ValueError("versions must ascend")
    return tuple(found)


def _records(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table with their line numbers, checked for shape.

    Raises:
        ApiError: columns are missing, or a row has too few or too many cells.
    """
    lines = file.read_text(encoding="utf-8").split("\n")
    if tuple(lines[0].split("\t")) != columns:
        raise ApiError(f"{file.name}, row 1: columns must be {', '.join(columns)}")
    for number, line in enumerate(lines[1:], 2):
        if not line and number == len(lines):
            return
        cells = line.split("\t")
        if len(cells) != len(columns):
            raise ApiError(f"{file.name}, row {number}: {len(cells)} cells, not {len(columns)}")
        yield number, dict(zip(columns, cells, strict=True))


def read_table(file: Path) -> list[Source]:
    """Read and check one library's table.

    Raises:
        ApiError: a value is not of the documented form.
    """
    out = []
    for line, values in _records(file, COLUMNS):
        if not _NAME.fullmatch(values["cuda"]):
            raise _bad(file, line, "cuda", f"'{values['cuda']}' is no identifier")
        if values["cuda"] in GUARDS:
            raise _bad(file, line, "cuda", f"{values['cuda']} belongs to the guard checks")
        if values["kind"] not in KINDS:
            raise _bad(file, line, "kind", f"'{values['kind']}' is none of {sorted(KINDS)}")
        if values["hip"] and not _NAME.fullmatch(values["hip"]):
            raise _bad(file, line, "hip", f"'{values['hip']}' is no identifier")
        for column in COLUMNS[4:10]:
            if values[column] and not _VERSION.fullmatch(values[column]):
                raise _bad(file, line, column, f"'{values[column]}' is no version")
        try:
            alternatives = _alternatives(values["alternatives"])
        except ValueError as error:
            raise _bad(file, line, "alternatives", str(error)) from None
        out.append(Source(file.stem, values, alternatives))
    return out


def _read_headers(file: Path) -> Iterator[Source]:
    for line, values in _records(file, _HEADER_COLUMNS):
        try:
            alternatives = _alternatives(values["alternatives"], r"[\w./+-]*")
        except ValueError as error:
            raise _bad(file, line, "alternatives", str(error)) from None
        known = {"hip_added": "", "hip_removed": "", "replacement": ""}
        yield Source(values["library"], {**known, **values}, alternatives)


def parse_row(library: str, values: Mapping[str, str]) -> Source:
    """A row as `resolve` takes it.

    Raises:
        ValueError: the alternatives are not of the documented form.
    """
    return Source(library, values, _alternatives(values["alternatives"]))


def resolve(source: Source, version: tuple[int, ...]) -> tuple[str, str]:
    """The HIP name for a version (see `numbers`), and what to say where there is none."""
    values = source.values
    hip, replacement = values["hip"], values["replacement"]
    for bound, name in source.alternatives:
        if version < bound:
            if name or not hip:
                return name, "" if name else replacement
            since = ".".join(map(str, bound)) if len(bound) > 1 else f"{bound[0]}.0"
            later = next((n for b, n in source.alternatives if n and b > bound), hip)
            return "", replacement or f"{later} from ROCm {since} on"
    if not hip:
        return "", replacement
    if values["hip_added"] and version < numbers(values["hip_added"]):
        since = ".".join(values["hip_added"].split(".")[:2])
        return "", replacement or f"{hip} from ROCm {since} on"
    if values["hip_removed"] and version >= numbers(values["hip_removed"]):
        until = ".".join(values["hip_removed"].split(".")[:2])
        return "", replacement or f"{hip} was removed in ROCm {until}"
    return hip, replacement


_Plain = tuple[
    dict[bytes, bytes], dict[bytes, bytes], dict[bytes, bytes], tuple[bytes, ...],
    dict[bytes, bytes],
]  # fmt: skip


def compile_tables(folder: Path, version: str) -> _Plain:
    """The tables of a folder for one version, as plain values.

    Raises:
        ApiError: a table is wrong.
    """
    wanted = numbers(version)
    renames: dict[bytes, bytes] = {}
    rows: dict[bytes, bytes] = {}
    unmapped: list[bytes] = []
    origin: dict[bytes, str] = {}
    for file in sorted(folder.glob("*.tsv")):
        if file.stem in _OTHER:
            continue
        for source in read_table(file):
            values = source.values
            name = values["cuda"].encode()
            if name in origin:
                raise ApiError(f"{file.name}: {values['cuda']} also stands in {origin[name]}")
            origin[name] = file.name
            hip, replacement = resolve(source, wanted)
            header = values["hip_header"] if hip else ""
            fields = (
                values["cuda"], values["kind"], source.library, hip, header, replacement,
                *(values[c] for c in COLUMNS[4:10]),
                values["alternatives"], values["differs"], values["note"], values["hip"],
            )  # fmt: skip
            rows[name] = "\t".join(fields).encode()
            if source.library in UNCONVERTED:
                continue
            if not hip:
                unmapped.append(name)
            elif hip != values["cuda"]:
                renames[name] = hip.encode()
    headers: dict[bytes, bytes] = {}
    for source in _read_headers(folder / "headers.tsv"):
        name = source.values["cuda"].encode()
        hip, replacement = resolve(source, wanted)
        if hip:
            headers[name] = hip.encode()
            continue
        fields = (source.values["cuda"], "header", source.library, "", "", replacement)
        rows[name] = "\t".join((*fields, *[""] * 9, source.values["hip"])).encode()
        unmapped.append(name)
    namespaces = {
        values["cuda"].encode(): values["hip"].encode()
        for _, values in _records(folder / "namespaces.tsv", ("cuda", "hip", "library"))
    }
    return renames, headers, namespaces, tuple(unmapped), rows


def _cache_dir() -> Path:
    root = os.environ.get("HIPPORT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    if root:
        return Path(root)
    return (Path(base) if base else Path.home() / ".cache") / "hipport"


def _read_cache(path: Path) -> _Plain | None:
    try:
        raw = path.read_bytes()
        # marshal trusts its input, so what a crash or a full disk left is told by its digest.
        if blake2b(raw[32:], digest_size=32).digest() != raw[:32]:
            return None
        plain: _Plain = marshal.loads(raw[32:])
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return plain


def _write_cache(path: Path, plain: _Plain) -> None:
    data = marshal.dumps(plain)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        part.write_bytes(blake2b(data, digest_size=32).digest() + data)
        part.replace(path)
    except OSError:
        return


def _plain(version: str) -> _Plain:
    folder = rules_dir() / "api"
    digest = blake2b(f"{_FORMAT} {version} {sys.version}".encode(), digest_size=12)
    for file in sorted(folder.glob("*.tsv")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    cache = _cache_dir() / f"api-{digest.hexdigest()}.marshal"
    plain = _read_cache(cache)
    if plain is None:
        plain = compile_tables(folder, version)
        _write_cache(cache, plain)
    return plain


@lru_cache(maxsize=8)
def load(rocm: str | None = None) -> ApiTable:
    """The tables for a ROCm version (None: the installed one, else the newest known).

    Raises:
        UnknownRocm: the version is not known.
        ApiError: the tables are broken.
    """
    version = check_version(rocm) if rocm else default_rocm()
    renames, headers, namespaces, unmapped, rows = _plain(version)
    missing = {name: rows[name] for name in unmapped}
    return ApiTable(version, renames, headers, namespaces, _Rows(missing), _Rows(rows))
