"""Compile HIP device code with the Debian packages `clang-19` and `rocm-device-libs`.

Only the tests, the benchmark and `hipport run` use this, and only until a toolchain
object is handed to them; the emulator itself reads code objects, whoever made them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hipport.emulator.build import cache_dir
from hipport.emulator.errors import EmulatorError

# The device library's number for a target: 9402 is gfx942, 11000 is gfx1100.
_ISA_VERSION = {"gfx942": 9402, "gfx950": 9500, "gfx1100": 11000, "gfx1201": 12001}
_BITCODE = (
    Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"),
    Path("/usr/lib/aarch64-linux-gnu/amdgcn/bitcode"),
    Path("/usr/amdgcn/bitcode"),
)


def find_clang() -> str:
    """Path of the newest `clang` with an AMDGPU back end that Debian installs."""
    for name in ("clang-19", "clang-18", "clang-17", "clang"):
        if path := shutil.which(name):
            return path
    raise EmulatorError("no clang found; install clang-19 and rocm-device-libs")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise EmulatorError(f"{command[0]} failed:\n{done.stderr.strip()}")


def _bitcode_dir(clang: str, target: str) -> Path:
    for source in _BITCODE:
        if source.is_dir():
            break
    else:
        raise EmulatorError("no AMD device libraries found; install rocm-device-libs")
    number = target.removeprefix("gfx")
    if (source / f"oclc_isa_version_{number}.bc").exists():
        return source
    overlay = cache_dir() / "bitcode" / number
    made = overlay / f"oclc_isa_version_{number}.bc"
    if made.exists():
        return overlay
    overlay.mkdir(parents=True, exist_ok=True)
    for file in source.glob("*.bc"):
        link = overlay / file.name
        if not link.exists():
            link.symlink_to(file)
    text = overlay / "isa.c"
    text.write_text(
        "extern const __attribute__((address_space(4))) unsigned __oclc_ISA_version;\n"
        "const __attribute__((address_space(4))) unsigned __oclc_ISA_version = "
        f"{_ISA_VERSION[target]};\n"
    )
    partial = overlay / f".{os.getpid()}.bc"
    _run(
        [
            clang,
            "-x",
            "c",
            "-target",
            "amdgcn-amd-amdhsa",
            "-c",
            "-emit-llvm",
            "-nogpulib",
            "-Xclang",
            "-mcode-object-version=none",
            str(text),
            "-o",
            str(partial),
        ]
    )
    partial.replace(made)
    return overlay


def compile_device(
    source: str | Path, target: str, options: Sequence[str] = ("-O2",), *, lines: bool = True
) -> bytes:
    """The ELF code object of HIP `source` (text, or a path) for `target`.

    Results are cached by content. `lines` adds line tables, so that faults name source lines.
    Raises EmulatorError with the compiler's own words.
    """
    clang = find_clang()
    is_file = isinstance(source, Path)
    text = source.read_bytes() if isinstance(source, Path) else source.encode()
    key = hashlib.sha256(
        b"\0".join(
            [
                clang.encode(),
                target.encode(),
                *[o.encode() for o in options],
                str(lines).encode(),
                text,
                str(source).encode() if is_file else b"",
            ]
        )
    ).hexdigest()[:32]
    folder = cache_dir() / "device"
    out = folder / f"{key}.co"
    if out.exists():
        return out.read_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(source, Path):
        file = source
    else:
        file = folder / f"{key}.hip"
        # Another process may be compiling the same text: never leave it half written.
        fresh = folder / f".{key}.{os.getpid()}.hip"
        fresh.write_bytes(text)
        fresh.replace(file)
    partial = folder / f".{key}.{os.getpid()}.co"
    command = [
        clang,
        "-x",
        "hip",
        f"--offload-arch={target}",
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "--rocm-path=/usr",
        "-std=c++17",
        f"--rocm-device-lib-path={_bitcode_dir(clang, target)}",
        "-D__HIP_PLATFORM_AMD__",
        *(["-gline-tables-only"] if lines else []),
        *options,
        str(file),
        "-o",
        str(partial),
    ]
    _run(command)
    partial.replace(out)
    return out.read_bytes()
