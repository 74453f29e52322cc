"""YAML rules, kept parsed in the cache: reading YAML takes longer than all the rest of a start."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any


def cache_dir() -> Path:
    """``HIPPORT_CACHE_DIR``, else a folder below ``XDG_CACHE_HOME`` or ``~/.cache``."""
    root = os.environ.get("HIPPORT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME")
    if root:
        return Path(root)
    return (Path(base) if base else Path.home() / ".cache") / "hipport"


def read_yaml(file: Path, check: Callable[[Any], object] | None = None) -> Any:
    """What a YAML file holds, from the cache where its bytes have not changed.

    Args:
        file: the file.
        check: raises where the content is wrong; not called for what it once let pass.
    """
    content = file.read_bytes()
    digest = blake2b(content, digest_size=12).hexdigest()
    cache = cache_dir() / f"{file.stem}-{digest}.json"
    try:
        return json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        pass
    import yaml

    data = yaml.load(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if check is not None:
        check(data)
    _write(cache, data)
    return data


def _write(cache: Path, data: object) -> None:
    try:
        text = json.dumps(data)
        if json.loads(text) != data:
            # Keys that are no strings would come back as others.
            return
        cache.parent.mkdir(parents=True, exist_ok=True)
        part = cache.with_name(f"{cache.name}.{os.getpid()}")
        part.write_text(text)
        part.replace(cache)
    except (OSError, TypeError, ValueError):
        return
