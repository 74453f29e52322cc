"""Memory instructions as C: FLAT, GLOBAL, SCRATCH, BUFFER, DS and SMEM.

Address arithmetic: "RDNA3 Instruction Set Architecture Reference Guide" and "AMD Instinct MI300
Instruction Set Architecture Reference Guide", chapters on scalar memory, vector memory, flat
memory and data share operations. What an atomic operation computes comes from the pseudocode.
"""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hipport.emulator import pcode
from hipport.emulator.decode import Inst, pseudocode
from hipport.emulator.operands import Unsupported, scalar

if TYPE_CHECKING:
    from hipport.emulator.translate import Translator


@dataclass(frozen=True, slots=True)
class Access:
    """A plain load or store: bytes each, how many, sign extension, which half (D16)."""

    store: bool
    unit: int
    count: int
    signed: bool = False
    half: str = ""


_WORDS = {
    "dword": 1,
    "dwordx2": 2,
    "dwordx3": 3,
    "dwordx4": 4,
    "dwordx8": 8,
    "dwordx16": 16,
    "b32": 1,
    "b64": 2,
    "b96": 3,
    "b128": 4,
    "b256": 8,
    "b512": 16,
}
_SMALL = {
    "ubyte": (1, False),
    "sbyte": (1, True),
    "ushort": (2, False),
    "sshort": (2, True),
    "u8": (1, False),
    "i8": (1, True),
    "u16": (2, False),
    "i16": (2, True),
    "byte": (1, False),
    "short": (2, False),
    "b8": (1, False),
    "b16": (2, False),
}


def plain_access(name: str) -> Access | None:
    """What a load or store named `name` (without its unit's prefix) moves; None if it is neither.

    >>> plain_access("load_dwordx4").count
    4
    """
    match = re.fullmatch(
        r"(load|store|read|write)_(d16_hi_|d16_)?([a-z]+\d*(?:x\d+)?)(_d16_hi|_d16)?", name
    )
    if match is None:
        return None
    store = match[1] in ("store", "write")
    half = (match[2] or match[4] or "").strip("_")
    half = {"d16": "lo", "d16_hi": "hi", "": ""}[half]
    kind = match[3]
    if kind in _WORDS:
        return Access(store, 4, _WORDS[kind])
    if kind in _SMALL:
        unit, signed = _SMALL[kind]
        if kind in ("b8", "b16", "short", "byte") and half == "" and not store and kind != "b8":
            half = ""
        return Access(store, unit, 1, signed, half)
    return None


def loaded(access: Access, old: str, p: str = "p") -> str:
    """C of the register after loading one small unit."""
    raw = f"ld{access.unit * 8}({p})"
    if access.signed:
        raw = f"((u32)(i32)(i{access.unit * 8}){raw})"
    if access.half == "lo":
        return f"(({old} & 0xffff0000u) | ({raw} & 0xffffu))"
    if access.half == "hi":
        return f"(({old} & 0xffffu) | ({raw} << 16))"
    return raw


def _vreg(n: int) -> str:
    return f"V[VX({n}) * L + l]"


def each_lane(lines: list[str]) -> list[str]:
    """A loop over the active lanes."""
    return [
        "{ RACE_TICK; u64 ex_ = EXEC64; while (ex_) { const int l = __builtin_ctzll(ex_); ex_ &= ex_ - 1;",
        *lines,
        "} }",
    ]


# ---------------------------------------------------------------- atomics

_ATOMIC_FORM = re.compile(
    r"^(?:s_)?(?:flat|global|buffer|ds|scratch|s)?_?(?:buffer_)?(?:atomic_)?(.*)$"
)


def atomic_lines(
    t: Translator,
    inst: Inst,
    pointer: str,
    data: list[str],
    returns: list[str] | None,
    data2: list[str] | None = None,
) -> list[str]:
    """C of one lane's read-modify-write at `pointer` (a C expression giving NULL on a fault).

    `data` are the data registers as C; `returns` the registers that take the old value. The new
    value is what the pseudocode computes; the exchange is a compare-and-swap loop.
    """
    text = pseudocode(t.arch, inst.op)
    if text is None:
        raise Unsupported("no pseudocode")
    wide = any(x in text for x in (".u64", ".i64", ".b64", ".f64"))
    bits = 64 if wide else 32
    u = f"u{bits}"

    def operand(regs: list[str]) -> str:
        return f"bcast({regs[0]}, {regs[1]})" if wide and len(regs) > 1 else regs[0]

    compare = "cmpswap" in inst.name or "cmpst" in inst.name or "cmpstore" in inst.name
    values: dict[str, str] = {}
    if compare and data2 is None:
        half = len(data) // 2
        whole = "|".join(f"((u128){r} << {32 * i})" for i, r in enumerate(data))
        values["DATA"] = f"({whole})" if wide else f"bcast({data[0]}, {data[1]})"
        width = 128 if wide else 64
        del half
    else:
        values["DATA"] = operand(data)
        width = bits
    if data2:
        values["DATA2"] = operand(data2)

    def read(name: str) -> pcode.Value | None:
        if name == "DATA":
            return pcode.Value("dat", ("b", width))
        if name == "DATA2":
            return pcode.Value("dat2", ("b", bits))
        if name in ("ADDR", "addr", "OFFSET0", "OFFSET1"):
            return pcode.Value("0u", ("u", 32))
        if name == "RETURN_DATA":
            return pcode.Value("old", ("b", bits))
        return None

    text = "\n".join(
        line
        for line in text.split("\n")
        if "Calc" not in line and not line.strip().startswith("RETURN_DATA")
    )
    text = re.sub(r"MEM\[ADDR\](?!\.)", f"MEM[ADDR].b{bits}", text).replace(
        "= DATA;", "= DATA.b32;"
    )
    text = text.rstrip().rstrip(";")
    ctx = pcode.Context(read, {}, memory=("cur", "nw"))
    try:
        code = pcode.compile_pcode(text, ctx)
    except pcode.PcodeError as error:
        raise Unsupported(f"atomic: {error}") from error
    out = [
        f"u8 *p = {pointer}; if (!p) goto fault;",
        f"{'u128' if width == 128 else f'u{width}'} dat = {values['DATA']};",
    ]
    if "DATA2" in values:
        out.append(f"{u} dat2 = {values['DATA2']};")
    # `MEM` is read where the text says so, also after it is assigned: keep one variable for it.
    body = [line.replace("nw =", "cur =") for line in code]
    out += [
        f"{u} *q = ({u} *)p, old = __atomic_load_n(q, __ATOMIC_RELAXED), cur;",
        "do { cur = old;",
        *body,
        "} while (!__atomic_compare_exchange_n(q, &old, cur, 0, __ATOMIC_SEQ_CST, "
        "__ATOMIC_RELAXED));",
    ]
    if returns is not None:
        out.append(f"{returns[0]} = (u32)old;")
        if wide and len(returns) > 1:
            out.append(f"{returns[1]} = (u32)(old >> 32);")
    return out


# ---------------------------------------------------------------- FLAT, GLOBAL, SCRATCH

_NO_EFFECT = (
    "buffer_wbl2",
    "buffer_inv",
    "buffer_gl0_inv",
    "buffer_gl1_inv",
    "buffer_wbinvl1",
    "buffer_wbinvl1_vol",
    "s_dcache_inv",
    "s_dcache_wb",
    "s_dcache_inv_vol",
    "s_dcache_wb_vol",
    "s_gl1_inv",
    "s_icache_inv",
)


def no_effect(name: str) -> bool:
    """Cache control, which a coherent machine does not need."""
    return name in _NO_EFFECT


def flat(t: Translator, inst: Inst) -> list[str]:
    """FLAT, GLOBAL and SCRATCH instructions."""
    unit, _, rest = inst.name.partition("_")
    offset = inst.get("offset")
    bits = 13 if unit != "flat" or t.arch != "cdna" else 12
    if unit == "flat":
        if t.arch == "cdna":
            offset &= 0xFFF
        else:
            # RDNA3 FLAT offsets are unsigned 12 bits in segment FLAT.
            offset &= 0xFFF
    elif offset >> (bits - 1):
        offset -= 1 << bits
    acc = inst.get("acc")
    saddr = inst.get("saddr", 124)
    addr = inst.get("addr") - 256
    data = inst.get("data") - 256 + (256 if acc else 0)
    vdst = inst.get("vdst") - 256 + (256 if acc else 0)
    no_saddr = saddr in (124, 127) if t.arch == "cdna" else saddr == 124
    no_saddr = no_saddr or saddr == 127
    if unit == "flat":
        no_saddr = True
    if unit == "scratch":
        sve = inst.get("sve")
        use_vaddr = bool(sve) if t.target != "gfx90a" else no_saddr
        parts = []
        if use_vaddr:
            t.use_vgpr(addr)
            parts.append(_vreg(addr))
        if not no_saddr:
            parts.append(scalar(t, saddr, 32, "u", None))
        address = "(u32)(" + " + ".join([*parts, f"({offset})"]) + ")"
        pointer = "sptr(k, w, {site}, a + {at}, {n}, {wr}, l)"
        kind = "u32"
    else:
        t.use_vgpr(addr)
        if no_saddr:
            t.use_vgpr(addr + 1)
            address = f"bcast({_vreg(addr)}, {_vreg(addr + 1)}) + (i64)({offset})"
        else:
            address = f"{scalar(t, saddr, 64, 'u', None)} + {_vreg(addr)} + (i64)({offset})"
        f = "fptr" if unit == "flat" else "gptr"
        pointer = f + "(k, w, {site}, a + {at}, {n}, {wr}, l)"
        kind = "u64"
    access = plain_access(rest)
    if access is not None:
        return _move(t, inst, access, kind, address, pointer, data if access.store else vdst)
    if rest.startswith("load_lds") and unit == "global" and "addtid" not in rest:
        return _load_lds(t, inst, kind, address, pointer, rest.removeprefix("load_lds_"), offset)
    if rest.startswith("load_lds"):
        raise Unsupported("load into LDS")
    if rest.startswith("atomic") and unit != "scratch":
        return _atomic(t, inst, address, pointer, data, vdst)
    raise Unsupported("memory operation")


def _load_lds(
    t: Translator, inst: Inst, kind: str, address: str, pointer: str, what: str, offset: int
) -> list[str]:
    """GLOBAL_LOAD_LDS: lanes' data go to LDS at M0 + offset, one element a lane."""
    access = plain_access("load_" + what)
    if access is None:
        raise Unsupported("load into LDS")
    m0 = "S[124]" if t.arch == "cdna" else "S[125]"
    size = access.unit * access.count
    step = max(4, size)
    site, second = t.site(inst), t.site(inst)
    lines = [
        f"const {kind} a = {address};",
        f"u8 *p = {pointer.format(site=site, at=0, n=size, wr=0)}; if (!p) goto fault;",
        f"u8 *q = lptr(k, w, {second}, ({m0} & 0xffffu) + ({offset}) + {step}u * l, {step}, 1, l); "
        "if (!q) goto fault;",
    ]
    if access.unit == 4:
        lines.append(f"__builtin_memcpy(q, p, {size});")
    else:
        lines.append(f"st32(q, {loaded(access, '0')});")
    return each_lane(lines)


def _move(
    t: Translator, inst: Inst, access: Access, kind: str, address: str, pointer: str, reg: int
) -> list[str]:
    site = t.site(inst)
    write = int(access.store)
    lines = [f"const {kind} a = {address};"]
    size = access.unit * access.count
    for i in range(access.count):
        t.use_vgpr(reg + i)
    lines.append(
        f"u8 *p = {pointer.format(site=site, at=0, n=size, wr=write)}; if (!p) goto fault;"
    )
    if access.unit == 4:
        for i in range(access.count):
            if access.store:
                lines.append(f"st32(p + {4 * i}, {_vreg(reg + i)});")
            else:
                lines.append(f"{_vreg(reg + i)} = ld32(p + {4 * i});")
    elif access.store:
        value = f"({_vreg(reg)} >> 16)" if access.half == "hi" else _vreg(reg)
        lines.append(f"st{access.unit * 8}(p, {value});")
    else:
        lines.append(f"{_vreg(reg)} = {loaded(access, _vreg(reg))};")
    return each_lane(lines)


def _atomic(
    t: Translator, inst: Inst, address: str, pointer: str, data: int, vdst: int
) -> list[str]:
    text = pseudocode(t.arch, inst.op) or ""
    wide = any(x in text for x in (".u64", ".i64", ".b64", ".f64"))
    words = (2 if wide else 1) * (2 if "cmpswap" in inst.name else 1)
    returning = inst.get("sc0") if t.arch == "cdna" else inst.get("glc")
    returned = 2 if wide else 1
    for i in range(words):
        t.use_vgpr(data + i)
    if returning:
        for i in range(returned):
            t.use_vgpr(vdst + i)
    site = t.site(inst)
    where = pointer.format(site=site, at=0, n=8 if wide else 4, wr=3)
    lines = [f"const u64 a = {address};"]
    lines += atomic_lines(
        t,
        inst,
        where,
        [_vreg(data + i) for i in range(words)],
        [_vreg(vdst + i) for i in range(returned)] if returning else None,
    )
    return each_lane(lines)


# ---------------------------------------------------------------- BUFFER


def buffer(t: Translator, inst: Inst) -> list[str]:
    """Untyped buffer instructions: raw and structured buffers, and scratch by descriptor."""
    if no_effect(inst.name):
        return []
    rest = inst.name.partition("_")[2]
    acc = inst.get("acc")
    vdata = inst.get("vdata") - 256 + (256 if acc else 0)
    vaddr = inst.get("vaddr") - 256
    base = inst.get("srsrc")
    offset = inst.get("offset")
    offen, idxen = inst.get("offen"), inst.get("idxen")
    if inst.get("lds"):
        raise Unsupported("buffer load into LDS")
    soffset = scalar(t, inst.get("soffset"), 32, "u", None)
    index = voffset = "0u"
    if idxen:
        index = _vreg(vaddr)
        t.use_vgpr(vaddr)
    if offen:
        at = vaddr + (1 if idxen else 0)
        voffset = _vreg(at)
        t.use_vgpr(at)
    site = t.site(inst)
    access = plain_access(rest)
    atomic = rest.startswith("atomic")
    if access is None and not atomic:
        raise Unsupported("buffer operation")
    lines: list[str] = []
    common = (
        f"k, w, {site}, &S[{base}], {index}, {voffset}, {offset}u, {soffset}, {int(idxen)}, "
        f"{int(t.arch != 'cdna')}"
    )
    if access is not None:
        size = access.unit * access.count
        for i in range(access.count):
            t.use_vgpr(vdata + i)
        lines.append(
            f"int oob; u8 *p = bptr({common}, {size}, {int(access.store)}, l, &oob); "
            "if (!p && !oob) goto fault;"
        )
        regs = [_vreg(vdata + i) for i in range(access.count)]
        if access.unit == 4:
            if access.store:
                body = " ".join(f"st32(p + {4 * i}, {r});" for i, r in enumerate(regs))
                lines.append(f"if (p) {{ {body} }}")
            else:
                lines += [f"{r} = p ? ld32(p + {4 * i}) : 0;" for i, r in enumerate(regs)]
        elif access.store:
            value = f"({regs[0]} >> 16)" if access.half == "hi" else regs[0]
            lines.append(f"if (p) st{access.unit * 8}(p, {value});")
        else:
            lines.append("static const u8 zero[4] = {0}; if (!p) p = (u8 *)zero;")
            lines.append(f"{regs[0]} = {loaded(access, regs[0])};")
        return each_lane(lines)
    text = pseudocode(t.arch, inst.op) or ""
    wide = any(x in text for x in (".u64", ".i64", ".b64", ".f64"))
    words = (2 if wide else 1) * (2 if "cmpswap" in inst.name else 1)
    returned = 2 if wide else 1
    for i in range(max(words, returned)):
        t.use_vgpr(vdata + i)
    returning = inst.get("sc0") if t.arch == "cdna" else inst.get("glc")
    lines.append(
        f"int oob; u8 *pp = bptr({common}, {8 if wide else 4}, 3, l, &oob); "
        "if (!pp && !oob) goto fault;"
    )
    exchange = atomic_lines(
        t,
        inst,
        "pp",
        [_vreg(vdata + i) for i in range(words)],
        [_vreg(vdata + i) for i in range(returned)] if returning else None,
    )
    lines.append("if (pp) {")
    lines += exchange
    lines.append("}")
    if returning:
        lines.append(
            "else { " + " ".join(f"{_vreg(vdata + i)} = 0;" for i in range(returned)) + " }"
        )
    return each_lane(lines)


# ---------------------------------------------------------------- DS


def ds(t: Translator, inst: Inst) -> list[str]:
    """LDS instructions, and the cross-lane ones of the same encoding."""
    name = inst.name
    if inst.get("gds"):
        raise Unsupported("global data share")
    acc = inst.get("acc")
    shift = 256 if acc else 0
    addr = inst.get("addr") - 256
    data0, data1 = inst.get("data0") - 256 + shift, inst.get("data1") - 256 + shift
    vdst = inst.get("vdst") - 256 + shift
    offset = inst.get("offset0") | inst.get("offset1") << 8
    rest = name.partition("_")[2]
    if rest == "nop":
        return []
    if rest in ("permute_b32", "bpermute_b32"):
        t.use_vgpr(addr, data0, vdst)
        return [
            f"ds_{rest[:-4]}(&V[VX({vdst}) * L], &V[VX({addr}) * L], &V[VX({data0}) * L], "
            f"{offset}u, EXEC64{t.lane_check(inst)});"
            if rest[0] == "p"
            else f"if (!ds_bpermute(k, w, {t.site(inst)}, &V[VX({vdst}) * L], &V[VX({addr}) * L], "
            f"&V[VX({data0}) * L], {offset}u, EXEC64)) goto fault;"
        ]
    if rest == "swizzle_b32":
        t.use_vgpr(addr, vdst)
        return [f"ds_swizzle(&V[VX({vdst}) * L], &V[VX({addr}) * L], {offset}u, EXEC64);"]
    address = f"(u32)({_vreg(addr)} + {offset}u)"
    pointer = "lptr(k, w, {site}, a + {at}, {n}, {wr}, l)"
    # Two-address forms: each offset counts elements (or 64 elements).
    two = re.fullmatch(r"(read|write|load|store)_?2(addr)?(st64|_stride64)?_(b32|b64)", rest)
    if two:
        store = two[1] in ("write", "store")
        words = 1 if two[4] == "b32" else 2
        scale = words * 4 * (64 if two[3] else 1)
        site = t.site(inst)
        lines = [f"const u32 a = {_vreg(addr)};"]
        t.use_vgpr(addr)
        for i in (0, 1):
            at = inst.get(f"offset{i}") * scale
            lines.append(
                f"u8 *p{i} = lptr(k, w, {site}, a + {at}u, {words * 4}, {int(store)}, l); "
                f"if (!p{i}) goto fault;"
            )
        for i in (0, 1):
            for j in range(words):
                if store:
                    reg = (data0, data1)[i] + j
                    t.use_vgpr(reg)
                    lines.append(f"st32(p{i} + {4 * j}, {_vreg(reg)});")
        if not store:
            for i in (0, 1):
                for j in range(words):
                    lines.append(f"const u32 r{i * words + j} = ld32(p{i} + {4 * j});")
            for i in range(2 * words):
                t.use_vgpr(vdst + i)
                lines.append(f"{_vreg(vdst + i)} = r{i};")
        return each_lane(lines)
    if (access := plain_access(rest)) is not None:
        t.use_vgpr(addr)
        return _move(t, inst, access, "u32", address, pointer, data0 if access.store else vdst)
    if rest in ("read_addtid_b32", "load_addtid_b32", "write_addtid_b32", "store_addtid_b32"):
        store = rest.startswith(("write", "store"))
        m0 = "S[124]" if t.arch == "cdna" else "S[125]"
        return _move(
            t,
            inst,
            Access(store, 4, 1),
            "u32",
            f"(u32)({offset}u + ({m0} & 0xffffu) + 4u * l)",
            pointer,
            data0 if store else vdst,
        )
    if rest in ("consume", "append"):
        m0 = "S[124]" if t.arch == "cdna" else "S[125]"
        t.use_vgpr(vdst)
        sign = "-" if rest == "consume" else "+"
        return [
            f"{{ u8 *p = lptr(k, w, {t.site(inst)}, ({m0} >> 16) + {offset}u, 4, 3, 0); "
            "if (!p) goto fault; u32 old = ld32(p); "
            f"st32(p, old {sign} (u32)__builtin_popcountll(EXEC64)); "
            f"for (int l = 0; l < L; l++) if (EXEC64 >> l & 1) {_vreg(vdst)} = old; }}"
        ]
    two = re.fullmatch(
        r"(wrxchg2|wrxchg2st64|storexchg_2addr|storexchg_2addr_stride64)_rtn_(b32|b64)", rest
    )
    if two:
        words = 1 if two[2] == "b32" else 2
        scale = words * 4 * (64 if "64" in two[1][7:] else 1)
        site = t.site(inst)
        lines = [f"const u32 a = {_vreg(addr)};"]
        t.use_vgpr(addr)
        for i, reg in enumerate((data0, data1)):
            at = inst.get(f"offset{i}") * scale
            lines.append(
                f"u8 *p{i} = lptr(k, w, {site}, a + {at}u, {words * 4}, 3, l); "
                f"if (!p{i}) goto fault;"
            )
            for j in range(words):
                t.use_vgpr(reg + j, vdst + i * words + j)
                lines.append(f"const u32 r{i}_{j} = ld32(p{i} + {4 * j});")
        for i, reg in enumerate((data0, data1)):
            for j in range(words):
                lines.append(f"const u32 n{i}_{j} = {_vreg(reg + j)};")
        for i in (0, 1):
            for j in range(words):
                lines.append(f"st32(p{i} + {4 * j}, n{i}_{j});")
                lines.append(f"{_vreg(vdst + i * words + j)} = r{i}_{j};")
        return each_lane(lines)
    text = pseudocode(t.arch, inst.op) or ""
    if "MEM[" not in text or "bvh" in name or "gws" in name:
        raise Unsupported("LDS operation")
    wide = any(x in text for x in (".u64", ".i64", ".b64", ".f64"))
    words = 2 if wide else 1
    returning = "_rtn" in name
    uses2 = "DATA2" in text
    t.use_vgpr(addr)
    for i in range(words):
        t.use_vgpr(data0 + i)
        if uses2:
            t.use_vgpr(data1 + i)
        if returning:
            t.use_vgpr(vdst + i)
    lines = [f"const u32 a = {address};"]
    lines += atomic_lines(
        t,
        inst,
        pointer.format(site=t.site(inst), at=0, n=words * 4, wr=3),
        [_vreg(data0 + i) for i in range(words)],
        [_vreg(vdst + i) for i in range(words)] if returning else None,
        [_vreg(data1 + i) for i in range(words)] if uses2 else None,
    )
    return each_lane(lines)


# ---------------------------------------------------------------- SMEM


def smem(t: Translator, inst: Inst) -> list[str]:
    """Scalar loads, stores and atomics, clocks and cache control."""
    name = inst.name
    if no_effect(name):
        return []
    sdata = inst.get("sdata")
    if name in ("s_memtime", "s_memrealtime"):
        return [
            f"{{ u64 t_ = w->icount + w->tick; S[{sdata}] = (u32)t_; "
            f"S[{sdata + 1}] = (u32)(t_ >> 32); }}"
        ]
    offset = inst.get("offset")
    if offset >> 20:
        offset -= 1 << 21
    parts = [f"(i64)({offset})"]
    soffset = inst.get("soffset", 124)
    if t.arch == "cdna":
        # The immediate counts only with IMM set; SOFFSET adds a register with its own enable.
        if not inst.get("imm"):
            parts = []
            parts.append(f"(u64)S[{offset & 0x7F}]")
        if inst.get("soffset_en"):
            parts.append(f"(u64){scalar(t, soffset, 32, 'u', None)}")
    elif soffset != 124:
        parts.append(f"(u64){scalar(t, soffset, 32, 'u', None)}")
    base = inst.get("sbase")
    match = re.fullmatch(r"s_(buffer_|scratch_)?(load|store)_(\w+)", name)
    if match is None or match[3] not in _WORDS:
        raise Unsupported("scalar memory operation")
    if match[1] == "scratch_":
        raise Unsupported("scalar scratch access")
    words = _WORDS[match[3]]
    store = match[2] == "store"
    site = t.site(inst)
    total = " + ".join(parts)
    if match[1]:
        lines = [
            f"{{ u64 off_ = ({total}) & ~3ull; int oob = off_ + {4 * words} > S[{base + 2}]; "
            f"u64 a = ((u64)(S[{base + 1}] & 0xffffu) << 32 | S[{base}]) + off_;"
        ]
        lines.append("static const u32 zero[16] = {0};")
        lines.append(
            f"u8 *p = oob ? (u8 *)zero : gptr(k, w, {site}, a, {4 * words}, {int(store)}, 0); "
            "if (!p) goto fault;"
        )
    else:
        lines = [
            f"{{ u64 a = (S64({base}) + {total}) & ~3ull;",
            f"u8 *p = gptr(k, w, {site}, a, {4 * words}, {int(store)}, 0); if (!p) goto fault;",
        ]
    regs = [f"S[{sdata + i}]" for i in range(words)]
    if store:
        lines += [f"st32(p + {4 * i}, {r});" for i, r in enumerate(regs)]
    else:
        lines.append(f"u32 r_[{words}]; __builtin_memcpy(r_, p, {4 * words});")
        if not (t.arch != "cdna" and sdata == 124):
            lines += [f"{r} = r_[{i}];" for i, r in enumerate(regs)]
    lines.append("}")
    if not store:
        lines += t.after_scalar_write(sdata, words)
    return lines


HELPERS = r"""
/* Buffer addressing: "RDNA3 ISA", "MI300 ISA", buffer address equation. Out-of-range reads give 0
 * and writes nothing, as the descriptor's bound says; inside it, the watch still checks. */
INLINE u8 *bptr(Worker *k, Wave *w, u32 site, const u32 *r, u32 index, u32 voffset, u32 inst, u32 soff,
                int idxen, int rdna, u32 n, u32 write, u32 lane, int *oob) {
  *oob = 0;
  u32 tid = rdna ? (r[3] >> 23) & 1 : (r[3] >> 23) & 1;
  int swizzle = rdna ? (r[1] >> 30) & 3 : (int)(r[1] >> 31);
  if (swizzle && tid) /* the scratch descriptor: offsets are a lane's own, SOFFSET a wave's */
    return sptr(k, w, site, voffset + inst + soff / L, n, write, lane);
  u64 base = (u64)(r[1] & 0xffffu) << 32 | r[0];
  u32 stride = (r[1] >> 16) & 0x3fff, records = r[2];
  u32 off = voffset + inst;
  if (tid) index += lane;
  if (swizzle) { *oob = 0; return fail(k, w, F_MODE, site, lane, base, n, write); }
  if (stride && (idxen || tid)) {
    if (index >= records || off + n > stride) { *oob = 1; return 0; }
  } else if ((u64)off + soff + n > records && (u64)off + n + (rdna ? 0 : soff) > records) { *oob = 1; return 0; }
  return gptr(k, w, site, base + soff + off + (u64)stride * index, n, write, lane);
}
static int ds_bpermute(Worker *k, Wave *w, u32 site, u32 *d, const u32 *a, const u32 *s, u32 off, u64 exec) {
  u32 t[L];
  for (int l = 0; l < L; l++) {
    u32 src = (a[l] + off) / 4 % L;
    t[l] = exec >> src & 1 ? s[src] : 0;
#if HP_LANES
    if ((exec >> l & 1) && !(exec >> src & 1)) { fail(k, w, F_LANE, site, l, src, 4, 0); return 0; }
#endif
  }
  for (int l = 0; l < L; l++) if (exec >> l & 1) d[l] = t[l];
  return 1;
}
static void ds_permute(u32 *d, const u32 *a, const u32 *s, u32 off, u64 exec) {
  u32 t[L];
  for (int l = 0; l < L; l++) t[l] = 0;
  for (int l = 0; l < L; l++) if (exec >> l & 1) t[(a[l] + off) / 4 % L] = s[l];
  for (int l = 0; l < L; l++) if (exec >> l & 1) d[l] = t[l];
}
static void ds_swizzle(u32 *d, const u32 *s, u32 off, u64 exec) {
  u32 t[L];
  for (int l = 0; l < L; l++) {
    int src;
    if (off >= 0xe000) { /* FFT */
      u32 m = off & 31;
      u32 j = brev32((u32)l & 31) >> 27;
      j = (j >> __builtin_popcount(m)) | ((u32)l & m) | ((u32)l & 32);
      src = (int)j;
    } else if (off >= 0xc000) { /* rotate */
      int by = (off >> 5) & 31, keep = off & 31;
      int from = off & 0x400 ? l - by : l + by;
      src = (l & (keep | 32)) | (from & 31 & ~keep);
    } else if (off & 0x8000) src = (l & ~3) | ((off >> (2 * (l & 3))) & 3);
    else {
      u32 j = (u32)l & 31;
      j = ((j & (off & 31)) | ((off >> 5) & 31)) ^ ((off >> 10) & 31);
      src = (int)(j | ((u32)l & 32));
    }
    t[l] = exec >> src & 1 ? s[src] : 0;
  }
  for (int l = 0; l < L; l++) if (exec >> l & 1) d[l] = t[l];
}
"""
