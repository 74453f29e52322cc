"""Shared by tests: small trees and git repositories."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CUDA = b"#include <cuda_runtime.h>\nvoid f(void *p) { cudaFree(p); }\n"
HIP = b"#include <hip/hip_runtime.h>\nvoid f(void *p) { hipFree(p); }\n"


def put(root: Path, files: dict[str, bytes]) -> Path:
    """Write files below a folder."""
    for name, data in files.items():
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    return root


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder with an identity of its own and none of the user's settings."""
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.org",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.org",
    }
    command = ["git", "-c", "protocol.file.allow=always", *arguments]
    return subprocess.run(
        command, cwd=root, check=True, capture_output=True, text=True, env=environment
    ).stdout


def commit(root: Path, files: dict[str, bytes] | None = None) -> Path:
    """Make a repository of a folder, with everything in it committed (ignored files too)."""
    root.mkdir(parents=True, exist_ok=True)
    put(root, files or {})
    if not (root / ".git").exists():
        git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "state")
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    """Every regular file below a folder but git's own, by relative path."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(root).parts
    }
