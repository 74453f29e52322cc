"""Operand fetch: the bits an instruction sees, as C, with every modifier applied.

Encodings, inline constants and modifiers: "RDNA3 Instruction Set Architecture Reference Guide"
and "AMD Instinct MI300 Instruction Set Architecture Reference Guide", chapters on scalar and
vector operands, DPP and SDWA.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipport.emulator.decode import Inst
from hipport.emulator.lanes import LaneOp

if TYPE_CHECKING:
    from hipport.emulator.translate import Translator


class Unsupported(Exception):
    """Something about one instruction that is not translated; the message says what."""


_FLOATS = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0}
_INV_2PI = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}


@dataclass(frozen=True, slots=True)
class Operand:
    """Number format of an operand: `kind` f, bf, i, u or b; `bits` in all; `packed` halves."""

    kind: str
    bits: int
    packed: bool = False


def constant(enc: int, want: Operand, literal: int | None) -> int | None:
    """Bits of a constant operand (inline or literal), or None if `enc` is a register."""
    bits = 16 if want.packed and want.bits == 32 else want.bits
    width = 64 if want.bits == 64 and not want.packed else 32
    ones = (1 << width) - 1
    if 128 <= enc <= 192:
        return enc - 128
    if 193 <= enc <= 208:
        return (192 - enc) & ones
    if enc in _FLOATS:
        value = _FLOATS[enc]
        if bits == 16:
            if want.kind == "bf":
                return int(struct.unpack("<I", struct.pack("<f", value))[0]) >> 16
            # Integer 16-bit operands take the 32-bit float pattern's low half on no known chip;
            # the assembler only offers f16 constants here.
            return int(struct.unpack("<H", struct.pack("<e", value))[0])
        if bits == 64 and not want.packed:
            return int(struct.unpack("<Q", struct.pack("<d", value))[0])
        return int(struct.unpack("<I", struct.pack("<f", value))[0])
    if enc == 248:
        return _INV_2PI[64 if width == 64 else 16 if bits == 16 else 32]
    if enc == 255:
        if literal is None:
            raise Unsupported("literal operand without a literal")
        if width == 64:
            if want.kind == "f":
                return literal << 32
            if want.kind == "i" and literal >> 31:
                return literal | (0xFFFFFFFF << 32)
        return literal
    return None


def scalar(
    t: Translator,
    enc: int,
    bits: int,
    kind: str,
    literal: int | None,
    scalars: set[int] | None = None,
) -> str:
    """C of a scalar source. With `scalars`, registers are named `s7` and recorded there (for use
    inside a lane loop); without, they are read from the register array."""
    value = constant(enc, Operand(kind, bits), literal)
    if value is not None:
        return f"{value:#x}ull" if bits == 64 else f"{value & 0xFFFFFFFF:#x}u"

    def reg(n: int) -> str:
        if t.arch != "cdna" and n == 124:
            return "0u"
        if scalars is None:
            return f"S[{n}]"
        scalars.add(n)
        return f"s{n}"

    if enc < 128:
        if bits == 64:
            if t.arch != "cdna" and enc == 124:
                return "0ull"
            if scalars is None:
                return f"S64({enc})"
            return f"bcast({reg(enc)}, {reg(enc + 1)})"
        return reg(enc)
    if enc in (235, 236, 237, 238):
        if bits != 64:
            raise Unsupported("32-bit read of a memory aperture")
        base = "SHARED_HI" if enc in (235, 236) else "PRIVATE_HI"
        low = "0" if enc in (235, 237) else "0xffffffffull"
        return f"((u64){base} << 32 | {low})"
    wide = "S64(106) == 0" if t.wide else "S[106] == 0"
    if enc == 251:
        return f"((u32)({wide}))"
    if enc == 252:
        return "((u32)(EXEC64 == 0))"
    if enc == 253:
        return "scc"
    raise Unsupported(f"source operand {enc}")


def vector(t: Translator, op: LaneOp, enc: int, want: Operand, literal: int | None) -> str:
    """C of a vector-instruction source for one lane, before modifiers."""
    if enc >= 256:
        n = enc - 256
        op.reads.add(n)
        if want.bits == 64:
            op.reads.add(n + 1)
            return f"bcast(v{n}, v{n + 1})"
        if want.bits > 64:
            if want.bits > 128:
                raise Unsupported(f"{want.bits}-bit operand")
            parts = []
            for i in range(want.bits // 32):
                op.reads.add(n + i)
                parts.append(f"(u128)v{n + i} << {32 * i}")
            return "(" + " | ".join(parts) + ")"
        return f"v{n}"
    if (value := constant(enc, want, literal)) is not None:
        wide = want.bits == 64 and not want.packed
        return f"{value:#x}ull" if wide else f"{value & 0xFFFFFFFF:#x}u"
    return scalar(t, enc, 64 if want.bits == 64 else 32, want.kind, literal, op.scalars)


def sign_modifiers(c: str, want: Operand, absolute: int, negate: int) -> str:
    """Absolute value and negation on the bits of a float operand."""
    if not absolute and not negate:
        return c
    bits = want.bits if want.bits in (16, 32, 64) else 32
    suffix = "ull" if bits == 64 else "u"
    top = 1 << (bits - 1)
    if absolute:
        keep = ((1 << (64 if bits == 64 else 32)) - 1) & ~top
        c = f"({c} & {keep:#x}{suffix})"
    if negate:
        c = f"({c} ^ {top:#x}{suffix})"
    return c


_SDWA_SELECT = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16), 6: (0, 32)}


def sdwa_source(c: str, select: int, extend: int) -> str:
    """The byte or word of a register that SDWA selects, zero- or sign-extended."""
    low, width = _SDWA_SELECT[select]
    if width == 32:
        return c
    if extend:
        return f"((u32)((i32)({c} << {32 - low - width}) >> {32 - width}))"
    return f"(({c} >> {low}) & {(1 << width) - 1:#x}u)"


def sdwa_insert(old: str, new: str, select: int, unused: int) -> str:
    """The destination register after SDWA puts a byte or word of result into it."""
    low, width = _SDWA_SELECT[select]
    if width == 32:
        return new
    ones = (1 << width) - 1
    value = f"(({new} & {ones:#x}u) << {low})"
    if unused == 0:
        return value
    if unused == 1:
        return f"((u32)((i32)({new} << {32 - width}) >> {32 - width}) << {low})"
    return f"({value} | ({old} & {~(ones << low) & 0xFFFFFFFF:#x}u))"


def dpp_prelude(
    t: Translator, inst: Inst, register: int, name: str
) -> tuple[list[str], str | None]:
    """(C that fills `name[L]` with the permuted register, lane-mask array or None).

    Lanes whose source is out of range or disabled read 0 if bound control is set; otherwise they
    keep the destination, which the mask array says.
    """
    source = f"&V[VX({register}) * L]"
    if inst.variant == "DPP8":
        selects = ", ".join(str(inst.get(f"lane_sel_{i}")) for i in range(8))
        fetch_inactive = int((inst.raw._raw & 0x1FF) == 234)
        return [
            f"u32 {name}[L]; {{ const u8 sel[8] = {{{selects}}}; "
            f"dpp8({name}, {source}, sel, EXEC64, {fetch_inactive}); }}"
        ], None
    ctrl, bound = inst.get("dpp"), inst.get("bc")
    rows, banks = inst.get("row_mask"), inst.get("bank_mask")
    inactive = inst.get("fi")
    lines = [
        f"u32 {name}[L], {name}m[L]; "
        f"dpp16({name}, {name}m, {source}, {ctrl}, {bound}, {inactive}, {rows}, {banks}, EXEC64, "
        f"{int(t.arch != 'cdna')});"
    ]
    known = (
        ctrl <= 0xFF
        or ctrl in range(0x101, 0x110)
        or ctrl in range(0x111, 0x120)
        or (ctrl in range(0x121, 0x130))
        or ctrl in (0x140, 0x141)
    )
    if t.arch == "cdna":
        known = (
            known
            or ctrl in (0x130, 0x134, 0x138, 0x13C, 0x142, 0x143)
            or (ctrl in range(0x150, 0x160))
        )
    else:
        known = known or ctrl in range(0x150, 0x170)
    if not known:
        raise Unsupported(f"DPP control {ctrl:#x}")
    return lines, f"{name}m[l]"


HELPERS = r"""
/* DPP: "RDNA3 ISA", "MI300 ISA", data parallel primitives. m[l] is 0 where the lane keeps its
 * destination. Rows are 16 lanes, banks 4. */
static void dpp16(u32 *out, u32 *m, const u32 *v, u32 ctrl, int bound, int fi, u32 rows, u32 banks,
                  u64 exec, int rdna) {
  for (int l = 0; l < L; l++) {
    int row = l & ~15, i = l & 15, src = l, valid = 1;
    if (ctrl <= 0xff) src = (l & ~3) | ((ctrl >> (2 * (l & 3))) & 3);
    else if (ctrl >= 0x101 && ctrl <= 0x10f) { i += ctrl & 15; valid = i < 16; src = row + i; }
    else if (ctrl >= 0x111 && ctrl <= 0x11f) { i -= ctrl & 15; valid = i >= 0; src = row + i; }
    else if (ctrl >= 0x121 && ctrl <= 0x12f) src = row + ((i - (int)(ctrl & 15)) & 15);
    else if (ctrl == 0x140) src = row + 15 - i;
    else if (ctrl == 0x141) src = (l & ~7) + 7 - (l & 7);
    else if (ctrl == 0x130) { src = l + 1; valid = src < 64; }
    else if (ctrl == 0x134) src = (l + 1) & 63;
    else if (ctrl == 0x138) { src = l - 1; valid = src >= 0; }
    else if (ctrl == 0x13c) src = (l - 1) & 63;
    else if (ctrl == 0x142) { src = row - 1; valid = row > 0; }
    else if (ctrl == 0x143) { src = 31; valid = l >= 32; }
    else if (ctrl >= 0x150 && ctrl <= 0x15f) src = row + (ctrl & 15);
    else if (ctrl >= 0x160 && ctrl <= 0x16f) src = row + (i ^ (int)(ctrl & 15));
    int on = ((rows >> (l / 16)) & 1) && ((banks >> ((l / 4) & 3)) & 1);
    u32 x = 0;
    if (valid && (fi || (exec >> src & 1))) x = v[src];
    else if (!bound) on = 0;
    out[l] = x;
    m[l] = on ? ~0u : 0u;
  }
}
static void dpp8(u32 *out, const u32 *v, const u8 *sel, u64 exec, int fi) {
  for (int l = 0; l < L; l++) {
    int src = (l & ~7) | sel[l & 7];
    out[l] = fi || (exec >> src & 1) ? v[src] : 0;
  }
}
"""
