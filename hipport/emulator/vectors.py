"""Vector ALU instructions: operands with modifiers, the operation, and the write-back."""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hipport.emulator import handwritten
from hipport.emulator.decode import Inst, shape_of, tables
from hipport.emulator.lanes import LaneOp
from hipport.emulator.operands import (
    Operand,
    Unsupported,
    constant,
    dpp_prelude,
    scalar,
    sdwa_insert,
    sdwa_source,
    sign_modifiers,
    vector,
)

if TYPE_CHECKING:
    from hipport.emulator.translate import Translator

# 16-bit operations of GFX9 that keep the other half of the register; all others clear it.
# "User Guide for AMDGPU Backend" and the code generator's table of operations that zero it.
_GFX9_KEEPS = re.compile(
    r"^v_(mad|fma|div_fixup|med3|min3|max3)_[fiu]16$|^v_(add|sub)_i16$|^v_mad_mix|^v_fma_mix"
)

_CROSS = frozenset(
    [
        "v_readlane_b32",
        "v_writelane_b32",
        "v_readfirstlane_b32",
        "v_permlane16_b32",
        "v_permlanex16_b32",
        "v_permlane64_b32",
        "v_permlane16_swap_b32",
        "v_permlane32_swap_b32",
        "v_swap_b32",
        "v_swap_b16",
        "v_movrels_b32",
        "v_movreld_b32",
        "v_movrelsd_b32",
        "v_movrelsd_2_b32",
        "v_swaprel_b32",
    ]
)


def translate(t: Translator, inst: Inst) -> None:
    """Translate one VOP instruction into the lane loop (or around it)."""
    if inst.format == "VOPD":
        _dual(t, inst)
        return
    if inst.name in _CROSS:
        t.emit(_cross(t, inst))
        return
    if inst.name in _PAIRS:
        t.lane(_pair(t, inst))
        return
    if inst.name.startswith("v_accvgpr_"):
        _accvgpr(t, inst)
        return
    t.lane(_operation(t, inst))


#: Operations on two registers at once; kept as two 32-bit values, which vectorise far better.
_PAIRS = {
    "v_pk_fma_f32": "f2u(fl32(__builtin_fmaf(u2fi({0}), u2fi({1}), u2fi({2}))))",
    "v_pk_mul_f32": "f2u(fl32(u2fi({0}) * u2fi({1})))",
    "v_pk_add_f32": "f2u(fl32(u2fi({0}) + u2fi({1})))",
    "v_pk_mov_b32": "{0}",
}


def _pair(t: Translator, inst: Inst) -> LaneOp:
    op = LaneOp()
    opsel = inst.get("opsel")
    opsel_hi = inst.get("opsel_hi") | inst.get("opsel_hi2") << 2
    neg, neg_hi = inst.get("neg"), inst.get("neg_hi")
    move = inst.name == "v_pk_mov_b32"

    def part(i: int, half: int, negate: int) -> str:
        enc = inst.get(f"src{i}")
        if enc >= 256:
            n = enc - 256 + half
            op.reads.add(n)
            c = f"v{n}"
        elif (value := constant(enc, Operand("f", 32), t.literal(inst))) is not None:
            c = f"{value & 0xFFFFFFFF:#x}u"
        else:
            c = scalar(t, enc + half if enc < 128 else enc, 32, "u", None, op.scalars)
        return f"({c} ^ 0x80000000u)" if negate else c

    text = _PAIRS[inst.name]
    if move:
        low = [part(0, opsel & 1, 0)]
        high = [part(1, opsel >> 1 & 1, 0)]
    else:
        count = text.count("{")
        low = [part(i, opsel >> i & 1, neg >> i & 1) for i in range(count)]
        high = [part(i, opsel_hi >> i & 1, neg_hi >> i & 1) for i in range(count)]
    clamp = "clamp_f({})" if inst.get("clmp") else "{}"
    op.lines = [
        f"const u32 lo_ = {clamp.format(text.format(*low))};",
        f"const u32 hi_ = {clamp.format(text.format(*high))};",
    ]
    dst = inst.get("vdst") - 256
    op.writes = [(dst, "lo_"), (dst + 1, "hi_")]
    return op


def indexed(t: Translator, inst: Inst) -> list[str]:
    """A move under S_SET_GPR_IDX_ON: register numbers get M0's low byte added."""
    if inst.name != "v_mov_b32" or inst.variant not in ("", "LIT"):
        raise Unsupported("register indexing mode on anything but v_mov_b32")
    assert t.gpr_index is not None
    src, dst = inst.get("src0"), inst.get("vdst") - 256
    t.use_vgpr(dst)
    to = f"({dst} + (S[124] & 0xffu))" if t.gpr_index & 8 else f"{dst}"
    if src >= 256:
        t.use_vgpr(src - 256)
        from_ = f"({src - 256} + (S[124] & 0xffu))" if t.gpr_index & 1 else f"{src - 256}"
        value = f"V[REL({from_}) * L + l]"
    else:
        value = scalar(t, src, 32, "u", t.literal(inst))
    return [f"for (int l = 0; l < L; l++) if (em[l]) V[REL({to}) * L + l] = {value};"]


def _relative(t: Translator, inst: Inst) -> list[str]:
    """RDNA3 V_MOVREL*: register numbers offset by M0."""
    t.identity = True
    src, dst = inst.get("src0"), inst.get("vdst") - 256
    t.use_vgpr(dst)
    m0s = m0d = "S[125]"
    if inst.name == "v_movrelsd_2_b32":
        m0s, m0d = "(S[125] & 0x3ffu)", "(S[125] >> 16 & 0x3ffu)"
    to = f"{dst} + {m0d}" if inst.name != "v_movrels_b32" else f"{dst}"
    if inst.name == "v_movreld_b32" and src < 256:
        value = scalar(t, src, 32, "u", t.literal(inst))
    else:
        t.use_vgpr(src - 256)
        from_ = f"{src - 256} + {m0s}" if inst.name != "v_movreld_b32" else f"{src - 256}"
        value = f"V[REL({from_}) * L + l]"
    return [f"for (int l = 0; l < L; l++) if (em[l]) V[REL({to}) * L + l] = {value};"]


def _accvgpr(t: Translator, inst: Inst) -> None:
    op = LaneOp()
    src = inst.get("src0")
    dst = inst.get("vdst") - 256
    if inst.name == "v_accvgpr_read":
        src += 256 if src < 512 else 0
    elif inst.name == "v_accvgpr_write":
        dst += 256
    elif inst.name == "v_accvgpr_mov_b32":
        src, dst = src + 256, dst + 256
    else:
        raise Unsupported("accumulation register move")
    if src >= 256:
        n = src - 256
        op.reads.add(n)
        c = f"v{n}"
    else:
        c = scalar(t, src, 32, "u", t.literal(inst), op.scalars)
    op.lines = [f"const u32 d0 = {c};"]
    op.writes = [(dst, "d0")]
    t.lane(op)


def _mask_read(t: Translator, op: LaneOp, enc: int) -> str:
    """The lane's bit of a scalar mask operand."""
    if enc < 128 and not (t.arch != "cdna" and enc == 124):
        op.masks.add(enc)
        return f"%m{enc}%"
    if enc == 124:
        return "0u"
    value = constant(enc, Operand("u", 64), None)
    if value is not None:
        return f"(u32)(({value:#x}ull >> l) & 1)"
    raise Unsupported(f"mask operand {enc}")


def _operation(t: Translator, inst: Inst) -> LaneOp:
    op = LaneOp()
    name = inst.name
    formats = t.formats(inst)
    literal = t.literal(inst)
    packed = inst.format == "VOP3P"
    fields = [f for f in ("src0", "src1", "vsrc1", "src2") if inst.has(f)]
    wants: dict[str, Operand] = {}
    sources: dict[str, str] = {}
    number = {"src0": 0, "src1": 1, "vsrc1": 1, "src2": 2}
    table = shape_of(t.arch, inst.op)
    absolute, negate = inst.get("abs"), inst.get("neg")
    opsel = inst.get("opsel")
    carry_in: str | None = None
    if name.startswith("v_div_fmas"):
        carry_in = _mask_read(t, op, 106)
    elif inst.format in ("VOP3", "VOP3SD") and "src2" in fields and _takes_mask(name):
        fields.remove("src2")
        carry_in = _mask_read(t, op, inst.get("src2"))
    elif _takes_mask(name):
        carry_in = _mask_read(t, op, 106)

    for f in fields:
        key = f if f in table else {"src1": "vsrc1", "vsrc1": "src1"}.get(f, f)
        if key not in table:
            if f == "src2" or (f == "src1" and inst.format in ("VOP3", "VOP3SD", "VOP3P")):
                continue
            want = Operand("b", 32)
        else:
            want = formats[key]
        i = number[f]
        if want.bits < 16:
            want = Operand(want.kind, 32)
        enc = inst.get(f)
        half = 0
        if f == "src0" and inst.variant in ("DPP16", "DPP8", "SDWA"):
            enc = inst.get("vsrc0") if inst.has("vsrc0") else enc
            if inst.variant == "SDWA" and inst.get("s0"):
                enc -= 256
        if f == "vsrc1" and inst.variant == "SDWA" and inst.get("s1"):
            enc -= 256
        if (
            want.bits == 16
            and t.arch != "cdna"
            and inst.format in ("VOP1", "VOP2", "VOPC")
            and (enc >= 256)
        ):
            # RDNA3: bit 7 of a 16-bit VGPR operand in the short encodings picks the high half.
            half, enc = (enc - 256) >> 7, 256 + ((enc - 256) & 127)
        if f == "src0" and inst.variant in ("DPP16", "DPP8"):
            array = t.name("dp")
            prelude, only = dpp_prelude(t, inst, enc - 256, array)
            t.use_vgpr(enc - 256)
            op.prelude += prelude
            if want.bits > 32:
                raise Unsupported("64-bit DPP operand")
            op.only = only
            c = f"{array}[l]"
        else:
            c = vector(t, op, enc, want, literal)
        if inst.variant == "SDWA" and f in ("src0", "vsrc1"):
            n = 0 if f == "src0" else 1
            c = sdwa_source(c, inst.get(f"src{n}_sel", 6), inst.get(f"src{n}_sext"))
        if inst.variant in ("SDWA", "DPP16") and f in ("src0", "vsrc1", "src1"):
            n = 0 if f == "src0" else 1
            ab, ne = inst.get(f"src{n}_abs"), inst.get(f"src{n}_neg")
            if inst.format in ("VOP1", "VOP2", "VOPC"):
                c = sign_modifiers(c, want, ab, ne)
        if half:
            c = f"({c} >> 16)"
        if inst.format in ("VOP3", "VOP3SD") and want.bits == 16 and opsel >> i & 1:
            c = f"({c} >> 16)"
        if inst.format in ("VOP3", "VOP3SD") and not name.startswith("v_bitop3"):
            c = sign_modifiers(c, want, absolute >> i & 1, negate >> i & 1)
        if packed:
            c = _packed(t, inst, name, c, want, i, enc)
        wants[f"S{i}"] = want
        sources[f"S{i}"] = c

    # ---- the result
    is_compare = name.startswith(("v_cmp_", "v_cmpx_"))
    dest = formats.get("vdst", Operand("b", 32))
    bits = 32 if dest.bits <= 32 else 64 if dest.bits <= 64 else 128
    if is_compare:
        bits = 32
    vdst = inst.get("vdst") - 256
    high = 0
    if not is_compare and inst.has("vdst"):
        if dest.bits == 16 and t.arch != "cdna" and inst.format in ("VOP1", "VOP2"):
            high, vdst = vdst >> 7, vdst & 127
        elif dest.bits == 16 and inst.format == "VOP3":
            high = opsel >> 3 & 1
    lines: list[str] = []
    for key in sorted(sources):
        width = wants[key].bits
        ctype = "u32" if width <= 32 else "u64" if width <= 64 else "u128"
        lines.append(f"const {ctype} {key} = {sources[key]};")
    old = ""
    if not is_compare:
        if vdst < 0:
            raise Unsupported("scalar destination")
        for i in range(bits // 32):
            op.reads.add(vdst + i)
        old = f"v{vdst}" if bits == 32 else f"bcast(v{vdst}, v{vdst + 1})"
        if bits == 128:
            old = "(" + " | ".join(f"(u128)v{vdst + i} << {32 * i}" for i in range(4)) + ")"
        start = f"({old} >> 16)" if high else old
        lines.append(f"u{bits} d0 = {start};")
    ctx = t.context(
        inst,
        {k: (32 if w.bits <= 32 else 64 if w.bits <= 64 else 128) for k, w in wants.items()},
        bits,
    )
    ctx.constants["OPSEL"] = opsel
    ctx.constants["OPSEL_HI"] = inst.get("opsel_hi") | inst.get("opsel_hi2") << 2
    ctx.constants["NEG"] = negate
    ctx.constants["INST.OMOD"] = inst.get("omod")
    ctx.constants["INST.ABS"] = absolute
    ctx.constants["INST.NEG"] = negate
    ctx.dest["D1"] = ("d1", 32)
    ctx.dest["D"] = ("d0", bits)
    if carry_in is not None:
        lines.append(f"const u32 cin = {carry_in};")
        ctx.carry_in = lambda: "cin"
    hand = handwritten.LANE.get(name)
    wrote_carry = wrote_exec = False
    if name.startswith(("v_mad_mix", "v_fma_mix")):
        lines += _mix(t, inst, sources)
    elif hand is not None:
        text = hand.c.replace("{ieee}", "ieee" if t.ieee else "quiet")
        text = text.replace("OPSEL", str(opsel)).replace("LITERAL", f"{literal or 0:#x}u")
        wrote_carry = "cout" in text
        if wrote_carry:
            lines.append("u32 cout = 0;")
        lines.append(text)
    else:
        code = t.pseudo(inst, ctx)
        wrote_carry, wrote_exec = "CARRY" in ctx.writes, "EXEC_LANE" in ctx.writes
        if wrote_carry:
            lines.append("u32 cout = 0;")
        if wrote_exec:
            lines.append("u32 xout = 0;")
        if "D1" in ctx.writes:
            lines.append("u32 d1 = 0;")
        lines += code
        if "D1" in ctx.writes and inst.has("sdst"):
            wrote_carry = True
            lines.append("const u32 cout = d1;")
    if inst.get("clmp") or inst.get("omod"):
        lines += _clamp(t, inst, name, dest, bits)

    # ---- write-back
    if wrote_carry:
        sdst = inst.get("sdst", 106)
        if is_compare:
            sdst = inst.get("vdst", 106) if inst.format == "VOP3" else 106
            if inst.variant == "SDWA" and inst.get("sd"):
                sdst = inst.get("sdst")
        if is_compare and t.arch != "cdna" and sdst == 126:
            wrote_exec = True
            lines.append("const u32 xout = cout;")
        elif not (t.arch != "cdna" and sdst == 124):
            op.carry = (sdst, "cout")
    if wrote_exec:
        op.exec_bit = "xout"
    if not is_compare:
        if inst.variant == "SDWA":
            select, unused = inst.get("dst_sel", 6), inst.get("dst_unused")
            lines.append(f"d0 = {sdwa_insert(f'v{vdst}', 'd0', select, unused)};")
        elif dest.bits == 16:
            if high:
                lines.append(f"d0 = (v{vdst} & 0xffffu) | (d0 << 16);")
            elif t.arch != "cdna" or _GFX9_KEEPS.match(name):
                lines.append(f"d0 = (v{vdst} & 0xffff0000u) | (d0 & 0xffffu);")
            else:
                lines.append("d0 &= 0xffffu;")
        for i in range(bits // 32):
            op.writes.append((vdst + i, f"(u32)(d0 >> {32 * i})" if bits > 32 else "d0"))
        if bits > 32:
            # All words before any is written: a source may overlap the destination.
            names = [f"d0_{i}" for i in range(bits // 32)]
            lines.append(
                " ".join(f"const u32 {n} = (u32)(d0 >> {32 * i});" for i, n in enumerate(names))
            )
            op.writes = [(vdst + i, n) for i, n in enumerate(names)]
    op.lines = lines
    return op


def _takes_mask(name: str) -> bool:
    return (
        name.startswith(("v_cndmask_b", "v_addc_co", "v_subb_co", "v_subbrev_co", "v_div_fmas"))
        or "_co_ci_" in name
    )


def _packed(t: Translator, inst: Inst, name: str, c: str, want: Operand, i: int, enc: int) -> str:
    """Half selection and negation of a VOP3P source."""
    low = inst.get("opsel") >> i & 1
    high = (inst.get("opsel_hi") >> i & 1) if i < 2 else inst.get("opsel_hi2")
    neg, neg_hi = inst.get("neg") >> i & 1, inst.get("neg_hi") >> i & 1
    if name.startswith(("v_mad_mix", "v_fma_mix")):
        return c
    if name.startswith("v_pk_mov_b32"):
        return c
    if want.packed and want.bits == 64:
        if enc < 256 and constant(enc, want, 0) is not None:
            value = constant(enc, want, t.literal(inst))
            c = f"bcast({value:#x}u, {value:#x}u)"
        if low or not high:
            a = f"(u32)({c} >> 32)" if low else f"(u32){c}"
            b = f"(u32)({c} >> 32)" if high else f"(u32){c}"
            c = f"bcast({a}, {b})"
        flip = (neg << 31) | (neg_hi << 63)
        return f"({c} ^ {flip:#x}ull)" if flip else c
    if not (want.packed and want.bits == 32) or re.match(r"v_dot[48]", name):
        if want.bits == 32 and not want.packed and neg and want.kind == "f":
            return sign_modifiers(c, want, 0, neg)
        return c
    if low or not high:
        a = f"({c} >> 16)" if low else f"({c} & 0xffffu)"
        b = f"({c} & 0xffff0000u)" if high else f"({c} << 16)"
        c = f"({a} | {b})"
    flip = ((neg << 15) | (neg_hi << 31)) if want.kind in ("f", "bf") else 0
    return f"({c} ^ {flip:#x}u)" if flip else c


def _mix(t: Translator, inst: Inst, sources: dict[str, str]) -> list[str]:
    """Mixed-precision multiply-add: each source is f32, or one half of a register as f16."""
    opsel, hi = inst.get("opsel"), inst.get("opsel_hi") | inst.get("opsel_hi2") << 2
    neg, absolute = inst.get("neg"), inst.get("neg_hi")
    lines = []
    for i in range(3):
        c = f"S{i}"
        if hi >> i & 1:
            c = f"h2f({c} >> 16)" if opsel >> i & 1 else f"h2f({c} & 0xffffu)"
        else:
            c = f"u2f({c})"
        if absolute >> i & 1:
            c = f"__builtin_fabsf({c})"
        if neg >> i & 1:
            c = f"(-{c})"
        lines.append(f"const float x{i} = {c};")
    value = "fl32(x0 * x1) + x2" if "mad_mix" in inst.name else "__builtin_fmaf(x0, x1, x2)"
    if inst.name.endswith("mix_f32"):
        lines.append(f"d0 = f2u({value});")
    else:
        result = f"f2h({value})"
        if "fma_mix" in inst.name:
            result = "d2h((double)x0 * (double)x1 + (double)x2)" if False else f"f2h({value})"
        if "mixlo" in inst.name:
            lines.append(f"d0 = (d0 & 0xffff0000u) | {result};")
        else:
            lines.append(f"d0 = (d0 & 0xffffu) | ({result} << 16);")
    return lines


def _clamp(t: Translator, inst: Inst, name: str, dest: Operand, bits: int) -> list[str]:
    """Output modifier (times 2, 4, or half) and clamp to [0, 1] or to the integer range."""
    omod, clamp = inst.get("omod"), inst.get("clmp")
    if name.startswith("v_bitop3"):
        return []
    if inst.format == "VOP3P":
        if not clamp:
            return []
        if dest.kind == "f" and dest.packed and dest.bits == 32:
            return ["d0 = clamp_h(d0 & 0xffffu) | clamp_h(d0 >> 16) << 16;"]
        if dest.kind == "f" and dest.packed and dest.bits == 64:
            return ["d0 = bcast(clamp_f((u32)d0), clamp_f((u32)(d0 >> 32)));"]
        if dest.kind == "f" and dest.bits == 32 and not dest.packed:
            return ["d0 = clamp_f(d0);"]
        saturated = {
            "v_pk_add_u16": "pk_sat(S0, S1, 0)",
            "v_pk_sub_u16": "pk_sat(S0, S1, 1)",
            "v_pk_add_i16": "pk_sat(S0, S1, 2)",
            "v_pk_sub_i16": "pk_sat(S0, S1, 3)",
        }
        if name in saturated:
            return [f"d0 = {saturated[name]};"]
        raise Unsupported("clamp of this packed operation")
    if dest.kind == "f":
        factor = {0: "", 1: "2.0f", 2: "4.0f", 3: "0.5f"}[omod]
        kind = {16: "h", 32: "f", 64: "d"}[dest.bits]
        lines = []
        if factor:
            read, write = {
                "h": ("h2f(d0)", "f2h"),
                "f": ("u2f(d0)", "f2u"),
                "d": ("u2d(d0)", "d2u"),
            }[kind]
            lines.append(f"d0 = {write}({read} * {factor});")
        if clamp:
            lines.append(f"d0 = clamp_{kind}(d0);")
        return lines
    if omod:
        raise Unsupported("output modifier on an integer")
    saturated = {
        "v_add_u32": "sat_u64((u64)S0 + S1)",
        "v_add_nc_u32": "sat_u64((u64)S0 + S1)",
        "v_sub_u32": "(S0 > S1 ? S0 - S1 : 0)",
        "v_sub_nc_u32": "(S0 > S1 ? S0 - S1 : 0)",
        "v_subrev_u32": "(S1 > S0 ? S1 - S0 : 0)",
        "v_subrev_nc_u32": "(S1 > S0 ? S1 - S0 : 0)",
        "v_add_i32": "sat_i64((i64)(i32)S0 + (i32)S1)",
        "v_add_nc_i32": "sat_i64((i64)(i32)S0 + (i32)S1)",
        "v_sub_i32": "sat_i64((i64)(i32)S0 - (i32)S1)",
        "v_sub_nc_i32": "sat_i64((i64)(i32)S0 - (i32)S1)",
        "v_add_u16": "(u32)p_min_u32((S0 & 0xffffu) + (S1 & 0xffffu), 0xffffu)",
        "v_sub_u16": "((S0 & 0xffffu) > (S1 & 0xffffu) ? (S0 & 0xffffu) - (S1 & 0xffffu) : 0)",
        "v_add_i16": "(u32)sat_i32_i16((i32)(i16)S0 + (i16)S1)",
        "v_sub_i16": "(u32)sat_i32_i16((i32)(i16)S0 - (i16)S1)",
        "v_add_nc_u16": "(u32)p_min_u32((S0 & 0xffffu) + (S1 & 0xffffu), 0xffffu)",
        "v_sub_nc_u16": "((S0 & 0xffffu) > (S1 & 0xffffu) ? (S0 & 0xffffu) - (S1 & 0xffffu) : 0)",
        "v_add_nc_i16": "(u32)sat_i32_i16((i32)(i16)S0 + (i16)S1)",
        "v_sub_nc_i16": "(u32)sat_i32_i16((i32)(i16)S0 - (i16)S1)",
        "v_mad_u32_u24": "sat_u64((u64)(S0 & 0xffffffu) * (S1 & 0xffffffu) + S2)",
    }
    if name in saturated:
        return [f"d0 = {saturated[name]};"]
    raise Unsupported("clamp of this integer operation")


# ---------------------------------------------------------------- dual issue


def _dual(t: Translator, inst: Inst) -> None:
    """RDNA3 VOPD: two operations; both read before either writes."""
    op = LaneOp()
    ins, _ = tables(t.arch)
    literal = t.literal(inst)
    writes = []
    for half in ("x", "y"):
        what = getattr(inst.raw, f"op{half}")
        name = what.name.lower().replace("v_dual_", "v_")
        dst = inst.get(f"vdst{half}") - 256
        bits32 = Operand("b", 32)
        if name == "v_dot2acc_f32_f16" or name == "v_dot2acc_f32_bf16":
            bits32 = Operand("f", 32, True)
        elif "f32" in name:
            bits32 = Operand("f", 32)
        elif name.endswith("i32"):
            bits32 = Operand("i", 32)
        s0 = vector(t, op, inst.get(f"src{half}0"), bits32, literal)
        s1 = vector(t, op, inst.get(f"vsrc{half}1"), bits32, literal)
        op.reads.add(dst)
        d = f"d{half}"
        lines = [f"u32 {d} = v{dst};", "{", f"const u32 S0 = {s0}, S1 = {s1}; u32 d0 = v{dst};"]
        if name in handwritten.LANE:
            lines.append(handwritten.LANE[name].c.replace("{ieee}", "ieee" if t.ieee else "quiet"))
        elif name in ("v_max_f32", "v_min_f32"):
            raise Unsupported(name)
        else:
            single = None
            for enum in (ins.VOP2Op, ins.VOP1Op):
                for suffix in ("_E32", ""):
                    single = single or getattr(enum, name.upper() + suffix, None)
            if single is None:
                raise Unsupported(f"dual operation {name}")
            ctx = t.context(inst, {"S0": 32, "S1": 32}, 32)
            if _takes_mask(name):
                lines.append(f"const u32 cin = {_mask_read(t, op, 106)};")
                ctx.carry_in = lambda: "cin"
            lines += t.pseudo(inst, ctx, single)
        lines += [f"{d} = d0;", "}"]
        op.lines += lines
        writes.append((dst, d))
    op.writes = writes
    t.lane(op)


# ---------------------------------------------------------------- across lanes


def _cross(t: Translator, inst: Inst) -> list[str]:
    name = inst.name
    literal = t.literal(inst)
    src0, vdst = inst.get("src0"), inst.get("vdst")

    def column(enc: int) -> str:
        t.use_vgpr(enc - 256)
        return f"V[VX({enc - 256}) * L + "

    if inst.variant in ("DPP16", "DPP8", "SDWA"):
        raise Unsupported("modifier on a cross-lane operation")
    if name in ("v_readlane_b32", "v_readfirstlane_b32"):
        sdst = vdst if vdst < 256 else vdst - 256
        if t.arch != "cdna" and sdst == 124:
            return []
        if src0 < 256:
            value = scalar(t, src0, 32, "u", literal)
        elif name == "v_readlane_b32":
            lane = scalar(t, inst.get("src1"), 32, "u", literal)
            # Constant lanes are how compilers spill scalars; a program's own lanes are computed.
            check = ""
            if inst.get("src1") < 128:
                check = f"LANE_CHECK(({lane}) & {t.lanes - 1}, {t.site(inst)});"
            value = f"{column(src0)}(({lane}) & {t.lanes - 1})]"
            return [check, f"S[{sdst}] = {value};", *t.after_scalar_write(sdst)]
        else:
            value = f"{column(src0)}(EXEC64 ? __builtin_ctzll(EXEC64) : 0)]"
        return [f"S[{sdst}] = {value};", *t.after_scalar_write(sdst)]
    if name == "v_writelane_b32":
        lane = scalar(t, inst.get("src1"), 32, "u", literal)
        value = scalar(t, src0, 32, "u", literal)
        return [f"{column(vdst)}(({lane}) & {t.lanes - 1})] = {value};"]
    if name in ("v_permlane16_b32", "v_permlanex16_b32"):
        lo = scalar(t, inst.get("src1"), 32, "u", literal)
        hi = scalar(t, inst.get("src2"), 32, "u", literal)
        opsel = inst.get("opsel")
        return [
            f"permlane16(&{column(vdst)}0], &{column(src0)}0], bcast({lo}, {hi}), "
            f"{int('x16' in name)}, {opsel & 1}, {opsel >> 1 & 1}, EXEC64);"
        ]
    if name == "v_permlane64_b32":
        if not t.wide:
            return []
        return [
            f"{{ u32 t_[64]; for (int l = 0; l < 64; l++) t_[l] = {column(src0)}(l ^ 32)]; "
            f"for (int l = 0; l < 64; l++) if (EXEC64 >> l & 1) {column(vdst)}l] = t_[l]; }}"
        ]
    if name in ("v_permlane32_swap_b32", "v_permlane16_swap_b32"):
        span = 32 if "32" in name else 16
        return [
            f"for (int l = 0; l < 64; l++) if (!(l & {span})) {{ "
            f"u32 t_ = {column(src0)}l]; {column(src0)}l] = {column(vdst)}(l + {span})]; "
            f"{column(vdst)}(l + {span})] = t_; }}"
        ]
    if name.startswith("v_movrel"):
        return _relative(t, inst)
    if name == "v_swap_b32":
        return [
            f"for (int l = 0; l < L; l++) if (em[l]) {{ u32 t_ = {column(src0)}l]; "
            f"{column(src0)}l] = {column(vdst)}l]; {column(vdst)}l] = t_; }}"
        ]
    raise Unsupported("cross-lane operation")


HELPERS = r"""
#define REL(n) ((u32)(n) < NV ? (u32)(n) : 0)
INLINE u32 quiet_min_f32(u32 a, u32 b) { return f2u(p_min_f32(u2f(a), u2f(b))); }
INLINE u32 quiet_max_f32(u32 a, u32 b) { return f2u(p_max_f32(u2f(a), u2f(b))); }
INLINE u32 clamp_f(u32 x) { float f = u2f(x); f = f > 0.0f ? f : 0.0f; return f2u(f < 1.0f ? f : 1.0f); }
INLINE u32 clamp_h(u32 x) { return f2h(u2f(clamp_f(f2u(h2f(x))))); }
INLINE u64 clamp_d(u64 x) { double f = u2d(x); f = f > 0.0 ? f : 0.0; return d2u(f < 1.0 ? f : 1.0); }
INLINE u32 sat_u64(u64 x) { return x > 0xffffffffull ? 0xffffffffu : (u32)x; }
INLINE u32 sat_i64(i64 x) {
  return (u32)(x > 0x7fffffffll ? 0x7fffffffll : x < -0x80000000ll ? -0x80000000ll : x);
}
INLINE u32 pk_sat(u32 a, u32 b, int how) {
  u32 r = 0;
  for (int i = 0; i < 32; i += 16) {
    i32 x = how & 2 ? (i16)(a >> i) : (i32)((a >> i) & 0xffff);
    i32 y = how & 2 ? (i16)(b >> i) : (i32)((b >> i) & 0xffff);
    i32 s = how & 1 ? x - y : x + y;
    i32 lo = how & 2 ? -32768 : 0, hi = how & 2 ? 32767 : 65535;
    r |= (u32)((s < lo ? lo : s > hi ? hi : s) & 0xffff) << i;
  }
  return r;
}
#define f_to_fp8(x) f_to_8(x, 3, 8, fp8_clamp)
#define f_to_bf8(x) f_to_8(x, 2, 16, fp8_clamp)
INLINE u32 sr_insert(u32 old, u32 byte, u32 opsel) {
  u32 s = 8 * ((opsel >> 2) & 3);
  return (old & ~(0xffu << s)) | byte << s;
}
INLINE float sr_add(u32 x, u32 random, u32 keep) {
  if ((x & 0x7f800000u) == 0x7f800000u) return u2f(x);
  u32 m = (x & 0x7fffffu) + (random >> keep);
  return u2f((x & 0xff800000u) + m);
}
static void permlane16(u32 *d, const u32 *s, u64 sel, int other, int fi, int bound, u64 exec) {
  u32 t[L], ok[L];
  for (int l = 0; l < L; l++) {
    int row = (l & ~15) ^ (other ? 16 : 0);
    int src = row + (int)((sel >> (4 * (l & 15))) & 15);
    int on = fi || (exec >> src & 1);
    t[l] = on ? s[src] : 0;
    ok[l] = on || bound;
  }
  for (int l = 0; l < L; l++) if ((exec >> l & 1) && ok[l]) d[l] = t[l];
}
#if HP_LANES
#define LANE_CHECK(x, site) do { u32 x_ = (x); if (!(EXEC64 >> x_ & 1)) { \
  fail(k, w, F_LANE, site, x_, x_, 4, 0); goto fault; } } while (0)
#else
#define LANE_CHECK(x, site) (void)0
#endif
"""
