"""Which compilers for AMD targets are on this machine, and how each is called.

Looked for, in this order: a ROCm installation (``ROCM_PATH``, then ``/opt/rocm*``), a plain clang
with the distribution's HIP headers and device libraries, the distribution's ``hipcc``, and the
embedded toolchain (see `hipport.verify.embedded`).
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hipport.errors import UsageError
from hipport.rules.stored import cache_dir
from hipport.verify import embedded
from hipport.verify.overlay import bitcode_for
from hipport.verify.targets import Target, resolve

NEWEST_CLANG, OLDEST_CLANG = 23, 15
PROBE_SECONDS = 120.0


class CompileError(Exception):
    """The compiler refused, crashed or took too long; `text` holds its own words."""

    def __init__(self, message: str, text: str = "", crashed: bool = False) -> None:
        super().__init__(message)
        self.text = text
        self.crashed = crashed


@dataclass(frozen=True, slots=True)
class Toolchain:
    """One way to compile HIP.

    `kind` is ``rocm``, ``clang``, ``hipcc`` or ``embedded``. `clang` is the command that compiles
    HIP; `plain` is the clang below it, for bitcode and assembly. `hip_include` is the folder that
    holds ``hip/hip_runtime.h``, `bitcode` the folder of the device libraries.
    """

    kind: str
    clang: tuple[str, ...]
    plain: tuple[str, ...]
    clang_version: str
    hip_version: str
    hip_include: Path
    bitcode: Path
    root: Path
    resource: Path | None = None
    lld: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = field(default=())

    @property
    def name(self) -> str:
        """A few words that tell it from others."""
        return f"{self.kind} (HIP {self.hip_version}, clang {self.clang_version})"

    @property
    def steps(self) -> bool:
        """Whether linking is a call of its own."""
        return bool(self.lld)

    def env(self) -> dict[str, str]:
        """The environment of its commands."""
        out = {**os.environ, **dict(self.environment), "LC_ALL": "C"}
        # These two make clang drivers and hipcc add options nobody sees.
        for name in ("CCC_OVERRIDE_OPTIONS", "HIPCC_COMPILE_FLAGS_APPEND"):
            out.pop(name, None)
        return out

    def base(self) -> list[str]:
        """Arguments that every HIP compilation takes."""
        out = ["-x", "hip", "-D__HIP_PLATFORM_AMD__"]
        if self.kind == "embedded":
            assert self.resource is not None
            out += [
                "-nogpuinc", "-resource-dir", str(self.resource), "-isystem",
                str(self.hip_include), "-include", "__clang_hip_runtime_wrapper.h",
            ]  # fmt: skip
        else:
            out.append(f"--rocm-path={self.root}")
            if self.hip_include != Path("/usr/include"):
                out += ["-isystem", str(self.hip_include)]
        return out

    def device(self, target: Target) -> list[str]:
        """Arguments of a device pass for one target.

        Raises:
            UsageError: the device library's constant for the target cannot be made.
        """
        folder = bitcode_for(self.plain, self.clang_version, self.bitcode, target)
        return [
            *self.base(), f"--offload-arch={target.gfx}", "--cuda-device-only",
            f"--rocm-device-lib-path={folder}",
        ]  # fmt: skip

    def host(self, target: Target) -> list[str]:
        """Arguments of a host pass."""
        out = [*self.base(), f"--offload-arch={target.gfx}", "--cuda-host-only"]
        if self.kind == "embedded":
            out.append("--target=x86_64-linux-gnu")
        return out


@dataclass(frozen=True, slots=True)
class CompileResult:
    """A code object for one target.

    `path` lies in the cache; `log` is what the compiler said (warnings); `cached` tells that the
    compiler did not run.
    """

    path: Path
    target: str
    toolchain: str
    log: str = ""
    cached: bool = False

    @property
    def data(self) -> bytes:
        """The ELF file's bytes."""
        return self.path.read_bytes()


def _output(command: Sequence[str], env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=30, env=env,
            errors="replace", stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def clang_version(command: Sequence[str]) -> str:
    """The version that a clang names, empty where it is none."""
    match = re.search(r"clang version (\d+\.\d+\.\d+)", _output([*command, "--version"]))
    return match.group(1) if match else ""


def hip_version(include: Path) -> str:
    """Major and minor version in ``hip/hip_version.h``, empty where there is none."""
    try:
        text = (include / "hip" / "hip_version.h").read_text(errors="replace")
    except OSError:
        return ""
    found = dict(re.findall(r"#define HIP_VERSION_(MAJOR|MINOR)\s+(\d+)", text))
    return f"{found.get('MAJOR', '?')}.{found.get('MINOR', '?')}" if found else ""


def bitcode_folders(roots: Sequence[Path]) -> list[Path]:
    """Folders that hold the device libraries, below the given roots."""
    patterns = ("amdgcn/bitcode", "lib/*/amdgcn/bitcode", "lib/amdgcn/bitcode",
                "lib/llvm/lib/clang/*/amdgcn/bitcode", "llvm/amdgcn/bitcode",
                "lib/llvm/amdgcn/bitcode", "lib/clang/*/amdgcn/bitcode",
                "lib/llvm/lib/clang/*/lib/amdgcn/bitcode")  # fmt: skip
    found = [f for r in roots for p in patterns for f in sorted(r.glob(p), reverse=True)]
    return [folder for folder in dict.fromkeys(found) if (folder / "ocml.bc").is_file()]


def rocm_roots() -> list[Path]:
    """Folders that may be ROCm installations, the one that is asked for first."""
    named = os.environ.get("ROCM_PATH") or os.environ.get("HIP_PATH")
    found = [Path(named)] if named else []
    base = Path(os.environ.get("HIPPORT_ROCM_BASE", "/opt"))
    found += [base / "rocm", *sorted(base.glob("rocm[-_]*"), reverse=True)]
    out: dict[Path, Path] = {}
    for folder in found:
        if folder.is_dir():
            out.setdefault(folder.resolve(), folder)
    return list(out.values())


def _rocm(root: Path) -> Toolchain | None:
    for place in ("lib/llvm/bin", "llvm/bin", "bin"):
        clang = root / place / "clang++"
        if clang.is_file():
            break
    else:
        return None
    version, hip = clang_version([str(clang)]), hip_version(root / "include")
    folders = bitcode_folders([root])
    if not version or not hip or not folders:
        return None
    command = (str(clang),)
    return Toolchain(
        "rocm", command, command, version, hip, root / "include", folders[0], root
    )  # fmt: skip


def _system_root() -> Path:
    return Path(os.environ.get("HIPPORT_SYSTEM_ROOT", "/usr"))


def clangs() -> list[tuple[str, str]]:
    """Path and version of every clang++ on the search path that is new enough, newest first."""
    names = [f"clang++-{n}" for n in range(NEWEST_CLANG, OLDEST_CLANG - 1, -1)] + ["clang++"]
    out: dict[Path, tuple[str, str]] = {}
    for name in names:
        path = shutil.which(name)
        if path is None or Path(path).resolve() in out:
            continue
        version = clang_version([path])
        if version and int(version.split(".")[0]) >= OLDEST_CLANG:
            out[Path(path).resolve()] = (path, version)
    return sorted(out.values(), key=lambda c: -int(c[1].split(".")[0]))


def _system() -> list[Toolchain]:
    root = _system_root()
    include, folders = root / "include", bitcode_folders([root])
    hip = hip_version(include)
    if not hip or not folders:
        return []
    out = [
        Toolchain("clang", (path,), (path,), version, hip, include, folders[0], root)
        for path, version in clangs()
    ]
    hipcc = shutil.which("hipcc")
    if hipcc is not None:
        env = (("HIP_PLATFORM", "amd"),)
        version = clang_version([hipcc]) or _behind(hipcc)
        plain = next((p for p, v in clangs() if v == version), out[0].plain[0] if out else "")
        if version and plain:
            chain = Toolchain(
                "hipcc", (hipcc,), (plain,), version, hip, include, folders[0], root,
                environment=env,
            )  # fmt: skip
            out.append(chain)
    return out


def _behind(hipcc: str) -> str:
    """The version of the clang that a hipcc calls."""
    text = _output([hipcc, "--version"], {**os.environ, "HIP_PLATFORM": "amd"})
    match = re.search(r"clang version (\d+\.\d+\.\d+)", text)
    return match.group(1) if match else ""


def _embedded() -> Toolchain | None:
    if not embedded.installed():
        return None
    place = embedded.root()
    clang = embedded.clang_command(place)
    version = embedded.CLANG_VERSION
    return Toolchain(
        "embedded", clang, clang, version, embedded.HIP_VERSION, place / "include",
        place / "bitcode", place, place / "resource", embedded.lld_command(place),
    )  # fmt: skip


def find() -> list[Toolchain]:
    """Every usable toolchain, the preferred one first; nothing is installed for it."""
    out = [t for root in rocm_roots() if (t := _rocm(root)) is not None]
    out += _system()
    inside = _embedded()
    return [*out, inside] if inside is not None else out


@functools.lru_cache(maxsize=1)
def _found() -> tuple[Toolchain, ...]:
    return tuple(find())


def best(kind: str | None = None) -> Toolchain:
    """The preferred toolchain; ``HIPPORT_TOOLCHAIN`` or `kind` asks for a kind.

    Raises:
        UsageError: there is none; the message says what gets one.
    """
    wanted = kind or os.environ.get("HIPPORT_TOOLCHAIN") or ""
    found = [t for t in _found() if not wanted or t.kind == wanted]
    if found:
        return found[0]
    what = f"no toolchain of kind '{wanted}'" if wanted else "no compiler for AMD targets"
    raise UsageError(f"{what} found; 'hipport doctor --install' sets up the embedded one")


def run(command: Sequence[str], env: dict[str, str], timeout: float | None) -> tuple[int, str, str]:
    """Exit status, standard output and errors of a command, which ends with all its children.

    Raises:
        CompileError: it cannot be started or took too long.
    """
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
            stdin=subprocess.DEVNULL, env=env, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise CompileError(f"cannot run {command[0]}: {error.strerror}") from error
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        raise CompileError(f"the compiler took longer than {timeout:g} s") from None
    except BaseException:
        _end(process)
        raise
    return process.returncode, out, err


def _end(process: subprocess.Popen[str]) -> None:
    import contextlib
    import signal

    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


_CRASH = re.compile(
    r"PLEASE submit a bug report|Stack dump:|Assertion .* failed|LLVM ERROR:|"
    r"frontend command failed|killed by signal|Segmentation fault"
)


def failure(status: int, text: str) -> CompileError:
    """The error that an exit status other than 0 means."""
    if status < 0 or status > 128 or _CRASH.search(text):
        return CompileError("the compiler crashed", text, crashed=True)
    first = next((line for line in text.splitlines() if " error: " in line), "")
    return CompileError(first or f"the compiler ended with status {status}", text)


def compile_commands(
    toolchain: Toolchain, source: Path, target: Target, options: Sequence[str], out: Path
) -> list[list[str]]:
    """The calls that make a code object: one, or two where the driver cannot spawn a linker."""
    arguments = [*toolchain.device(target), *options, str(source), "-o"]
    if not toolchain.steps:
        # Without -c, hipcc adds inputs for a host link.
        return [[*toolchain.clang, "-c", *arguments, str(out), "--no-gpu-bundle-output"]]
    piece = out.with_suffix(".o")
    return [
        # -S keeps the driver from spawning a linker; the object keeps errors on source lines.
        [*toolchain.clang, "-S", "-Xclang", "-emit-obj", *arguments, str(piece)],
        [*toolchain.lld, "-shared", "--no-undefined", str(piece), "-o", str(out)],
    ]


def _dependencies(text: str) -> list[Path]:
    body = text.split(":", 1)[1] if ":" in text else ""
    words = re.split(r"(?<!\\)\s+", body.replace("\\\n", " "))
    return [Path(w.replace("\\ ", " ").replace("$$", "$")) for w in words if w]


def _fingerprint(files: Sequence[Path]) -> str:
    state = hashlib.sha256()
    for file in files:
        state.update(str(file).encode() + b"\0")
        try:
            state.update(hashlib.sha256(file.read_bytes()).digest())
        except OSError:
            state.update(b"gone")
    return state.hexdigest()


def compile_device(
    source: Path,
    target: str,
    toolchain: Toolchain | None = None,
    *,
    include_dirs: Sequence[Path] = (),
    defines: Sequence[str] = (),
    opt: str = "-O2",
    debug: bool = False,
    extra: Sequence[str] = (),
    timeout: float | None = 300.0,
) -> CompileResult:
    """Compile the device side of a HIP source to a code object for one target.

    Args:
        source: the file.
        target: a code object name, or one that a person knows.
        toolchain: how (default: `best`).
        include_dirs: folders for ``-I``.
        defines: ``NAME`` or ``NAME=VALUE``.
        opt: the optimisation level's option.
        debug: keep line tables and variables (``-g``), so that addresses name source lines.
        extra: further options.
        timeout: seconds a call may take.

    Results are kept by content under the cache folder, headers included: a file that an earlier
    compilation read and that changed since compiles anew.

    Raises:
        CompileError: the compiler refused, crashed or took too long.
        UsageError: no toolchain, no such target, or no such source.
    """
    chain = toolchain or best()
    try:
        goal = resolve(target)
    except ValueError as error:
        raise UsageError(str(error)) from error
    if not source.is_file():
        raise UsageError(f"{source}: no such file")
    options = [
        opt, "-std=c++17", *(["-g"] if debug else []), *(f"-I{d}" for d in include_dirs),
        *(f"-D{d}" for d in defines), *extra,
    ]  # fmt: skip
    key = hashlib.sha256(
        "\0".join(
            [chain.name, *chain.clang, goal.gfx, *options, str(source.resolve()),
             _fingerprint([source])]
        ).encode()
    ).hexdigest()[:32]  # fmt: skip
    folder = cache_dir() / "objects"
    out, known = folder / f"{key}.co", folder / f"{key}.deps"
    if out.is_file() and _fresh(known):
        return CompileResult(out, goal.gfx, chain.name, cached=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; set HIPPORT_CACHE_DIR") from error
    part = folder / f".{key}.{os.getpid()}.co"
    listing = part.with_suffix(".d")
    commands = compile_commands(chain, source, goal, [*options, "-MD", "-MF", str(listing)], part)
    log = ""
    try:
        for command in commands:
            status, _, text = run(command, chain.env(), timeout)
            log += text
            if status:
                raise failure(status, text)
        files = _dependencies(listing.read_text()) if listing.is_file() else [source]
        part.replace(out)
        write_text(known, _fingerprint(files) + "\n" + "\n".join(map(str, files)))
    finally:
        for file in folder.glob(f".{key}.{os.getpid()}.*"):
            file.unlink(missing_ok=True)
    return CompileResult(out, goal.gfx, chain.name, log)


def _fresh(known: Path) -> bool:
    try:
        digest, *files = known.read_text().splitlines()
    except (OSError, ValueError):
        return False
    return digest == _fingerprint([Path(f) for f in files])


def write_text(path: Path, text: str) -> None:
    """Write a whole file or none."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text)
    part.replace(path)


def with_resource(toolchain: Toolchain, folder: Path) -> Toolchain:
    """The same toolchain with another folder of compiler headers."""
    return replace(toolchain, resource=folder)
