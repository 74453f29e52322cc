"""Load code objects and launch their kernels."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import mmap
import os
import re
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hipport.emulator import codeobject
from hipport.emulator.build import build, cache_dir
from hipport.emulator.build import load as load_library
from hipport.emulator.codeobject import Argument, CodeObject, KernelInfo, Symbol, base_name
from hipport.emulator.errors import EmulatorError, UnsupportedInstruction
from hipport.emulator.lines import LineTable
from hipport.emulator.watch import KINDS, Fault, KernelFault, Watch

Array = np.ndarray[Any, Any]

_GAP = 1 << 16  # distance between buffers, so that an overrun meets no neighbour
_PRIVATE_HI, _SHARED_HI = 0x20000, 0x10000


@dataclass(frozen=True, slots=True)
class Ptr:
    """A pointer into an array, `offset` bytes from its start."""

    array: Array
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure passed by value: its bytes, and pointers to put into them by byte offset."""

    data: bytes
    pointers: Mapping[int, Array | Ptr | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Uninitialised:
    """Marks a buffer whose present content the kernel must not read (see Watch.uninitialised)."""

    array: Array


def uninitialised(array: Array) -> Uninitialised:
    """Pass `array` as an output that holds nothing yet."""
    return Uninitialised(array)


@dataclass(frozen=True, slots=True)
class LaunchResult:
    """`instructions`: machine instructions executed, summed over wavefronts; `seconds`: run time
    of the kernel alone; `compiled`: whether translation or compilation was needed."""

    instructions: int
    seconds: float
    compiled: bool


class _Region(ctypes.Structure):
    _fields_ = (
        ("lo", ctypes.c_uint64),
        ("hi", ctypes.c_uint64),
        ("flags", ctypes.c_uint32),
        ("id", ctypes.c_uint32),
        ("init", ctypes.c_void_p),
        ("shadow", ctypes.c_void_p),
    )


class _Ctx(ctypes.Structure):
    _fields_ = (
        ("groups", ctypes.c_uint64),
        ("next", ctypes.c_uint64),
        ("budget", ctypes.c_uint64),
        ("slice", ctypes.c_uint64),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("threads", ctypes.c_uint32),
        ("waves", ctypes.c_uint32),
        ("lds_size", ctypes.c_uint32),
        ("scratch_size", ctypes.c_uint32),
        ("user", ctypes.c_uint32 * 64),
        ("user_count", ctypes.c_uint32),
        ("id_enable", ctypes.c_uint32),
        ("id_mode", ctypes.c_uint32),
        ("mode", ctypes.c_uint32),
        ("stop", ctypes.c_uint32),
        ("nregions", ctypes.c_uint32),
        ("deterministic", ctypes.c_uint32),
        ("regions", ctypes.POINTER(_Region)),
        ("image", ctypes.c_uint64),
        ("instructions", ctypes.c_uint64),
        ("resident_limit", ctypes.c_uint32),
        ("pad", ctypes.c_uint32),
    )


class _Fault(ctypes.Structure):
    _fields_ = (
        ("kind", ctypes.c_uint32),
        ("site", ctypes.c_uint32),
        ("lane", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("wave", ctypes.c_uint32),
        ("write", ctypes.c_uint32),
        ("addr", ctypes.c_uint64),
        ("group", ctypes.c_uint64),
        ("other", ctypes.c_uint64),
        ("other_site", ctypes.c_uint64),
    )


class _WorkerHead(ctypes.Structure):
    _fields_ = (("c", ctypes.c_void_p), ("g", ctypes.c_void_p), ("fault", _Fault))


@dataclass(frozen=True, slots=True)
class _Built:
    library: ctypes.CDLL
    sites: tuple[tuple[int, str], ...]


@functools.lru_cache(maxsize=1)
def _own_digest() -> bytes:
    """Changes whenever the translator does, so that no stale translation is reused."""
    total = hashlib.sha256()
    for file in sorted(Path(__file__).parent.iterdir()):
        if file.suffix in (".py", ".h"):
            total.update(file.read_bytes())
    return total.digest()


class Symbols(Mapping[str, "Variable"]):
    """The variables of a module by mangled, demangled or plain name."""

    def __init__(self, variables: Sequence[Variable]) -> None:
        self._all = tuple(variables)
        self._names: dict[str, list[Variable]] = {}
        for v in self._all:
            for name in {v.name, v.symbol.demangled, base_name(v.symbol.demangled)}:
                self._names.setdefault(name, []).append(v)

    def __getitem__(self, name: str) -> Variable:
        found = self._names.get(name, [])
        if len(found) != 1:
            known = ", ".join(sorted(v.symbol.demangled for v in self._all)) or "none"
            what = "ambiguous" if found else "no such"
            raise KeyError(f"{what} variable {name!r}; there are: {known}")
        return found[0]

    def __iter__(self) -> Iterator[str]:
        return (v.name for v in self._all)

    def __len__(self) -> int:
        return len(self._all)


@dataclass(frozen=True, slots=True)
class Variable:
    """A `__device__` or `__constant__` variable in the module's memory."""

    name: str
    size: int
    symbol: Symbol
    _memory: Array

    def read(self, dtype: Any = np.uint8) -> Array:
        """A copy of the value as a one-dimensional array of `dtype`."""
        found: Array = self._memory.view(dtype).copy()
        return found

    def write(self, value: Any) -> None:
        """Replace the value: bytes or an array of exactly the variable's size (arrays may be
        shorter; the rest stays). Raises EmulatorError if it does not fit."""
        raw = (
            value
            if isinstance(value, (bytes, bytearray))
            else np.ascontiguousarray(value).tobytes()
        )
        if len(raw) > self.size:
            raise EmulatorError(f"{len(raw)} bytes do not fit variable {self.name} of {self.size}")
        self._memory[: len(raw)] = np.frombuffer(raw, np.uint8)


class Kernels(Mapping[str, "Kernel"]):
    """The kernels of a module by mangled, demangled or plain name."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self._all = tuple(kernels)
        self._names: dict[str, list[Kernel]] = {}
        for k in self._all:
            plain = base_name(k.info.demangled)
            names = {k.name, k.info.demangled, plain, plain.split("<")[0].split("::")[-1]}
            for name in names:
                self._names.setdefault(name, []).append(k)

    def __getitem__(self, name: str) -> Kernel:
        found = self._names.get(name, [])
        if len(found) != 1:
            known = "; ".join(k.info.demangled for k in self._all) or "none"
            what = "ambiguous" if found else "no such"
            raise KeyError(f"{what} kernel {name!r}; there are: {known}")
        return found[0]

    def __iter__(self) -> Iterator[str]:
        return (k.name for k in self._all)

    def __len__(self) -> int:
        return len(self._all)


class Module:
    """A loaded code object: its kernels, variables and memory."""

    def __init__(self, code: CodeObject) -> None:
        self.code = code
        self.target = code.target
        size = max(code.image_size, 1)
        self._map = mmap.mmap(-1, (size + 4095) // 4096 * 4096)
        self._memory: Array = np.frombuffer(self._map, np.uint8)
        self.base = int(self._memory.ctypes.data)
        for s in code.segments:
            data = s.data[: s.size]
            self._memory[s.address : s.address + len(data)] = np.frombuffer(data, np.uint8)
        for offset, size, value in code.relocations:
            if size == 8:
                struct.pack_into("<Q", self._map, offset, self.base + value)
            else:
                whole = self.base + value
                word = whole & 0xFFFFFFFF if size == 4 else whole >> 32
                struct.pack_into("<I", self._map, offset, word)
        self.kernels: Kernels = Kernels([Kernel(self, k) for k in code.kernels])
        self.symbols: Symbols = Symbols(
            [
                Variable(s.name, s.size, s, self._memory[s.address : s.address + s.size])
                for s in code.symbols
                if s.kind == "object"
                and s.size
                and not s.name.endswith(".kd")
                and not s.name.startswith("__hip_cuid_")
            ]
        )
        self.digest = hashlib.sha256(code.data).digest()

    @functools.cached_property
    def lines(self) -> LineTable:
        """Source lines of the module's code."""
        return LineTable(self.code.data)

    def _image_regions(self) -> list[tuple[int, int, bool, str]]:
        """The image's parts as (low, high, writable, name), without overlap."""
        parts: list[tuple[int, int, bool, str]] = []
        named = sorted(
            (s.address, s.address + s.size, s)
            for s in self.code.symbols
            if s.kind == "object" and s.size
        )
        for segment in self.code.segments:
            at, end = segment.address, segment.address + segment.size
            for low, high, symbol in named:
                if at <= low and high <= end:
                    if low > at:
                        parts.append((at, low, segment.writable, "code object data"))
                    parts.append(
                        (low, high, symbol.writable and segment.writable, symbol.demangled)
                    )
                    at = high
            if at < end:
                parts.append((at, end, segment.writable, "code object data"))
        return [(self.base + a, self.base + b, w, n) for a, b, w, n in parts]


class _Arena:
    """The device memory of one launch: copies of the caller's arrays, far apart."""

    def __init__(self) -> None:
        self.spans: list[list[Any]] = []  # [host low, host high, offset in arena]
        self.views: list[tuple[str, Array, bool]] = []

    def add(self, name: str, array: Array, fresh: bool) -> None:
        if not isinstance(array, np.ndarray):
            raise EmulatorError(
                f"argument {name}: expected a NumPy array, got {type(array).__name__}"
            )
        if not array.flags.c_contiguous and not array.flags.f_contiguous:
            raise EmulatorError(f"argument {name}: the array must be contiguous")
        if array.dtype.hasobject:
            raise EmulatorError(f"argument {name}: arrays of Python objects have no device form")
        self.views.append((name, array, fresh))

    def layout(self, extra: int) -> int:
        spans = sorted(
            [int(a.ctypes.data), int(a.ctypes.data) + max(a.nbytes, 1)] for _, a, _ in self.views
        )
        merged: list[list[int]] = []
        for low, high in spans:
            if merged and low < merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        at = _GAP
        self.spans = []
        for low, high in merged:
            # The same offset within 256 bytes as on the host keeps alignment as the caller has it.
            at += low % 256
            self.spans.append([low, high, at])
            at = (at + high - low + 2 * _GAP - 1) // _GAP * _GAP
        self.extra = at
        self.size = at + extra + _GAP
        self.map = mmap.mmap(-1, (self.size + 4095) // 4096 * 4096)
        self.memory: Array = np.frombuffer(self.map, np.uint8)
        self.base = int(self.memory.ctypes.data)
        return self.base

    def address(self, array: Array) -> int:
        low = int(array.ctypes.data)
        for a, b, offset in self.spans:
            if a <= low < b:
                return int(self.base + offset + low - a)
        raise EmulatorError("array is not part of the launch")

    def copy_in(self) -> None:
        for _, array, _ in self.views:
            if array.nbytes:
                at = self.address(array) - self.base
                self.memory[at : at + array.nbytes] = _flat(array)

    def copy_out(self) -> None:
        for _, array, _ in self.views:
            if array.nbytes and array.flags.writeable:
                at = self.address(array) - self.base
                _flat(array)[:] = self.memory[at : at + array.nbytes]


def _flat(array: Array) -> Array:
    order = array if array.flags.c_contiguous else array.T
    return order.reshape(-1).view(np.uint8)


def _three(value: int | Sequence[int], what: str) -> tuple[int, int, int]:
    values = [int(value)] if isinstance(value, (int, np.integer)) else [int(v) for v in value]
    if not 1 <= len(values) <= 3 or any(v < 1 for v in values):
        raise EmulatorError(f"{what} must be one to three positive numbers, got {value!r}")
    values += [1] * (3 - len(values))
    return values[0], values[1], values[2]


_PARAMETER = {
    "int": "<i4",
    "unsigned int": "<u4",
    "float": "<f4",
    "double": "<f8",
    "long": "<i8",
    "unsigned long": "<u8",
    "long long": "<i8",
    "unsigned long long": "<u8",
    "short": "<i2",
    "unsigned short": "<u2",
    "char": "<i1",
    "signed char": "<i1",
    "unsigned char": "<u1",
    "bool": "<u1",
    "_Float16": "<f2",
    "__half": "<f2",
}


def parameter_types(demangled: str) -> list[str] | None:
    """The parameter types in a demangled signature, or None for a name without one.

    >>> parameter_types("f(float const*, int)")
    ['float const*', 'int']
    """
    start = len(demangled)
    depth = 0
    if not demangled.endswith(")"):
        return None
    for at in range(len(demangled) - 1, -1, -1):
        if demangled[at] == ")":
            depth += 1
        elif demangled[at] == "(":
            depth -= 1
            if depth == 0:
                start = at
                break
    inner = demangled[start + 1 : -1]
    parts: list[str] = []
    depth = 0
    word = ""
    for char in inner:
        if char in "<([":
            depth += 1
        elif char in ">)]":
            depth -= 1
        if char == "," and depth == 0:
            parts.append(word.strip())
            word = ""
        else:
            word += char
    if word.strip():
        parts.append(word.strip())
    return parts


def scalar_bytes(value: Any, size: int, name: str, declared: str | None) -> bytes:
    """The bytes of a scalar argument of `size` bytes; `declared` is its C++ type if known."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        if len(raw) != size:
            raise EmulatorError(f"argument {name}: {len(raw)} bytes given, the kernel takes {size}")
        return raw
    if isinstance(value, ctypes.Structure):
        return scalar_bytes(bytes(value), size, name, declared)
    if isinstance(value, (np.generic, np.ndarray)):
        raw = value.tobytes()
        if len(raw) == size:
            if (
                declared in _PARAMETER
                and np.dtype(_PARAMETER[declared]).kind == "f"
                and (value.dtype.kind in "iub")
            ):
                raise EmulatorError(
                    f"argument {name}: the kernel takes {declared}, got {value.dtype}"
                )
            return raw
        if value.size != 1 or value.dtype.kind not in "iufb":
            raise EmulatorError(f"argument {name}: {len(raw)} bytes given, the kernel takes {size}")
        value = value.item()
    if isinstance(value, bool):
        value = int(value)
    if not isinstance(value, (int, float)):
        raise EmulatorError(f"argument {name}: cannot pass a {type(value).__name__} by value")
    dtype = np.dtype(_PARAMETER[declared]) if declared in _PARAMETER else None
    if dtype is not None and dtype.itemsize == size:
        if dtype.kind == "f":
            return np.array(value, dtype).tobytes()
        if isinstance(value, float) and not value.is_integer():
            raise EmulatorError(f"argument {name}: the kernel takes {declared}, got {value}")
        value = int(value)
    if isinstance(value, float):
        if size not in (2, 4, 8):
            raise EmulatorError(f"argument {name}: a float does not fit {size} bytes")
        return np.array(value, f"<f{size}").tobytes()
    if size not in (1, 2, 4, 8):
        raise EmulatorError(f"argument {name}: an integer does not fit a structure of {size} bytes")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise EmulatorError(f"argument {name}: {value} does not fit {size} bytes")
    return int(value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


class Kernel:
    """A kernel of a module; `launch` runs it."""

    def __init__(self, module: Module, info: KernelInfo) -> None:
        self.module = module
        self.info = info
        self.name = info.name
        self.demangled = info.demangled
        self.arguments: tuple[Argument, ...] = info.explicit
        self.lds = info.lds
        self.scratch = info.scratch
        self.wave_size = info.wave_size
        self._built: dict[tuple[tuple[str, int], ...], _Built] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.demangled} for {self.module.target}>"

    # ------------------------------------------------------------ building

    def prepare(self, watch: Watch | None = None) -> bool:
        """Translate and compile if that has not been done. True if work was needed.

        Raises UnsupportedInstruction, or EmulatorError if there is no C compiler.
        """
        flags = (watch or Watch()).flags
        key = tuple(sorted(flags.items()))
        if key in self._built:
            return False
        digest = hashlib.sha256(
            b"\0".join([_own_digest(), self.module.digest, self.name.encode(), repr(key).encode()])
        ).hexdigest()[:32]
        note = cache_dir() / "emulator" / f"{digest}.json"
        try:
            kept = json.loads(note.read_text())
            library = Path(kept["library"])
            if not library.is_absolute():
                library = note.parent / library
            if library.exists():
                self._built[key] = _Built(
                    load_library(library), tuple((int(a), str(n)) for a, n in kept["sites"])
                )
                return False
        except (OSError, ValueError, KeyError):
            pass
        from hipport.emulator.translate import translate

        try:
            done = translate(self.module.code, self.info)
        except UnsupportedInstruction as error:
            line = self.module.lines.find(error.address)
            reason = str(error).partition("is not supported: ")[2]
            raise UnsupportedInstruction(
                error.name, error.address, self.demangled, line, reason
            ) from None
        text = "\n".join(f"#define {name} {value}" for name, value in flags.items())
        library = build(done.source.replace("%FLAGS%", text), done.flags)
        note.parent.mkdir(parents=True, exist_ok=True)
        partial = note.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text(json.dumps({"library": library.name, "sites": done.sites}))
        partial.replace(note)
        self._built[key] = _Built(load_library(library), done.sites)
        return True

    # ------------------------------------------------------------ launching

    def launch(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        lds: int = 0,
        watch: Watch | None = None,
        *,
        names: Sequence[str] | None = None,
        threads: int | None = None,
        deterministic: bool = False,
    ) -> LaunchResult:
        """Run the kernel on `grid` blocks of `block` threads; arrays change in place.

        `args`: one per kernel argument: a NumPy array (a buffer, copied to the device and back), a
        `Ptr` into one, None (a null pointer), `uninitialised(array)`, a Python or NumPy scalar,
        bytes or `Struct` for a structure. `lds`: bytes of dynamic LDS. `names`: argument names for
        faults. `threads`: host threads (default: one a core). `deterministic`: blocks one after the
        other in order, so that racing kernels repeat.

        Raises KernelFault when a check fails (arrays then hold what was written before),
        UnsupportedInstruction before anything runs, EmulatorError for arguments that do not fit.
        """
        watch = watch or Watch()
        info = self.info
        grid3, block3 = _three(grid, "grid"), _three(block, "block")
        count = block3[0] * block3[1] * block3[2]
        if count > max(info.max_block, 1) or count > 1024:
            raise EmulatorError(
                f"kernel {self.demangled}: block of {count} threads, at most "
                f"{min(info.max_block, 1024)} are allowed"
            )
        if info.required_block and block3 != info.required_block:
            raise EmulatorError(
                f"kernel {self.demangled} requires blocks of {info.required_block}, got {block3}"
            )
        if len(args) != len(self.arguments):
            raise EmulatorError(
                f"kernel {self.demangled} takes {len(self.arguments)} arguments, got {len(args)}"
            )
        if info.lds + lds > 65536:
            raise EmulatorError(
                f"kernel {self.demangled}: {info.lds + lds} bytes of LDS, a work-group has 65536"
            )
        compiled = self.prepare(watch)
        built = self._built[tuple(sorted(watch.flags.items()))]

        types = parameter_types(self.demangled)
        if types is not None and len(types) != len(self.arguments):
            types = None
        labels = [a.name for a in self.arguments]
        if names is not None:
            labels = [*names, *labels[len(names) :]]
        arena = _Arena()
        for a, value, label in zip(self.arguments, args, labels, strict=True):
            self._collect(arena, a, value, label)
        extra = (info.kernarg_size + 255) // 256 * 256 + 4 * _GAP
        arena.layout(extra)
        arena.copy_in()

        kernarg = arena.extra
        packet = arena.extra + (info.kernarg_size + 255) // 256 * 256 + _GAP
        for i, (a, value, label) in enumerate(zip(self.arguments, args, labels, strict=True)):
            raw = self._encode(arena, a, value, label, types[i] if types else None)
            arena.memory[kernarg + a.offset : kernarg + a.offset + len(raw)] = np.frombuffer(
                raw, np.uint8
            )
        for a in info.arguments:
            if a.hidden:
                raw = _hidden(a, grid3, block3, lds)
                arena.memory[kernarg + a.offset : kernarg + a.offset + len(raw)] = np.frombuffer(
                    raw, np.uint8
                )
        struct.pack_into(
            "<HHHHHHIIIIIQQQQ",
            arena.map,
            packet,
            0x1502,
            3,
            *block3,
            0,
            *(g * b for g, b in zip(grid3, block3, strict=True)),
            info.scratch,
            info.lds + lds,
            0,
            arena.base + kernarg,
            0,
            0,
        )

        regions = self._regions(arena, kernarg, packet, watch)
        ctx = self._context(arena, grid3, block3, lds, watch, regions, kernarg, packet)
        if watch.races:
            shadows = self._shadow(ctx, regions, int(built.library.hp_shadow_size()))
            ctx._shadows = shadows
        workers = 1 if deterministic or watch.races else threads or len(os.sched_getaffinity(0))
        workers = max(1, min(workers, ctx.groups))
        size = int(built.library.hp_worker_size())
        buffers = [ctypes.create_string_buffer(size) for _ in range(workers)]
        started = time.perf_counter()
        run = built.library.hp_run
        if workers == 1:
            run(ctypes.byref(ctx), buffers[0])
        else:
            pool = [threading.Thread(target=run, args=(ctypes.byref(ctx), b)) for b in buffers]
            for t in pool:
                t.start()
            for t in pool:
                t.join()
        seconds = time.perf_counter() - started
        arena.copy_out()
        faults = [_WorkerHead.from_buffer(b).fault for b in buffers]
        found = [f for f in faults if f.kind]
        if found:
            first = min(found, key=lambda f: f.group)
            raise KernelFault(self._explain(first, built, regions, arena, grid3, block3))
        return LaunchResult(int(ctx.instructions), seconds, compiled)

    def _collect(self, arena: _Arena, a: Argument, value: Any, label: str) -> None:
        if isinstance(value, Struct):
            for offset, target in value.pointers.items():
                if target is not None:
                    inner = target.array if isinstance(target, Ptr) else target
                    arena.add(f"{label}+{offset}", inner, False)
        elif isinstance(value, Uninitialised):
            arena.add(label, value.array, True)
        elif isinstance(value, Ptr):
            arena.add(label, value.array, False)
        elif a.kind == "global_buffer" and isinstance(value, np.ndarray):
            arena.add(label, value, False)

    def _encode(
        self, arena: _Arena, a: Argument, value: Any, label: str, declared: str | None
    ) -> bytes:
        def pointer(target: Any) -> int:
            if target is None:
                return 0
            if isinstance(target, Uninitialised):
                return arena.address(target.array)
            if isinstance(target, Ptr):
                return arena.address(target.array) + target.offset
            return arena.address(target)

        if isinstance(value, Struct):
            raw = bytearray(value.data)
            if len(raw) != a.size:
                raise EmulatorError(
                    f"argument {label}: {len(raw)} bytes given, the kernel takes {a.size}"
                )
            for offset, target in value.pointers.items():
                struct.pack_into("<Q", raw, offset, pointer(target))
            return bytes(raw)
        if a.kind == "global_buffer":
            if value is None or isinstance(value, (Ptr, Uninitialised, np.ndarray)):
                return pointer(value).to_bytes(8, "little")
            if isinstance(value, int) and value == 0:
                return bytes(8)
            raise EmulatorError(
                f"argument {label} is a pointer: pass a NumPy array, not {type(value).__name__}"
            )
        if isinstance(value, (Ptr, Uninitialised)):
            if a.size != 8:
                raise EmulatorError(f"argument {label} is not a pointer")
            return pointer(value).to_bytes(8, "little")
        if a.kind == "dynamic_shared_pointer":
            raise EmulatorError(f"argument {label}: dynamic LDS pointers are not supported")
        return scalar_bytes(value, a.size, label, declared)

    def _regions(self, arena: _Arena, kernarg: int, packet: int, watch: Watch) -> list[Any]:
        """(low, high, writable, name, dtype size, init shadow or None) of all device memory."""
        found: list[list[Any]] = []
        for low, high, offset in arena.spans:
            parts = [
                (n, v, f)
                for n, v, f in arena.views
                if low <= int(v.ctypes.data) and int(v.ctypes.data) + v.nbytes <= high
            ]
            label = " / ".join(dict.fromkeys(n for n, _, _ in parts))
            writable = any(v.flags.writeable for _, v, _ in parts)
            used = max((v.nbytes for _, v, _ in parts), default=0)
            end = arena.base + offset + (high - low if used else 0)
            init = None
            if watch.uninitialised and any(f for _, _, f in parts):
                init = np.ones(high - low, np.uint8)
                for _, v, fresh in parts:
                    if fresh:
                        at = int(v.ctypes.data) - low
                        init[at : at + v.nbytes] = 0
            if end > arena.base + offset:
                found.append(
                    [arena.base + offset, end, writable, label, parts[0][1].dtype.itemsize, init]
                )
        found.append(
            [
                arena.base + kernarg,
                arena.base + kernarg + (self.info.kernarg_size + 255) // 256 * 256,
                False,
                "kernel arguments",
                1,
                None,
            ]
        )
        found.append(
            [arena.base + packet, arena.base + packet + 64, False, "dispatch packet", 1, None]
        )
        for a, b, w, n in self.module._image_regions():
            found.append([a, b, w, n, 1, None])
        found.sort(key=lambda r: r[0])
        return found

    def _context(
        self,
        arena: _Arena,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        lds: int,
        watch: Watch,
        regions: list[Any],
        kernarg: int,
        packet: int,
    ) -> _Ctx:
        info = self.info
        table = (_Region * len(regions))()
        for i, (low, high, writable, _, _, init) in enumerate(regions):
            table[i].lo, table[i].hi = low, high
            table[i].flags = int(writable)
            table[i].id = i
            table[i].init = init.ctypes.data if init is not None else None
        ctx = _Ctx()
        ctx.groups = grid[0] * grid[1] * grid[2]
        ctx.budget = watch.budget
        ctx.slice = 20000
        ctx.grid[:] = grid
        ctx.block[:] = block
        ctx.threads = block[0] * block[1] * block[2]
        ctx.waves = -(-ctx.threads // info.wave_size)
        ctx.lds_size = info.lds + lds
        ctx.scratch_size = info.scratch + (16384 if info.dynamic_stack else 0)
        user: list[int] = []
        for bit, words in enumerate(
            (
                [0, 1 << 31, 0xFFFFFFFF, 1 << 23],
                _pair(arena.base + packet),
                [0, 0],
                _pair(arena.base + kernarg),
                [0, 0],
                [0, 0],
                [info.scratch],
            )
        ):
            if info.properties >> bit & 1:
                user += words
        total = max(info.rsrc2 >> 1 & 31, len(user))
        user += [0] * (total - len(user))
        ctx.user[: len(user)] = user
        ctx.user_count = total
        ctx.id_enable = info.rsrc2 >> 7 & 15
        if info.rsrc2 & 1 and self.module.target == "gfx90a":
            ctx.id_enable |= 16
        ctx.id_mode = info.rsrc2 >> 11 & 3
        ctx.mode = (info.rsrc1 >> 12 & 0xFF) | (0x200 if info.rsrc1 >> 23 & 1 else 0)
        ctx.nregions = len(regions)
        ctx.regions = ctypes.cast(table, ctypes.POINTER(_Region))
        ctx.image = self.module.base
        per_group = ctx.waves * info.wave_size * (4 * 512 + ctx.scratch_size) + ctx.lds_size
        ctx.resident_limit = max(2, min(int(ctx.groups), (1 << 29) // max(per_group, 1)))
        ctx._keep = table
        return ctx

    def _shadow(self, ctx: _Ctx, regions: list[Any], size: int) -> list[Array]:
        """Race records for the buffers and writable variables of a launch."""
        total = sum(r[1] - r[0] for r in regions if r[2])
        if total > 64 << 20:
            raise EmulatorError(
                f"{total} bytes of writable buffers are too many for the race check (64 MiB)"
            )
        kept = []
        for i, (low, high, writable, _, _, _) in enumerate(regions):
            if writable:
                shadow = np.zeros((high - low) * size, np.uint8)
                kept.append(shadow)
                ctx.regions[i].shadow = shadow.ctypes.data
        return kept

    # ------------------------------------------------------------ faults

    def _explain(
        self,
        f: _Fault,
        built: _Built,
        regions: list[Any],
        arena: _Arena,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
    ) -> Fault:
        pc, instruction = built.sites[f.site] if f.site < len(built.sites) else (0, "?")
        group = int(f.group)
        where = (group % grid[0], group // grid[0] % grid[1], group // grid[0] // grid[1])
        linear = int(f.wave) * self.wave_size + int(f.lane)
        thread = (linear % block[0], linear // block[0] % block[1], linear // block[0] // block[1])
        kind = KINDS[f.kind]
        access = "write" if f.write & 1 and f.write != 3 else "atomic" if f.write == 3 else "read"
        address, size = int(f.addr), int(f.size)
        buffer: str | None = None
        index: int | None = None
        offset: int | None = None
        if kind in ("out-of-bounds", "read-only", "misaligned", "uninitialised", "race"):
            inside = [r for r in regions if r[0] <= address < r[1]]
            near = (
                inside
                or sorted(
                    regions, key=lambda r: r[0] - address if address < r[0] else address - r[1]
                )[:1]
            )
            if near:
                r = near[0]
                away = max(r[0] - address, address - r[1], 0)
                if inside or away < _GAP * 16:
                    buffer, offset = r[3], address - r[0]
                    index = offset // r[4]
        other: str | None = None
        if kind in ("race", "lds-race", "divergent-barrier") and f.other_site:
            pc2 = built.sites[f.other_site][0] if f.other_site < len(built.sites) else 0
            group2 = int(f.other) >> 16 if kind != "divergent-barrier" else group
            number = int(f.other) & 0xFFFF
            place = self.module.lines.find(pc2) or f"{pc2:#x}"
            other = (
                f"thread {number} of block "
                f"{(group2 % grid[0], group2 // grid[0] % grid[1], group2 // grid[0] // grid[1])}"
                f" at {place}"
            )
        hostcalls = any(a.kind == "hidden_hostcall_buffer" for a in self.info.arguments)
        message = _message(kind, access, address, size, buffer, index, regions, hostcalls)
        return Fault(
            kind,
            self.demangled,
            instruction,
            pc,
            self.module.lines.find(pc),
            where,
            thread,
            address,
            size,
            bool(f.write & 1),
            message,
            buffer,
            index,
            offset,
            other,
        )


def _message(
    kind: str,
    access: str,
    address: int,
    size: int,
    buffer: str | None,
    index: int | None,
    regions: list[Any],
    hostcalls: bool,
) -> str:
    if kind == "out-of-bounds":
        if address < 65536:
            note = (
                "; printf and assert need host calls, which are not available" if hostcalls else ""
            )
            return f"{access} of {size} bytes through a null pointer (address {address:#x}){note}"
        if buffer is None:
            return f"{access} of {size} bytes at {address:#x}, far from every buffer"
        region = next(r for r in regions if r[3] == buffer)
        elements = (region[1] - region[0]) // region[4]
        return (
            f"{access} of {size} bytes at index {index} of buffer {buffer}, which has {elements}"
            f" elements of {region[4]} bytes"
        )
    if kind == "read-only":
        return f"{access} of {size} bytes at index {index} of read-only buffer {buffer}"
    if kind == "lds-out-of-bounds":
        return f"{access} of {size} bytes at LDS offset {address}, beyond the block's LDS"
    if kind == "scratch-out-of-bounds":
        return f"{access} of {size} bytes at scratch offset {address}, beyond the thread's scratch"
    if kind == "misaligned":
        place = f"index {index} of buffer {buffer}" if buffer else f"address {address:#x}"
        return f"{access} of {size} bytes at {place} is not aligned"
    if kind == "uninitialised":
        return f"read of index {index} of buffer {buffer}, which nothing has written"
    if kind == "uninitialised-lds":
        return f"read of LDS offset {address}, which nothing has written"
    if kind == "divergent-barrier":
        return "not every thread of the block reaches this barrier"
    if kind == "inactive-lane":
        return f"reads lane {address}, which is not active"
    if kind == "budget":
        return f"{address} instructions executed by one wavefront; the loop may never end"
    if kind == "trap":
        return f"the kernel trapped (trap {address}), as by abort, assert or __builtin_trap"
    if kind == "bad-jump":
        return f"call or jump to {address:#x}, which is no known function"
    if kind == "mode":
        return "the kernel changes the floating-point mode or uses a swizzled buffer"
    if kind == "message":
        return (
            "the kernel sends a message to the host, as printf does; host calls are not available"
        )
    if kind in ("race", "lds-race"):
        what = f"index {index} of buffer {buffer}" if kind == "race" else f"LDS offset {address}"
        return f"{access} of {what} races with another thread"
    if kind == "deadlock":
        return "every thread waits"
    return kind


def _pair(value: int) -> list[int]:
    return [value & 0xFFFFFFFF, value >> 32]


def _hidden(
    a: Argument, grid: tuple[int, int, int], block: tuple[int, int, int], lds: int
) -> bytes:
    kind = a.kind.removeprefix("hidden_")
    axis = {"x": 0, "y": 1, "z": 2}
    value = 0
    if match := re.fullmatch(r"(block_count|group_size|remainder|global_offset)_([xyz])", kind):
        which = axis[match[2]]
        value = {"block_count": grid[which], "group_size": block[which]}.get(match[1], 0)
    elif kind == "grid_dims":
        value = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    elif kind == "dynamic_lds_size":
        value = lds
    elif kind == "private_base":
        value = _PRIVATE_HI
    elif kind == "shared_base":
        value = _SHARED_HI
    return value.to_bytes(a.size, "little")


def load(code_object: bytes | str | Path) -> Module:
    """Load an AMD code object (its bytes, or a path).

    Raises EmulatorError if it is not one, or not for gfx90a, gfx942 or gfx1100.
    """
    return Module(codeobject.read(code_object))
