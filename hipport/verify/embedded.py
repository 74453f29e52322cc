"""The embedded device toolchain: a compiler and HIP 7.1 from three PyPI wheels, with no root.

`ziglang` carries clang and lld with the AMDGPU back end, `clang-tidy` clang's own headers,
`triton` HIP's headers and the device libraries `ocml.bc` and `ockl.bc`. The wheels are fetched
with pip, compared with the digests below, and only the files that are needed are kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hipport.errors import UsageError
from hipport.rules.stored import cache_dir
from hipport.verify import overlay, targets

_LAYOUT = "1"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wheel:
    """One pinned wheel and what to keep of it.

    `parts` pairs a beginning of names inside the wheel with a folder of ours; a beginning that
    ends in no slash is one file.
    """

    package: str
    version: str
    platform: str
    python: str
    abi: str
    sha256: str
    parts: tuple[tuple[str, str], ...]


WHEELS = (
    Wheel(
        "ziglang", "0.17.1", "manylinux_2_12_x86_64", "3", "none",
        "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54",
        (("ziglang/zig", "bin/zig"), ("ziglang/LICENSE", "licences/zig")),
    ),
    Wheel(
        "clang-tidy", "22.1.8", "manylinux_2_27_x86_64", "3", "none",
        "1a3de07ba82d4403d8b692ae63a5520d4db5c606014c92c24bbcef9259057bf1",
        (("clang_tidy/data/lib/clang/22/include/", "resource/include/"),),
    ),
    Wheel(
        "triton", "3.6.0", "manylinux_2_27_x86_64", "311", "cp311",
        "e8e323d608e3a9bfcc2d9efcc90ceefb764a82b99dea12a86d643c72539ad5d3",
        (
            ("triton/backends/amd/include/", "include/"),
            ("triton/backends/amd/lib/ocml.bc", "bitcode/ocml.bc"),
            ("triton/backends/amd/lib/ockl.bc", "bitcode/ockl.bc"),
        ),
    ),
)  # fmt: skip
HIP_VERSION = "7.1"
CLANG_VERSION = "22.1.8"
MISSING = (
    "hip/hip_fp16.h",
    "hip/hip_bf16.h",
    "hip/hip_fp8.h",
    "hip/hip_cooperative_groups.h",
    "hip/hip_complex.h",
    "hip/hip_ext.h",
    "hip/hiprtc.h",
)
"""Headers of HIP that no pinned wheel carries."""


def root() -> Path:
    """Where the embedded toolchain is, or would be, installed."""
    digest = hashlib.sha256("".join([_LAYOUT, *(w.sha256 for w in WHEELS)]).encode()).hexdigest()
    return cache_dir() / "embedded" / digest[:16]


def installed() -> bool:
    """Whether it is ready for use."""
    return (root() / "ready").is_file()


def supported() -> bool:
    """Whether the pinned wheels run on this machine."""
    return sys.platform.startswith("linux") and os.uname().machine == "x86_64"


def _fetch(wheel: Wheel, folder: Path) -> Path:
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--quiet",
        "--disable-pip-version-check", "--dest", str(folder), "--platform", wheel.platform,
        "--python-version", wheel.python, "--implementation", "py" if wheel.abi == "none" else "cp",
        "--abi", wheel.abi, f"{wheel.package}=={wheel.version}",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = sorted(folder.glob(f"{wheel.package.replace('-', '_')}-*.whl"))
    if done.returncode or not found:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        why = errors[0] if errors else f"pip ended with status {done.returncode}"
        raise UsageError(f"cannot fetch {wheel.package} {wheel.version}: {why}")
    return found[0]


def _digest(file: Path) -> str:
    state = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _extract(wheel: Wheel, file: Path, to: Path) -> None:
    if _digest(file) != wheel.sha256:
        raise UsageError(
            f"{file.name} is not the pinned {wheel.package} {wheel.version} (its SHA-256 differs); "
            "nothing was installed"
        )
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            place = _place(wheel, info.filename)
            if place is None or info.is_dir():
                continue
            out = to / place
            out.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(info) as source, out.open("wb") as sink:
                shutil.copyfileobj(source, sink)


def _place(wheel: Wheel, name: str) -> str | None:
    for begin, place in wheel.parts:
        if name == begin:
            return place
        if begin.endswith("/") and name.startswith(begin) and ".." not in name:
            return place + name[len(begin) :]
    return None


def install(
    progress: Progress | None = None, wheels: Path | None = None, again: bool = False
) -> Path:
    """Set the embedded toolchain up; do nothing where it is there already.

    Args:
        progress: told in words what is being done.
        wheels: a folder that holds the pinned wheels already (no network is used then).
        again: set it up anew.

    Raises:
        UsageError: a wheel cannot be had or is not the pinned one, or the disk is full.
    """
    say = progress or (lambda _: None)
    place = root()
    if installed() and not again:
        return place
    if not supported():
        raise UsageError("the embedded toolchain is for Linux on x86-64 only")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent, prefix=".new-") as work:
            new = Path(work) / "tree"
            for wheel in WHEELS:
                say(f"{wheel.package} {wheel.version}")
                file = _given(wheel, wheels) if wheels else _fetch(wheel, Path(work))
                _extract(wheel, file, new)
                if wheels is None:
                    file.unlink()
            (new / "bin" / "zig").chmod(0o755)
            say("device library constants")
            modules = overlay.constants(list(targets.load().values()))
            overlay.write(clang_command(new), new / "bitcode", modules)
            (new / "ready").write_text(f"HIP {HIP_VERSION}\n")
            if place.exists():
                shutil.rmtree(place)
            new.replace(place)
    except OSError as error:
        raise UsageError(f"{error.filename or place}: {error.strerror}") from error
    return place


def _given(wheel: Wheel, folder: Path) -> Path:
    found = sorted(folder.glob(f"{wheel.package.replace('-', '_')}-{wheel.version}-*.whl"))
    if not found:
        raise UsageError(f"{folder} has no wheel of {wheel.package} {wheel.version}")
    return found[0]


def clang_command(place: Path) -> tuple[str, ...]:
    """The compiler below an installation."""
    return (str(place / "bin" / "zig"), "clang")


def lld_command(place: Path) -> tuple[str, ...]:
    """The linker below an installation."""
    return (str(place / "bin" / "zig"), "ld.lld")


def lacking(includes: Sequence[str]) -> list[str]:
    """Those headers of a list that the embedded toolchain does not carry."""
    return [name for name in includes if name in MISSING]
