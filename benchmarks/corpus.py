"""Fetch the pinned source distributions that the benchmarks convert.

    python benchmarks/corpus.py fetch            # all of corpus.toml
    python benchmarks/corpus.py fetch gsplat     # one
    python benchmarks/corpus.py pin gsplat 1.5.3 # print an entry for corpus.toml

Distributions come through pip's own client (its index settings, certificates and proxies apply)
and land in `corpus_dir()`, outside the source tree. `pip download` would run each project's build
code to learn its metadata, which here means installing PyTorch and looking for nvcc; so the
helper below stops after pip has found the file and fetches it with pip's own session.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib

PINS = Path(__file__).with_name("corpus.toml")

_MAX_UNPACKED = 2 * 1024**3
_PIP_HELPER = r"""
import sys
from pip._internal.commands.download import DownloadCommand

class Fetch(DownloadCommand):
    def run(self, options, args):
        name, version, target = args
        session = self.get_default_session(options)
        finder = self._build_package_finder(options, session)
        for found in finder.find_all_candidates(name):
            link = found.link
            if str(found.version) == version and link.filename.endswith(".tar.gz"):
                break
        else:
            sys.stderr.write("no source distribution %s %s on the configured index\n"
                             % (name, version))
            return 4
        if link.is_file:
            with open(link.file_path, "rb") as source, open(target, "wb") as out:
                out.write(source.read())
            return 0
        answer = session.get(link.url_without_fragment, stream=True,
                             headers={"Accept-Encoding": "identity"})
        answer.raise_for_status()
        with open(target, "wb") as out:
            for chunk in answer.iter_content(1 << 20):
                out.write(chunk)
        return 0

sys.exit(Fetch("download", "fetch one source distribution").main(
    ["--quiet", "--no-deps", *sys.argv[1:]]))
"""


class CorpusError(Exception):
    """A corpus cannot be had; the message says which one, why, and what to do."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One pinned source distribution.

    `sha256` is that of the archive. `roots` are the folders below the archive's top folder that
    the benchmark reads (all of it where empty); `why` says what the corpus is good for.
    """

    name: str
    version: str
    sha256: str
    why: str = ""
    roots: tuple[str, ...] = ()


def pins(path: Path = PINS) -> list[Pin]:
    """Read the pins.

    Raises:
        CorpusError: the file is not what it should be.
    """
    try:
        raw = tomllib.loads(path.read_text("utf-8"))
        found = [
            Pin(
                str(entry["name"]),
                str(entry["version"]),
                str(entry["sha256"]),
                str(entry.get("why", "")),
                tuple(str(root) for root in entry.get("roots", ())),
            )
            for entry in raw["corpus"]
        ]
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CorpusError(f"{path}: {error!r}; see an existing entry for the form") from error
    for pin in found:
        if len(pin.sha256) != 64 or set(pin.sha256) - set("0123456789abcdef"):
            raise CorpusError(f"{path}: {pin.name}: sha256 is not 64 lower-case hex digits")
        if any(not _inside(root) for root in pin.roots):
            raise CorpusError(f"{path}: {pin.name}: roots must be relative and without '..'")
    names = [pin.name for pin in found]
    if len(set(names)) != len(names):
        raise CorpusError(f"{path}: a name is pinned twice")
    return found


def corpus_dir() -> Path:
    """Where archives and unpacked sources lie: below HIPPORT_CACHE_DIR or the user's cache."""
    own = os.environ.get("HIPPORT_CACHE_DIR")
    if own:
        return Path(own) / "corpus"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hipport" / "corpus"


def download(name: str, version: str, target: Path) -> None:
    """Fetch one source distribution with pip's client.

    Raises:
        CorpusError: pip could not find or fetch it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
        partial = Path(folder) / "sdist"
        done = subprocess.run(
            [sys.executable, "-c", _PIP_HELPER, name, version, str(partial)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not partial.is_file():
            said = [line for line in done.stderr.splitlines() if line.strip()]
            raise CorpusError(
                f"{name} {version}: pip {'.'.join(_pip_version())} could not fetch it: "
                f"{said[-1] if said else f'exit status {done.returncode}'}"
            )
        os.replace(partial, target)


def _pip_version() -> tuple[str, ...]:
    try:
        from importlib.metadata import version

        return tuple(version("pip").split("."))
    except ImportError:
        return ("missing (install pip into this environment)",)


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def ensure(pin: Pin, folder: Path | None = None) -> Path:
    """Return the folder with a pin's unpacked sources, fetching and unpacking where needed.

    Raises:
        CorpusError: it cannot be fetched, its hash differs, or the archive is not safe.
    """
    folder = folder or corpus_dir()
    archive = folder / f"{pin.name}-{pin.version}.tar.gz"
    sources = folder / f"{pin.name}-{pin.version}-{pin.sha256[:12]}"
    if sources.is_dir():
        return sources
    if not archive.is_file():
        download(pin.name, pin.version, archive)
    found = digest(archive)
    if found != pin.sha256:
        archive.unlink()
        raise CorpusError(
            f"{pin.name} {pin.version}: sha256 is {found}, pinned is {pin.sha256}; "
            "the download was deleted"
        )
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unpack-") as scratch:
        inner = Path(scratch) / "sources"
        inner.mkdir()
        unpack(archive, inner)
        os.replace(inner, sources)
    return sources


def unpack(archive: Path, target: Path) -> None:
    """Unpack the regular files of a tar archive below `target`, its single top folder dropped.

    Links, devices and anything that would land outside are refused or left out: the sources are
    data here, and nothing of them is ever run.

    Raises:
        CorpusError: a member leaves the folder, or the archive is damaged or too large.
    """
    total = 0
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                if not _inside(member.name):
                    raise CorpusError(f"{archive.name}: member {member.name!r} leaves the folder")
                if not member.isfile():
                    continue
                parts = PurePosixPath(member.name).parts[1:]
                stream = tar.extractfile(member)
                if not parts or stream is None:
                    continue
                total += member.size
                if total > _MAX_UNPACKED:
                    raise CorpusError(f"{archive.name}: unpacks to more than {_MAX_UNPACKED} bytes")
                place = target.joinpath(*parts)
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as out:
                    shutil.copyfileobj(stream, out)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise CorpusError(f"{archive.name}: cannot be unpacked: {error}") from error


def _inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


_SUFFIXES = frozenset(
    {".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".inc"}
)


def source_files(root: Path, roots: Sequence[str] = ()) -> Iterator[Path]:
    """C, C++ and CUDA files below `root` (or below its `roots`), sorted, links left out."""
    starts = [root / part for part in roots] if roots else [root]
    found = {
        path
        for start in starts
        for path in start.rglob("*")
        if path.suffix.lower() in _SUFFIXES and path.is_file() and not path.is_symlink()
    }
    return iter(sorted(found))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Fetch the pinned benchmark corpora.")
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("fetch", help="download, verify and unpack")
    fetch.add_argument("names", nargs="*", help="only these corpora")
    pin_command = commands.add_parser("pin", help="print an entry for corpus.toml")
    pin_command.add_argument("name")
    pin_command.add_argument("version")
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "pin":
            with tempfile.TemporaryDirectory() as folder:
                archive = Path(folder) / "sdist.tar.gz"
                download(arguments.name, arguments.version, archive)
                found = digest(archive)
            print(
                f'[[corpus]]\nname = "{arguments.name}"\nversion = "{arguments.version}"\n'
                f'sha256 = "{found}"\nwhy = ""\n'
            )
            return 0
        known = pins()
        wrong = set(arguments.names) - {pin.name for pin in known}
        if wrong:
            raise CorpusError(f"not pinned: {', '.join(sorted(wrong))}")
        for pin in known:
            if arguments.names and pin.name not in arguments.names:
                continue
            place = ensure(pin)
            count = sum(1 for _ in source_files(place, pin.roots))
            print(f"{pin.name} {pin.version}: {count} source files in {place}")
    except CorpusError as error:
        print(f"corpus: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
