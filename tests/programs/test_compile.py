"""Whole programs, converted and built for gfx90a against Debian's HIP headers, host and device."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hipport.api import Mode, Options, convert_paths

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"
BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """Compile one source to an object with code for host and device, down to machine code."""
    command = [
        "clang++-19", "-x", "hip", "--offload-arch=gfx90a", "-O2", "-std=c++17", "-c", "-w",
        "--rocm-path=/usr", f"--rocm-device-lib-path={BITCODE}", "-D__HIP_PLATFORM_AMD__",
        str(source), "-o", str(out),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("program", sorted(p.name for p in PROGRAMS.glob("*.cu")))
def test_converted_programs_compile(program: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    shutil.copy(PROGRAMS / program, source)
    out = tmp_path / "out"
    convert_paths([source], Options(rocm="5.7"), mode=Mode.COPY, out=out)
    done = build(out / program, tmp_path / "a.o")
    assert done.returncode == 0, done.stderr
    renamed_only = build(source / program, tmp_path / "b.o")
    assert renamed_only.returncode != 0, "the original needs no conversion: no test"
