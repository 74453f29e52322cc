"""Read an AMD code object: kernels, their arguments and registers, symbols, the memory image.

Field layouts are those of "User Guide for AMDGPU Backend" (LLVM): the kernel descriptor, the
NT_AMDGPU_METADATA note of code objects v3 to v6, and the EF_AMDGPU_MACH numbers.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack  # type: ignore[import-untyped,unused-ignore]
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from hipport.emulator.demangle import base_name, demangle
from hipport.emulator.errors import EmulatorError

# EF_AMDGPU_MACH_AMDGCN_*; the emulator's instruction sets are "cdna" and "rdna3".
_MACHINES = {
    0x03F: ("gfx90a", "cdna"),
    0x04C: ("gfx942", "cdna"),
    0x04F: ("gfx950", "cdna"),
    0x041: ("gfx1100", "rdna3"),
    0x046: ("gfx1101", "rdna3"),
    0x047: ("gfx1102", "rdna3"),
    0x044: ("gfx1103", "rdna3"),
}
_R_RELATIVE64 = 13
_R_ABS64 = 3
_R_ABS32_LO = 1
_R_ABS32_HI = 2
_NT_AMDGPU_METADATA = 32


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel argument: where it lies in the argument block and what it is.

    `kind` is the metadata's value kind: "by_value", "global_buffer", "dynamic_shared_pointer"
    or a "hidden_*" name; `name` is the source name where the compiler kept it.
    """

    index: int
    name: str
    offset: int
    size: int
    kind: str

    @property
    def hidden(self) -> bool:
        return self.kind.startswith("hidden_")


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What the code object says of one kernel. Sizes in bytes."""

    name: str
    demangled: str
    arguments: tuple[Argument, ...]
    kernarg_size: int
    lds: int
    scratch: int
    wave_size: int
    sgprs: int
    vgprs: int
    agprs: int
    max_block: int
    required_block: tuple[int, int, int] | None
    entry: int
    rsrc1: int
    rsrc2: int
    rsrc3: int
    properties: int
    preload: int
    dynamic_stack: bool

    @property
    def explicit(self) -> tuple[Argument, ...]:
        """The arguments a caller passes."""
        return tuple(a for a in self.arguments if not a.hidden)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable or function: `address` is its offset in the loaded image."""

    name: str
    demangled: str
    address: int
    size: int
    kind: str
    writable: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """A loadable piece of the file."""

    address: int
    size: int
    data: bytes
    writable: bool
    executable: bool


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object read into parts. Addresses are offsets from where it gets loaded."""

    target: str
    arch: str
    data: bytes
    kernels: tuple[KernelInfo, ...]
    symbols: tuple[Symbol, ...]
    segments: tuple[Segment, ...]
    relocations: tuple[tuple[int, int, int], ...]
    code: tuple[int, int]
    got: tuple[int, int] = (0, 0)
    printf: tuple[str, ...] = field(default=())

    @property
    def image_size(self) -> int:
        return max((s.address + s.size for s in self.segments), default=0)

    def text(self, address: int, size: int) -> bytes:
        """`size` bytes of the image at `address`, zero-filled past the file's part."""
        for s in self.segments:
            if s.address <= address < s.address + s.size:
                part = s.data[address - s.address : address - s.address + size]
                return part.ljust(size, b"\0")
        return b""


def _notes(elf: ELFFile) -> Iterator[bytes]:
    for segment in elf.iter_segments():
        if segment["p_type"] != "PT_NOTE":
            continue
        raw = segment.data()
        at = 0
        while at + 12 <= len(raw):
            name_size, size, kind = struct.unpack_from("<III", raw, at)
            name = raw[at + 12 : at + 12 + name_size].rstrip(b"\0")
            start = at + 12 + (name_size + 3) // 4 * 4
            if name == b"AMDGPU" and kind == _NT_AMDGPU_METADATA:
                yield raw[start : start + size]
            at = start + (size + 3) // 4 * 4


def _arguments(entry: dict[str, Any]) -> tuple[Argument, ...]:
    found = []
    for index, arg in enumerate(entry.get(".args", ())):
        name = str(arg.get(".name", "")).removesuffix(".coerce")
        found.append(
            Argument(
                index,
                name or f"arg{index}",
                int(arg[".offset"]),
                int(arg[".size"]),
                str(arg[".value_kind"]),
            )
        )
    return tuple(found)


def _unbundle(data: bytes) -> bytes:
    """The device part of a `clang-offload-bundler` file that holds exactly one."""
    count = struct.unpack_from("<Q", data, 24)[0]
    at = 32
    parts = []
    for _ in range(count):
        offset, size, name_size = struct.unpack_from("<QQQ", data, at)
        name = data[at + 24 : at + 24 + name_size].decode()
        at += 24 + name_size
        if not name.startswith("host") and size:
            parts.append((name, data[offset : offset + size]))
    if len(parts) != 1:
        names = ", ".join(name for name, _ in parts) or "none"
        raise EmulatorError(
            f"the bundle holds {len(parts)} device code objects ({names}); give one"
        )
    return parts[0][1]


def read(source: bytes | str | Path) -> CodeObject:
    """Read the code object `source` (a path, or its bytes).

    Raises EmulatorError if it is not a loadable AMD code object of a target that is known here.
    """
    label = "code object"
    if isinstance(source, (str, Path)):
        label = str(source)
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise EmulatorError(f"{label}: {error.strerror}") from error
    else:
        data = bytes(source)
    try:
        if data.startswith(b"__CLANG_OFFLOAD_BUNDLE__"):
            data = _unbundle(data)
        return _read(data, label)
    except (ELFError, struct.error, KeyError, ValueError, msgpack.UnpackException) as error:
        raise EmulatorError(f"{label}: not a readable AMD code object ({error})") from error


def _read(data: bytes, label: str) -> CodeObject:
    elf = ELFFile(io.BytesIO(data))
    if elf["e_machine"] != "EM_AMDGPU" and elf["e_machine"] != 224:
        raise EmulatorError(f"{label}: not an AMD code object (machine {elf['e_machine']})")
    mach = elf["e_flags"] & 0xFF
    if mach not in _MACHINES:
        raise EmulatorError(
            f"{label}: target number {mach:#x} is not one of "
            + ", ".join(sorted(name for name, _ in _MACHINES.values()))
        )
    target, arch = _MACHINES[mach]

    segments = []
    for s in elf.iter_segments():
        if s["p_type"] == "PT_LOAD":
            segments.append(
                Segment(
                    s["p_vaddr"],
                    s["p_memsz"],
                    s.data(),
                    bool(s["p_flags"] & 2),
                    bool(s["p_flags"] & 1),
                )
            )
    if not segments:
        raise EmulatorError(f"{label}: has no loadable segment; it must be linked")

    symbols: dict[tuple[str, int], Symbol] = {}
    relocations: list[tuple[int, int, int]] = []
    for section in elf.iter_sections():
        if isinstance(section, SymbolTableSection):
            for entry in section.iter_symbols():
                kind = entry["st_info"]["type"]
                if kind not in ("STT_FUNC", "STT_OBJECT") or isinstance(entry["st_shndx"], str):
                    continue
                at = entry["st_value"]
                writable = any(
                    g.writable and g.address <= at < g.address + g.size for g in segments
                )
                symbols[entry.name, at] = Symbol(
                    entry.name,
                    demangle(entry.name),
                    at,
                    entry["st_size"],
                    "function" if kind == "STT_FUNC" else "object",
                    writable,
                )
        elif isinstance(section, RelocationSection):
            table: Any = elf.get_section(section["sh_link"])
            for r in section.iter_relocations():
                kind = r["r_info_type"]
                if kind == _R_RELATIVE64:
                    relocations.append((r["r_offset"], 8, r["r_addend"]))
                    continue
                symbol = table.get_symbol(r["r_info_sym"])
                if symbol["st_shndx"] == "SHN_UNDEF":
                    raise EmulatorError(f"{label}: undefined symbol {demangle(symbol.name)}")
                value = symbol["st_value"] + r["r_addend"]
                if kind == _R_ABS64:
                    relocations.append((r["r_offset"], 8, value))
                elif kind in (_R_ABS32_LO, _R_ABS32_HI):
                    relocations.append((r["r_offset"], 4 if kind == _R_ABS32_LO else -4, value))
                else:
                    raise EmulatorError(f"{label}: relocation type {kind} is not supported")

    code = (0, 0)
    if (text := elf.get_section_by_name(".text")) is not None:
        code = (text["sh_addr"], text["sh_addr"] + text["sh_size"])
    else:
        for g in segments:
            if g.executable:
                code = (g.address, g.address + g.size)

    got = (0, 0)
    if (entries := elf.get_section_by_name(".got")) is not None:
        got = (entries["sh_addr"], entries["sh_addr"] + entries["sh_size"])

    by_name = {s.name: s for s in symbols.values()}
    kernels = []
    printf: tuple[str, ...] = ()
    for note in _notes(elf):
        metadata = msgpack.unpackb(note, raw=False, strict_map_key=False)
        printf = tuple(str(p) for p in metadata.get("amdhsa.printf", ()))
        for described in metadata.get("amdhsa.kernels", ()):
            kernels.append(_kernel(described, by_name, segments, label))
    return CodeObject(
        target,
        arch,
        data,
        tuple(kernels),
        tuple(symbols.values()),
        tuple(segments),
        tuple(relocations),
        code,
        got,
        printf,
    )


def _kernel(
    entry: dict[str, Any], by_name: dict[str, Symbol], segments: list[Segment], label: str
) -> KernelInfo:
    name = str(entry[".name"])
    descriptor = by_name.get(str(entry.get(".symbol", name + ".kd")))
    if descriptor is None:
        raise EmulatorError(f"{label}: kernel {name} has no descriptor symbol")
    raw = b""
    for g in segments:
        if g.address <= descriptor.address < g.address + g.size:
            raw = g.data[descriptor.address - g.address :][:64]
    if len(raw) < 64:
        raise EmulatorError(f"{label}: kernel {name} has no descriptor")
    lds, scratch, kernarg, _, entry_offset = struct.unpack_from("<IIIIq", raw, 0)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", raw, 44)
    required = entry.get(".reqd_workgroup_size")
    return KernelInfo(
        name=name,
        demangled=demangle(name),
        arguments=_arguments(entry),
        kernarg_size=max(kernarg, int(entry.get(".kernarg_segment_size", 0))),
        lds=lds,
        scratch=scratch,
        wave_size=int(entry.get(".wavefront_size", 64)),
        sgprs=int(entry.get(".sgpr_count", 0)),
        vgprs=int(entry.get(".vgpr_count", 0)),
        agprs=int(entry.get(".agpr_count", 0)),
        max_block=int(entry.get(".max_flat_workgroup_size", 1024)),
        required_block=(required[0], required[1], required[2]) if required else None,
        entry=descriptor.address + entry_offset,
        rsrc1=rsrc1,
        rsrc2=rsrc2,
        rsrc3=rsrc3,
        properties=properties,
        preload=preload,
        dynamic_stack=bool(entry.get(".uses_dynamic_stack", False)),
    )


__all__ = [
    "Argument",
    "CodeObject",
    "KernelInfo",
    "Segment",
    "Symbol",
    "base_name",
    "read",
]
