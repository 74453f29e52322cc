"""Writing files so that each is old or new at every moment, and nothing unseen is overwritten."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

_PART = ".hipport-part"


class ChangedMeanwhile(Exception):
    """The file's bytes are no longer those that the plan was made from."""


def digest_of(data: bytes) -> str:
    """SHA-256 of bytes, as in `FilePlan.digest`."""
    return hashlib.sha256(data).hexdigest()


def _same_owner(handle: int, like: os.stat_result) -> None:
    here = os.fstat(handle)
    if (here.st_uid, here.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(handle, like.st_uid, like.st_gid)


def _copy_attributes(source: Path, target: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(source):
            with contextlib.suppress(OSError):
                os.setxattr(target, name, os.getxattr(source, name))


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_atomic(
    path: Path,
    data: bytes,
    *,
    expect: str | None = None,
    mode: int = 0o644,
    durable: bool = True,
) -> None:
    """Replace a file's content, or make the file.

    An existing file keeps its mode, owner and extended attributes. Whatever happens, the path
    holds the old or the new content; a kill at the wrong moment can leave a stray
    ``.NAME.*.hipport-part`` beside it.

    Args:
        path: the file itself, not a link to it (a link would be replaced by a file).
        data: the new content.
        expect: SHA-256 of the content that may be replaced; None: any, or none.
        mode: permission bits of a new file.
        durable: wait for the disk, so that a power cut leaves a whole file, too; a copy that can
            be made again does without.

    Raises:
        ChangedMeanwhile: `expect` is given and the content is another.
        OSError: the file cannot be read or written; it is unchanged.
    """
    old: os.stat_result | None = None
    with contextlib.suppress(FileNotFoundError):
        old = path.lstat()
    if expect is not None and old is None:
        raise ChangedMeanwhile
    handle, part = tempfile.mkstemp(
        prefix=f".{path.name[:60]}.{os.getpid()}-", suffix=_PART, dir=path.parent
    )
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            if old is not None:
                _same_owner(out.fileno(), old)
                _copy_attributes(path, part)
            os.fchmod(out.fileno(), stat.S_IMODE(old.st_mode) if old is not None else mode)
            if durable:
                os.fsync(out.fileno())
        if expect is not None and digest_of(path.read_bytes()) != expect:
            raise ChangedMeanwhile
        os.replace(part, path)
    except FileNotFoundError as error:
        _discard(part)
        if expect is not None and not path.exists():
            raise ChangedMeanwhile from error
        raise
    except BaseException:
        _discard(part)
        raise
    if durable:
        _sync_folder(path.parent)


def _discard(part: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(part)


def remove_strays(folders: set[Path]) -> int:
    """Remove what killed runs left in folders; return how many files that were."""
    removed = 0
    for folder in folders:
        for part in folder.glob(f".*{_PART}"):
            if not _alive(part.name):
                _discard(str(part))
                removed += 1
    return removed


def _alive(part: str) -> bool:
    pid = part.removesuffix(_PART).rpartition(".")[2].partition("-")[0]
    if not pid.isdigit():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
