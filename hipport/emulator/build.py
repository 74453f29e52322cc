"""Compile translated C with the compiler that is there, and keep the result by content."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from hipport.emulator.errors import EmulatorError


def cache_dir() -> Path:
    """Where compiled kernels are kept: $HIPPORT_CACHE_DIR, or ~/.cache/hipport."""
    if root := os.environ.get("HIPPORT_CACHE_DIR"):
        return Path(root)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "hipport"


@functools.lru_cache(maxsize=1)
def compiler() -> tuple[str, ...]:
    """The C compiler's command: $HIPPORT_CC, else clang or gcc, else the PyPI package ziglang."""
    if given := os.environ.get("HIPPORT_CC"):
        return tuple(shlex.split(given))
    for name in ("gcc", "clang", "clang-19", "clang-18", "clang-17", "cc"):
        if path := shutil.which(name):
            return (path,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    raise EmulatorError(
        "no C compiler found: install gcc or clang, or `pip install ziglang`, or set HIPPORT_CC"
    )


FLAGS = (
    "-O1",
    "-ftree-vectorize",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-march=native",
    "-std=gnu11",
    "-shared",
    "-fPIC",
    "-w",
    # Translated text must not lean on C's leniency: a missing argument is a wrong translation.
    "-Werror=int-conversion",
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
)


def build(source: str, extra: tuple[str, ...] = ()) -> Path:
    """Path of the shared object made from C `source`; compiled only if not cached.

    Raises EmulatorError with the compiler's words when it refuses.
    """
    command = compiler()
    flags = (*FLAGS, *extra)
    key = hashlib.sha256("\0".join([*command, *flags, _machine(), source]).encode()).hexdigest()[
        :32
    ]
    folder = cache_dir() / "emulator"
    out = folder / f"{key}.so"
    if out.exists():
        return out
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / f"{key}.{os.getpid()}.c"
    partial = folder / f".{key}.{os.getpid()}.so"
    text.write_text(source)
    done = subprocess.run(
        [*command, *flags, str(text), "-o", str(partial), "-lm"], capture_output=True, text=True
    )
    if done.returncode:
        raise EmulatorError(f"the C compiler refused {text}:\n{done.stderr[:4000]}")
    text.unlink()
    partial.replace(out)
    return out


@functools.lru_cache(maxsize=1)
def _machine() -> str:
    # -march=native code must not be reused on another CPU that shares the home directory.
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return line.strip()
    except OSError:
        pass
    return " ".join(os.uname())


def load(path: Path) -> ctypes.CDLL:
    """Load a built shared object."""
    return ctypes.CDLL(str(path))
