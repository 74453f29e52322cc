"""Machine code to instructions, by the tables in `tinygrad` (made from AMD's ISA documents).

What this adds to tinygrad's own decoder: the formats it leaves out (typed and untyped buffer
instructions on RDNA3, typed ones on CDNA), DPP8, an index that makes decoding fast, and a plain
`Inst` with names as the assembler writes them.
"""

from __future__ import annotations

import functools
import importlib
import re
import sys
from dataclasses import dataclass
from typing import Any

from hipport.emulator.errors import EmulatorError

_DPP8 = (233, 234)


def _tinygrad() -> None:
    version: tuple[int, int] = sys.version_info[:2]
    if version < (3, 11):
        raise EmulatorError("running device code needs Python 3.11 or newer (tinygrad's tables do)")
    try:
        importlib.import_module("tinygrad.renderer.amd.dsl")
    except ImportError as error:
        raise EmulatorError(
            'running device code needs tinygrad>=0.14,<0.15: pip install "hipport[device]"'
        ) from error


@functools.lru_cache(maxsize=4)
def tables(arch: str) -> tuple[Any, Any]:
    """tinygrad's `ins` and `str_pcode` modules of an instruction set ("cdna" or "rdna3")."""
    _tinygrad()
    root = f"tinygrad.runtime.autogen.amd.{arch}"
    return importlib.import_module(root + ".ins"), importlib.import_module(root + ".str_pcode")


@functools.lru_cache(maxsize=4)
def operand_table(arch: str) -> dict[Any, dict[str, tuple[Any, int, Any]]]:
    """Operation to operand: (number format, bits, operand type)."""
    _tinygrad()
    module = importlib.import_module(f"tinygrad.runtime.autogen.amd.{arch}.operands")
    found: dict[Any, dict[str, tuple[Any, int, Any]]] = module.OPERANDS
    return found


@functools.lru_cache(maxsize=4)
def _by_name(arch: str) -> tuple[dict[str, str], dict[str, dict[str, tuple[Any, int, Any]]]]:
    _, module = tables(arch)
    texts: dict[str, str] = {}
    shapes: dict[str, dict[str, tuple[Any, int, Any]]] = {}
    for op, text in module.PCODE.items():
        texts.setdefault(plain(op.name), text)
    for op, shape in operand_table(arch).items():
        shapes.setdefault(plain(op.name), shape)
    return texts, shapes


def pseudocode(arch: str, op: Any) -> str | None:
    """The manual's text for `op`; the long form of a short-form operation shares its text."""
    _, module = tables(arch)
    text: str | None = module.PCODE.get(op)
    return text if text is not None else _by_name(arch)[0].get(plain(op.name))


def shape_of(arch: str, op: Any) -> dict[str, tuple[Any, int, Any]]:
    """Operands of `op`: field to (number format, bits, operand type)."""
    found = operand_table(arch).get(op)
    return found if found is not None else _by_name(arch)[1].get(plain(op.name), {})


@functools.lru_cache(maxsize=4)
def _formats(arch: str) -> list[tuple[Any, int, int]]:
    """(class, mask, value) of the first word, most specific first."""
    ins, _ = tables(arch)
    amd = importlib.import_module("tinygrad.renderer.amd")
    dsl = importlib.import_module("tinygrad.renderer.amd.dsl")
    classes = list(amd._load_formats()[arch])
    for name in ("MUBUF", "MTBUF"):
        if (extra := getattr(ins, name)) not in classes:
            classes.insert(0, extra)
    found = []
    for cls in classes:
        mask = value = 0
        for _, f in cls._fields:
            if isinstance(f, dsl.FixedBitField) and f.lo < 32:
                mask |= f.mask << f.lo
                value |= f.default << f.lo
        found.append((cls, mask, value))
    return found


_SUFFIX = re.compile(r"_(E32|E64)$")


def plain(name: str) -> str:
    """V_ADD_F32_E32 as v_add_f32."""
    return _SUFFIX.sub("", name).lower()


@dataclass(frozen=True, slots=True)
class Inst:
    """One decoded instruction.

    `format` is the encoding's family ("VOP3", "SOPP", …); `variant` one of "", "LIT", "DPP16",
    "DPP8", "SDWA"; `raw` tinygrad's object, whose fields `get` and `reg` read.
    """

    address: int
    size: int
    name: str
    format: str
    variant: str
    raw: Any

    def has(self, field: str) -> bool:
        return hasattr(type(self.raw), field)

    def get(self, field: str, default: int = 0) -> int:
        """An integer field; registers give their place in the source encoding (VGPRs from 256)."""
        if not hasattr(type(self.raw), field):
            return default
        value = getattr(self.raw, field)
        if isinstance(value, int):
            return value
        offset = getattr(value, "offset", None)
        return int(offset) if offset is not None else int(value.value)

    @property
    def op(self) -> Any:
        return self.raw.op

    @property
    def end(self) -> int:
        return self.address + self.size


def _class_of(data: bytes, arch: str) -> Any:
    amd = importlib.import_module("tinygrad.renderer.amd")
    word = int.from_bytes(data[:4], "little")
    for cls, mask, value in _formats(arch):
        if word & mask == value and amd._matches(data, cls):
            return cls
    return None


@functools.lru_cache(maxsize=65536)
def _decode(data: bytes, arch: str) -> tuple[Any, str, str, str, int]:
    cls = _class_of(data, arch)
    if cls is None:
        raise ValueError
    raw = cls.from_bytes(data)
    ins, _ = tables(arch)
    if arch != "cdna":
        # tinygrad does not upgrade to DPP8 on its own: the marker is 233 or 234 in src0.
        src0 = getattr(type(raw), "src0", None)
        if src0 is not None and (raw._raw >> src0.lo) & src0.mask in _DPP8:
            eight = getattr(ins, cls.__name__.split("_")[0] + "_DPP8", None)
            if eight is None:
                raise ValueError
            raw = eight.from_bytes(data)
    name = type(raw).__name__
    if "op" in dir(type(raw)):
        label = plain(raw.op.name)
    else:
        label = f"{plain(raw.opx.name)} :: {plain(raw.opy.name)}"
    variant = ""
    for v in ("LIT", "DPP16", "DPP8", "SDWA"):
        if f"_{v}" in name:
            variant = v
    family = name.split("_")[0]
    return raw, label, family, variant, int(type(raw)._base_size)


#: gfx90a opcodes that mean something else than in the (later) tables: (format, number) to name.
#: "AMD Instinct MI200 Instruction Set Architecture Reference Guide".
_GFX90A = {
    ("VOP2", 0x16): "v_mac_f32",
    ("VOP2", 0x17): "v_madmk_f32",
    ("VOP2", 0x18): "v_madak_f32",
    ("VOP3", 0x116): "v_mac_f32",
    ("VOP3P", 0x54): "v_mfma_i32_32x32x8_i8",
    ("VOP3P", 0x55): "v_mfma_i32_16x16x16_i8",
    ("VOP3P", 0x63): "v_mfma_f32_32x32x4_2b_bf16",
    ("VOP3P", 0x64): "v_mfma_f32_16x16x4_4b_bf16",
    ("VOP3P", 0x65): "v_mfma_f32_4x4x4_16b_bf16",
    ("VOP3P", 0x66): "v_mfma_f32_32x32x8_bf16",
    ("VOP3P", 0x67): "v_mfma_f32_16x16x16_bf16",
    ("VOP3P", 0x68): "v_mfma_f32_32x32x2_2b_bf16",
    ("VOP3P", 0x69): "v_mfma_f32_16x16x2_4b_bf16",
    ("VOP3P", 0x6B): "v_mfma_f32_4x4x2_16b_bf16",
    ("VOP3P", 0x6C): "v_mfma_f32_32x32x4_bf16",
    ("VOP3P", 0x6D): "v_mfma_f32_16x16x8_bf16",
}


def decode(code: bytes, offset: int, address: int, arch: str, target: str = "") -> Inst:
    """The instruction at `code[offset:]`, which lies at `address`.

    Raises ValueError when no encoding of `arch` matches.
    """
    text, other = code[offset : offset + 16], ""
    if target == "gfx90a" and text[2:4] == b"\xc1\xd1":
        # v_mad_f32, VOP3 number 0x1c1, is not in the tables; its fields are v_fma_f32's (0x1cb).
        text, other = text[:2] + b"\xcb" + text[3:], "v_mad_f32"
    try:
        raw, name, family, variant, size = _decode(text, arch)
    except ValueError:
        word = int.from_bytes(code[offset : offset + 4], "little")
        if target == "gfx90a" and word >> 26 == 0x38 and word >> 18 & 0x7F in (0x3E, 0x3F):
            return Inst(address, 8, "buffer_wbinvl1", "MUBUF", "", None)
        number = word >> 16 & 0x7F
        if target == "gfx90a" and word >> 23 == 0x1A7 and ("VOP3P", number) in _GFX90A:
            # The tables lack this opcode; its fields are those of every matrix instruction.
            like = (word & ~(0x7F << 16) | 0x4D << 16).to_bytes(4, "little")
            patched = like + code[offset + 4 : offset + 16]
            raw, _, family, variant, size = _decode(patched, arch)
            return Inst(address, size, _GFX90A["VOP3P", number], family, variant, raw)
        word = int.from_bytes(code[offset : offset + 4], "little")
        raise ValueError(f"unknown {arch} encoding {word:#010x} at {address:#x}") from None
    if target == "gfx90a" and family in ("VOP2", "VOP3", "VOP3P"):
        name = other or _GFX90A.get((family, raw.op.value), name)
    if arch == "cdna" and name.startswith("v_mad_mix"):
        # The table keeps gfx900's name; every chip here fuses (and calls it fma_mix).
        name = "v_fma_mix" + name.removeprefix("v_mad_mix")
    return Inst(address, size, name, family, variant, raw)
