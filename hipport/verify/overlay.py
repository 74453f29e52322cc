"""Device-library constants that an installation lacks, made beside links to those it has.

clang links small bitcode files that hold one constant each: which processor, whether denormals
are kept, and so on. Their names and symbols are those of ROCm's device libraries ("ROCm Device
Libraries", OCLC control constants).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hipport.errors import UsageError
from hipport.rules.stored import cache_dir
from hipport.verify.targets import Target

_SWITCHES = {
    "daz_opt": "daz_opt",
    "unsafe_math": "unsafe_math_opt",
    "finite_only": "finite_only_opt",
    "correctly_rounded_sqrt": "correctly_rounded_sqrt32",
    "wavefrontsize64": "wavefrontsize64",
}
_ABI = (400, 500, 600)


def isa_file(target: Target) -> str:
    """Name of the file that holds a target's number."""
    return f"oclc_isa_version_{target.gfx.removeprefix('gfx')}.bc"


def constants(targets: Sequence[Target]) -> dict[str, str]:
    """File name to LLVM IR for every constant that clang may ask for; empty modules too."""
    out = {"hip.bc": "", "opencl.bc": ""}
    for name, symbol in _SWITCHES.items():
        out[f"oclc_{name}_on.bc"] = _constant(f"__oclc_{symbol}", "i8", 1)
        out[f"oclc_{name}_off.bc"] = _constant(f"__oclc_{symbol}", "i8", 0)
    for version in _ABI:
        out[f"oclc_abi_version_{version}.bc"] = _constant("__oclc_ABI_version", "i32", version)
    for target in targets:
        out[isa_file(target)] = _constant("__oclc_ISA_version", "i32", target.isa)
    return out


def _constant(symbol: str, kind: str, value: int) -> str:
    size = 4 if kind == "i32" else 1
    return (
        f"@{symbol} = linkonce_odr protected local_unnamed_addr addrspace(4) "
        f"constant {kind} {value}, align {size}\n"
    )


def write(clang: Sequence[str], folder: Path, modules: Mapping[str, str]) -> None:
    """Compile LLVM IR texts into a folder.

    Raises:
        UsageError: the compiler refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in modules.items():
        made = folder / name
        if made.exists():
            continue
        source = folder / f".{name}.{os.getpid()}.ll"
        part = folder / f".{name}.{os.getpid()}.bc"
        source.write_text(f'target triple = "amdgcn-amd-amdhsa"\n{text}')
        done = subprocess.run(
            [*clang, "-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-w", "-c",
             "-emit-llvm", str(source), "-o", str(part)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        source.unlink(missing_ok=True)
        if done.returncode:
            part.unlink(missing_ok=True)
            raise UsageError(f"{clang[0]} cannot make {name}: {done.stderr.strip()[:300]}")
        part.replace(made)


def bitcode_for(clang: Sequence[str], version: str, installed: Path, target: Target) -> Path:
    """The installed folder, or one of links to it with the target's number added.

    Raises:
        UsageError: the compiler cannot make the missing file, or the cache cannot be written.
    """
    if (installed / isa_file(target)).exists():
        return installed
    stamp = [str(installed), version, target.gfx, str(target.isa)]
    for file in sorted(installed.glob("*.bc")):
        status = file.stat()
        stamp.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    key = hashlib.sha256("\0".join(stamp).encode()).hexdigest()[:16]
    overlay = cache_dir() / "overlay" / f"{target.gfx}-{key}"
    if (overlay / isa_file(target)).exists():
        return overlay
    part = overlay.with_name(f".{overlay.name}.{os.getpid()}")
    try:
        part.mkdir(parents=True, exist_ok=True)
        for file in installed.glob("*.bc"):
            (part / file.name).symlink_to(file)
        lacking = {n: t for n, t in constants([target]).items() if not (part / n).exists()}
        write(clang, part, lacking)
        try:
            part.replace(overlay)
        except OSError:
            # Another process was first; its folder is the same.
            if not (overlay / isa_file(target)).exists():
                raise
    except OSError as error:
        raise UsageError(f"{overlay}: {error.strerror}; set HIPPORT_CACHE_DIR") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return overlay
