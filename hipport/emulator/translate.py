"""One kernel's machine code as one C file.

Control flow becomes labels and gotos over the reachable instructions; calls and returns go through
a switch over known code addresses; barriers and yields return from the function and resume at a
label. Register contents live in the wavefront's arrays, so a resumed wavefront needs nothing else.
"""

# ruff: noqa: E501  (lines of C)
from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hipport.emulator import handwritten, matrix, memory, operands, pcode, vectors
from hipport.emulator.codeobject import CodeObject, KernelInfo
from hipport.emulator.decode import Inst, decode, pseudocode, shape_of
from hipport.emulator.errors import EmulatorError, UnsupportedInstruction
from hipport.emulator.lanes import LaneLoop, LaneOp
from hipport.emulator.operands import Operand, Unsupported, constant, scalar, sign_modifiers, vector

#: Kernels longer than this (in instructions) are compiled without vectorisation.
_LARGE = 700


@dataclass(frozen=True, slots=True)
class Translation:
    """A kernel's C text and what the launcher needs to know of it.

    `sites` gives, for each numbered place in the C text that can fault, the instruction's address
    and name.
    """

    source: str
    sites: tuple[tuple[int, str], ...]
    registers: int
    instructions: int
    flags: tuple[str, ...] = field(default=())


_SOURCE = re.compile(r"\b(s_cbranch_\w+|s_branch)\b")
_NOTHING = frozenset(
    [
        "s_nop",
        "s_waitcnt",
        "s_waitcnt_depctr",
        "s_waitcnt_vscnt",
        "s_waitcnt_vmcnt",
        "s_waitcnt_expcnt",
        "s_waitcnt_lgkmcnt",
        "s_clause",
        "s_delay_alu",
        "s_inst_prefetch",
        "s_set_inst_prefetch_distance",
        "s_setprio",
        "s_sethalt",
        "s_incperflevel",
        "s_decperflevel",
        "s_icache_inv",
        "s_ttracedata",
        "s_ttracedata_imm",
        "s_code_end",
        "s_wait_idle",
        "s_wait_event",
        "s_version",
        "s_set_gpr_idx_off",
        "v_nop",
        "s_dcache_inv",
        "s_dcache_wb",
        "s_setkill",
        "s_perfmon",
    ]
)


@functools.lru_cache(maxsize=1)
def runtime() -> str:
    """The C text every kernel includes."""
    return Path(__file__).with_name("runtime.h").read_text()


class Translator:
    """Translates one kernel. Use `translate`."""

    def __init__(self, code: CodeObject, kernel: KernelInfo) -> None:
        self.code = code
        self.kernel = kernel
        self.arch = code.arch
        self.target = code.target
        self.wide = kernel.wave_size == 64
        self.lanes = kernel.wave_size
        self.loop = LaneLoop(self.wide)
        self.out: list[str] = []
        self.places: list[tuple[int, str]] = []
        self.vgprs: set[int] = {0}
        self.resumes: list[str] = []
        self.serial = 0
        self.current: Inst | None = None
        mode = (kernel.rsrc1 >> 12) & 0xFF
        self.mode = mode | (0x200 if kernel.rsrc1 >> 23 & 1 else 0)
        self.ieee = kernel.rsrc1 >> 23 & 1
        self.dx10_clamp = kernel.rsrc1 >> 21 & 1
        self.gpr_index: int | None = None

    # ------------------------------------------------------------ bookkeeping

    def use_vgpr(self, *numbers: int) -> None:
        for n in numbers:
            if n < 0 or n > 511:
                raise Unsupported(f"vector register {n}")
            self.vgprs.add(n)

    def site(self, inst: Inst) -> int:
        self.places.append((inst.address, inst.name))
        return len(self.places) - 1

    def name(self, prefix: str) -> str:
        self.serial += 1
        return f"{prefix}{self.serial}"

    def lane_check(self, inst: Inst) -> str:
        return ""

    def flush(self) -> None:
        self.out.extend(self.loop.flush())

    def emit(self, lines: Iterable[str]) -> None:
        """Statements that are not part of a lane loop."""
        self.flush()
        self.out.extend(lines)

    def lane(self, op: LaneOp) -> None:
        self.use_vgpr(*op.reads, *[r for r, _ in op.writes])
        if self.loop.must_flush(op):
            self.flush()
        self.loop.add(op)
        if op.exec_bit is not None:
            self.flush()

    def after_scalar_write(self, first: int, words: int = 1) -> list[str]:
        """What must follow a write of scalar registers `first` and up."""
        if first <= 127 and first + words > 126:
            return ["EXECCHANGED;"]
        return []

    # ------------------------------------------------------------ operands

    def formats(self, inst: Inst) -> dict[str, Operand]:
        found = {}
        for name, (fmt, bits, _) in shape_of(self.arch, inst.op).items():
            found[name] = _operand(fmt.name, bits)
        return found

    def literal(self, inst: Inst) -> int | None:
        return inst.get("literal") if inst.has("literal") else None

    # ------------------------------------------------------------ scalar instructions

    def scalar_alu(self, inst: Inst) -> list[str]:
        name = inst.name
        if (special := self.scalar_special(inst)) is not None:
            return special
        formats = self.formats(inst)
        literal = self.literal(inst)
        values: dict[str, tuple[str, int]] = {}
        sdst = inst.get("sdst", -1)
        if inst.format == "SOPK":
            imm = inst.get("simm16")
            first_source = {"S0": (f"{imm:#x}u", 32)}
            if name.startswith("s_cmpk"):
                values = {"S0": (scalar(self, sdst, 32, "u", None), 32), "S1": (f"{imm:#x}u", 32)}
                sdst = -1
            else:
                values = first_source
        else:
            for i, field_name in enumerate(("ssrc0", "ssrc1")):
                if inst.has(field_name):
                    want = formats.get(field_name, Operand("u", 32))
                    bits = 64 if want.bits == 64 else 32
                    values[f"S{i}"] = (
                        scalar(self, inst.get(field_name), bits, _literal_kind(want), literal)
                        if want.bits != 16
                        else _scalar16(self, inst.get(field_name), want, literal),
                        bits,
                    )
        dest = formats.get("sdst", Operand("u", 32))
        bits = 64 if dest.bits == 64 else 32
        lines = ["{"]
        for key, (c, n) in values.items():
            lines.append(f"const u{n} {key} = {c};")
        discard = self.arch != "cdna" and sdst == 124
        old = "0" if discard or sdst < 0 else f"S64({sdst})" if bits == 64 else f"S[{sdst}]"
        lines.append(f"u{bits} d0 = {old};")
        writes_exec = False
        if name in handwritten.LANE:
            lines.append(handwritten.LANE[name].c)
            wrote = True
        else:
            ctx = self.context(inst, {k: n for k, (_, n) in values.items()}, bits)
            ctx.dest["SCC"] = ("scc", 32)
            ctx.dest["EXEC"] = ("ex", 64)
            lines.append("u64 ex = EXEC64;")
            code = self.pseudo(inst, ctx)
            lines += code
            wrote = "D0" in ctx.writes
            writes_exec = "EXEC" in ctx.writes
        if wrote and not discard and sdst >= 0:
            lines.append(f"S64({sdst}) = d0;" if bits == 64 else f"S[{sdst}] = d0;")
        if writes_exec:
            lines.append("SETEXEC(ex);")
        lines.append("}")
        if wrote and sdst >= 0 and not discard:
            lines += self.after_scalar_write(sdst, bits // 32)
        return lines

    def scalar_special(self, inst: Inst) -> list[str] | None:
        """Scalar instructions that touch the program counter or hardware registers."""
        name = inst.name
        sdst, ssrc = inst.get("sdst", -1), inst.get("ssrc0", -1)
        if name == "s_getpc_b64":
            return [f"S64({sdst}) = BASE + {inst.end:#x}ull;"]
        if name == "s_setpc_b64":
            return [f"JUMP({scalar(self, ssrc, 64, 'u', None)}, {self.site(inst)});"]
        if name == "s_swappc_b64":
            return [
                f"{{ u64 t_ = {scalar(self, ssrc, 64, 'u', None)}; "
                f"S64({sdst}) = BASE + {inst.end:#x}ull; JUMP(t_, {self.site(inst)}); }}"
            ]
        if name == "s_call_b64":
            target = inst.end + _signed16(inst.get("simm16")) * 4
            return [f"S64({sdst}) = BASE + {inst.end:#x}ull; goto L_{target:x};"]
        if name in ("s_movrels_b32", "s_movrels_b64"):
            m0 = "S[124]" if self.arch == "cdna" else "S[125]"
            if name.endswith("64"):
                return [f"S64({sdst}) = *(u64 *)&S[({ssrc} + {m0}) & 127];"]
            return [f"S[{sdst}] = S[({ssrc} + {m0}) & 127];"]
        if name in ("s_movreld_b32", "s_movreld_b64"):
            m0 = "S[124]" if self.arch == "cdna" else "S[125]"
            if name.endswith("64"):
                c = scalar(self, ssrc, 64, "u", self.literal(inst))
                return [f"*(u64 *)&S[({sdst} + {m0}) & 127] = {c};"]
            c = scalar(self, ssrc, 32, "u", self.literal(inst))
            return [f"S[({sdst} + {m0}) & 127] = {c};"]
        if name == "s_set_gpr_idx_on":
            # Bits of the raw second source: index src0, src1, src2, destination.
            self.gpr_index = inst.raw._raw >> 8 & 15
            self.identity = True
            c = scalar(self, ssrc, 32, "u", None)
            return [
                f"S[124] = (S[124] & 0xffff0f00u) | ({c} & 0xffu) | {self.gpr_index << 12:#x}u;"
            ]
        if name == "s_getreg_b32":
            return self.getreg(inst)
        if name in ("s_setreg_b32", "s_setreg_imm32_b32"):
            return self.setreg(inst)
        if name in ("s_rfe_b64", "s_cbranch_join", "s_cbranch_g_fork", "s_cbranch_i_fork"):
            raise Unsupported("trap handler or fork instruction")
        if name in ("s_sendmsg_rtn_b32", "s_sendmsg_rtn_b64"):
            if ssrc == 128:  # GET_DOORBELL, part of the abort sequence after s_trap
                return [f"S[{sdst}] = 0;"]
            if ssrc in (0x83, 131):  # GET_REALTIME
                return [f"S64({sdst}) = w->icount + w->tick;"]
            raise Unsupported(f"message {ssrc}")
        return None

    @staticmethod
    def scalar_special_name(name: str) -> bool:
        """Whether `scalar_special` handles `name`."""
        return name.startswith(
            (
                "s_getpc",
                "s_setpc",
                "s_swappc",
                "s_call",
                "s_movrel",
                "s_getreg",
                "s_setreg",
                "s_sendmsg",
            )
        )

    def getreg(self, inst: Inst) -> list[str]:
        imm = inst.get("simm16")
        reg, low, size = imm & 63, imm >> 6 & 31, (imm >> 11) + 1
        sdst = inst.get("sdst")
        values = {1: "w->mode", 2: "(u32)((EXEC64 == 0) << 9)", 3: "0u", 7: "0u"}
        if reg in (4, 23):
            value = "0u"
        elif reg == 15:
            value = "((PRIVATE_HI & 0xffffu) | (SHARED_HI << 16))"
            raise Unsupported("hardware register 15 (memory apertures)")
        elif reg == 29 and self.arch != "cdna":
            value = "(u32)((w->icount + w->tick) & 0xfffff)"
        elif reg == 20 and self.arch == "cdna" and self.target != "gfx90a":
            value = "0u"  # XCC_ID: the emulated device has one
        elif reg == 6:
            value = "((k->c->lds_size + 511) / 512) << 12"
        elif reg in values:
            value = values[reg]
        else:
            raise Unsupported(f"hardware register {reg}")
        ones = (1 << size) - 1
        return [f"S[{sdst}] = (({value}) >> {low}) & {ones:#x}u;", *self.after_scalar_write(sdst)]

    def setreg(self, inst: Inst) -> list[str]:
        imm = inst.get("simm16")
        reg, low, size = imm & 63, imm >> 6 & 31, (imm >> 11) + 1
        if reg != 1:
            if reg in (3, 7):
                return []
            raise Unsupported(f"write to hardware register {reg}")
        if inst.name == "s_setreg_imm32_b32":
            value = f"{inst.get('literal'):#x}u"
        else:
            value = scalar(self, inst.get("sdst"), 32, "u", None)
        ones = ((1 << size) - 1) << low
        self.changes_mode = True
        return [
            f"w->mode = (w->mode & ~{ones:#x}u) | (({value} << {low}) & {ones:#x}u);",
            f"SETMODE({self.site(inst)});",
        ]

    changes_mode = False
    identity = False

    def context(self, inst: Inst, sources: dict[str, int], bits: int) -> pcode.Context:
        """Names for the pseudocode of `inst`; `sources` gives S0, S1, S2 their widths."""

        def read(name: str) -> pcode.Value | None:
            if name in sources:
                return pcode.Value(name, ("b", sources[name]))
            if name == "D0":
                return pcode.Value("d0", ("b", bits))
            if name == "SCC":
                return pcode.Value("scc", ("u", 1))
            if name == "EXEC":
                return pcode.Value("ex", ("b", 64))
            if name in ("SIMM32", "SIMM16"):
                literal = self.literal(inst)
                if literal is None:
                    literal = inst.get("simm16")
                return pcode.Value(f"{literal:#x}u", ("b", 32))
            if name == "M0":
                return pcode.Value("S[124]" if self.arch == "cdna" else "S[125]", ("b", 32))
            return None

        return pcode.Context(
            read,
            {"D0": ("d0", bits)},
            {"WAVE_MODE.IEEE": self.ieee, "WAVE32": int(not self.wide), "WAVE64": int(self.wide)},
        )

    def pseudo(self, inst: Inst, ctx: pcode.Context, op: Any = None) -> list[str]:
        text = pseudocode(self.arch, inst.op if op is None else op)
        if text is None:
            raise Unsupported("the manual gives no pseudocode")
        try:
            return pcode.compile_pcode(text, ctx)
        except pcode.PcodeError as error:
            raise Unsupported(str(error)) from error

    # ------------------------------------------------------------ vector instructions

    def vector_alu(self, inst: Inst) -> None:
        vectors.translate(self, inst)

    # ------------------------------------------------------------ control flow

    def reachable(self) -> list[Inst]:
        """Instructions that can run, by address."""
        low, high = self.code.code
        text = self.code.text(low, high - low)
        seen: dict[int, Inst] = {}
        todo = [self.kernel.entry]
        called = False
        # Functions whose address lies in data outside the GOT can be called from anywhere.
        got_low, got_high = self.code.got
        functions = {
            value
            for offset, size, value in self.code.relocations
            if size == 8 and low <= value < high and not got_low <= offset < got_high
        }
        while todo:
            at = todo.pop()
            while at not in seen:
                if not low <= at < high:
                    raise self.unsupported_at(at, "code outside the text section")
                try:
                    inst = decode(text, at - low, at, self.arch, self.target)
                except ValueError as error:
                    raise self.unsupported_at(at, str(error)) from None
                seen[at] = inst
                name = inst.name
                if name == "s_branch":
                    at = inst.end + _signed16(inst.get("simm16")) * 4
                    continue
                if name.startswith("s_cbranch_") or name == "s_call_b64":
                    todo.append(inst.end + _signed16(inst.get("simm16")) * 4)
                elif name in ("s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"):
                    break
                elif name == "s_getpc_b64":
                    todo.extend(self.long_branch(inst, text, low, high))
                elif name in ("s_setpc_b64", "s_swappc_b64"):
                    if not called:
                        called = True
                        todo.extend(functions)
                    if name == "s_setpc_b64":
                        break
                at = inst.end
        self.calls = called
        return [seen[a] for a in sorted(seen)]

    calls = False

    def long_branch(self, getpc: Inst, text: bytes, low: int, high: int) -> list[int]:
        """Targets of `s_getpc; s_add_u32 lit; s_addc_u32 lit` that lie in the code."""
        at = getpc.end
        reg = getpc.get("sdst")
        for _ in range(6):
            if at >= high:
                break
            try:
                inst = decode(text, at - low, at, self.arch, self.target)
            except ValueError:
                break
            if inst.name == "s_add_u32" and inst.get("sdst") == reg and inst.get("ssrc0") == reg:
                value = constant(inst.get("ssrc1"), Operand("i", 32), self.literal(inst))
                if value is not None:
                    value = value - (1 << 32) if value >> 31 else value
                    target = getpc.end + value
                    if low <= target < high and target % 4 == 0:
                        self.extra_labels.add(target)
                        return [target]
                    got_low, got_high = self.code.got
                    if got_low <= target < got_high:
                        entries = [v for o, s, v in self.code.relocations if o == target and s == 8]
                        entries = [v for v in entries if low <= v < high]
                        self.extra_labels.update(entries)
                        return entries
                break
            at = inst.end
        return []

    def unsupported_at(self, address: int, why: str) -> UnsupportedInstruction:
        return UnsupportedInstruction("?", address, self.kernel.demangled, None, why)

    extra_labels: set[int]

    def translate(self) -> Translation:
        self.extra_labels = set()
        insts = self.reachable()
        known = {i.address for i in insts}
        labels: set[int] = {self.kernel.entry} | (self.extra_labels & known)
        back: set[int] = set()
        for i in insts:
            if i.name.startswith(("s_cbranch_", "s_branch", "s_call")):
                target = i.end + _signed16(i.get("simm16")) * 4
                labels.add(target)
                if target <= i.address:
                    back.add(target)
            if i.name in ("s_swappc_b64", "s_call_b64"):
                labels.add(i.end)
        if self.calls:
            labels |= {s.address for s in self.code.symbols if s.kind == "function"} & known
            back |= labels  # a call graph's loops are not told apart from straight calls
        labels &= known
        problems: list[UnsupportedInstruction] = []
        previous: Inst | None = None
        count = 0

        def settle() -> None:
            nonlocal count
            if count:
                self.emit([f"w->tick += {count};"])
                count = 0

        for inst in insts:
            self.current = inst
            if previous is not None and previous.end != inst.address and not _ends(previous):
                settle()
                self.emit([f"goto L_{previous.end:x};"])
                labels.add(previous.end)
            if inst.address in labels:
                settle()
                self.emit([f"L_{inst.address:x}:;"])
                if inst.address in back:
                    self.emit([self.yield_point(inst)])
            count += 1
            if inst.name.startswith(
                ("s_cbranch", "s_branch", "s_setpc", "s_swappc", "s_call", "s_endpgm", "s_barrier")
            ):
                settle()
            try:
                self.one(inst)
            except Unsupported as error:
                problems.append(
                    UnsupportedInstruction(
                        inst.name, inst.address, self.kernel.demangled, None, str(error)
                    )
                )
            previous = inst
        settle()
        self.flush()
        if problems:
            raise problems[0]
        if previous is not None and not _ends(previous):
            self.out.append("return DONE;")
        return self.finish(labels, insts)

    def yield_point(self, inst: Inst) -> str:
        self.resumes.append(f"Y_{inst.address:x}")
        number = len(self.resumes)
        return (
            f"if (UNLIKELY(w->tick >= SLICE)) {{ SPEND({self.site(inst)}); w->resume = {number}; "
            f"w->scc = scc; return YIELD; }} Y_{inst.address:x}:;"
        )

    def one(self, inst: Inst) -> None:
        """Translate one instruction."""
        name = inst.name
        form = inst.format
        if name == "s_set_gpr_idx_off":
            self.gpr_index = None
            return
        if name in _NOTHING or memory.no_effect(name):
            return
        if self.gpr_index is not None and form.startswith("VOP"):
            self.emit(vectors.indexed(self, inst))
            return
        if form == "SOPP":
            self.emit(self.program(inst))
        elif form in ("SOP1", "SOP2", "SOPC", "SOPK"):
            if name in _NOTHING:
                return
            self.emit(self.scalar_alu(inst))
        elif form == "SMEM":
            self.emit(memory.smem(self, inst))
        elif form in ("FLAT", "GLOBAL", "SCRATCH"):
            self.emit(memory.flat(self, inst))
        elif form == "MUBUF":
            self.emit(memory.buffer(self, inst))
        elif form == "DS":
            self.emit(memory.ds(self, inst))
        elif matrix.is_matrix(inst):
            self.emit(matrix.translate(self, inst))
        elif form.startswith("VOP"):
            self.vector_alu(inst)
        else:
            raise Unsupported(f"{form} instructions are not translated")

    def program(self, inst: Inst) -> list[str]:
        """SOPP: branches, barrier, end, messages."""
        name = inst.name
        target = inst.end + _signed16(inst.get("simm16")) * 4
        if name == "s_branch":
            return [f"goto L_{target:x};"]
        tests = {
            "scc0": "!scc",
            "scc1": "scc",
            "vccz": "S64(106) == 0" if self.wide else "S[106] == 0",
            "vccnz": "S64(106) != 0" if self.wide else "S[106] != 0",
            "execz": "EXEC64 == 0",
            "execnz": "EXEC64 != 0",
        }
        if name.startswith("s_cbranch_"):
            kind = name.removeprefix("s_cbranch_")
            if kind in ("cdbgsys", "cdbguser", "cdbgsys_or_user", "cdbgsys_and_user"):
                return []
            if kind not in tests:
                raise Unsupported("branch")
            return [f"if ({tests[kind]}) goto L_{target:x};"]
        if name in ("s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done"):
            return ["SPENDLAST; return DONE;"]
        if name == "s_barrier":
            self.resumes.append(f"B_{inst.address:x}")
            site = self.site(inst)
            return [
                f"BARRIER_CHECK({site}); w->pad = {site}; w->resume = {len(self.resumes)}; "
                f"w->scc = scc; SPEND({site}); return AT_BARRIER; B_{inst.address:x}:;"
            ]
        if name in ("s_sleep", "s_sleep_var"):
            return self.rest(inst)
        if name == "s_trap":
            return [
                f"{{ fail(k, w, F_TRAP, {self.site(inst)}, 0, {inst.get('simm16')}, 0, 0); "
                "goto fault; }"
            ]
        if name == "s_sendmsg":
            if inst.get("simm16") & 0xF == 3 and self.arch != "cdna":
                return []  # frees the wavefront's registers early
            if inst.get("simm16") & 0xF in (1,):
                return [
                    f"{{ fail(k, w, F_MESSAGE, {self.site(inst)}, 0, {inst.get('simm16')}, 0, 0);"
                    " goto fault; }"
                ]
            raise Unsupported(f"message {inst.get('simm16'):#x}")
        if name in ("s_round_mode", "s_denorm_mode"):
            shift = 0 if name == "s_round_mode" else 4
            self.changes_mode = True
            return [
                f"w->mode = (w->mode & ~{0xF << shift:#x}u) | "
                f"{(inst.get('simm16') & 0xF) << shift:#x}u; SETMODE({self.site(inst)});"
            ]
        if name == "s_sethalt":
            return []
        raise Unsupported("program control instruction")

    def rest(self, inst: Inst) -> list[str]:
        self.resumes.append(f"R_{inst.address:x}")
        return [
            f"SPEND({self.site(inst)}); w->resume = {len(self.resumes)}; w->scc = scc; "
            f"return YIELD; R_{inst.address:x}:;"
        ]

    # ------------------------------------------------------------ assembling

    def finish(self, labels: set[int], insts: Sequence[Inst]) -> Translation:
        if self.identity:
            # Registers addressed through M0 must stay where the code object put them.
            self.vgprs |= set(
                range(max(self.kernel.vgprs, *(n + 1 for n in self.vgprs if n < 256)))
            )
        numbers = sorted(self.vgprs)
        place = {n: i for i, n in enumerate(numbers)}
        flush32 = (self.mode >> 4) & 3 != 3
        head = [
            f"#define L {self.lanes}",
            f"#define NV {len(numbers)}",
            f"#define NSITES {len(self.places)}",
        ]
        ftz = (
            "u32 ftz = (w->mode >> 4 & 3) != 3;"
            if self.changes_mode
            else f"enum {{ ftz = {int(flush32)} }};"
        )
        body = "\n".join(self.out)
        # Registers are renumbered densely so that a wavefront's state stays small.
        body = re.sub(r"VX\((\d+)\)", lambda m: str(place[int(m[1])]), body)
        resume = "".join(f"case {i + 1}: goto {label};" for i, label in enumerate(self.resumes))
        jumps = (
            "".join(f"case {a:#x}: goto L_{a:x};" for a in sorted(labels))
            if self.calls or (self.extra_labels)
            else ""
        )
        kernel = [
            "#define BASE (k->c->image)",
            "#define EXEC64 (S64(126))" if self.wide else "#define EXEC64 ((u64)S[126])",
            "#define EXECCHANGED do { expand(EXEC64, em); REJOIN; } while (0)",
            (
                "#define SETEXEC(x) do { S64(126) = (x); EXECCHANGED; } while (0)"
                if self.wide
                else "#define SETEXEC(x) do { S[126] = (u32)(x); EXECCHANGED; } while (0)"
            ),
            "#define SLICE (k->c->slice)",
            "#define SPENDLAST w->icount += w->tick, w->tick = 0",
            "#define SPEND(site) do { w->icount += w->tick; w->tick = 0; "
            "if (w->icount > k->c->budget) { fail(k, w, F_BUDGET, site, 0, w->icount, 0, 0); "
            "goto fault; } } while (0)",
            "#define JUMP(a, site) do { jump = (a) - BASE; jsite = site; goto dispatch; } while (0)",
            "#define SETMODE(site) do { ftz = (w->mode >> 4 & 3) != 3; host_round(w->mode); } while (0)",
            "#if HP_BARRIER",
            "#define BARRIER_CHECK(site) (w->missing |= w->live & ~EXEC64)",
            "#else",
            "#define BARRIER_CHECK(site) (void)0",
            "#endif",
            '#define LANES _Pragma("GCC ivdep") for (int l = 0; l < L; l++)',
            "static int kernel_body(Worker *k, Wave *w) {",
            ftz,
            "u32 *restrict S = w->s; u32 *restrict V = w->v; u32 scc = w->scc; u64 jump; u32 jsite;",
            "u32 em[L] __attribute__((aligned(64))); expand(EXEC64, em);",
            f"const u32 fp8_clamp = {self.kernel.rsrc1 >> 26 & 1}; switch (w->resume) {{ case 0: goto L_{self.kernel.entry:x}; "
            f"{resume} }}",
            f"dispatch: switch (jump) {{ {jumps} default: fail(k, w, F_JUMP, jsite, 0, jump, 0, 0); }}",
            "fault: return FAULTED;",
            body,
            "}",
            "static int kernel(Worker *k, Wave *w, u32 unused) {",
            (
                "host_round(w->mode); int r = kernel_body(k, w); host_round(0); return r; }"
                if self.changes_mode
                else "return kernel_body(k, w); }"
            ),
        ]
        source = "\n".join(
            [
                *head,
                "%FLAGS%",
                runtime(),
                handwritten.HELPERS,
                operands.HELPERS,
                memory.HELPERS,
                vectors.HELPERS,
                matrix.HELPERS,
                "\n".join(kernel),
                "",
            ]
        )
        return Translation(
            source,
            tuple(self.places),
            len(numbers),
            len(insts),
            self.compiler_flags(len(insts)),
        )

    def compiler_flags(self, instructions: int) -> tuple[str, ...]:
        """Extra flags for the C compiler."""
        flags = ["-frounding-math"] if self.changes_mode else []
        if instructions > _LARGE:
            # Vectorising doubles the time to compile, which long kernels do not earn back.
            flags.append("-fno-tree-vectorize")
        return tuple(flags)


def _ends(inst: Inst) -> bool:
    return inst.name in (
        "s_branch",
        "s_setpc_b64",
        "s_swappc_b64",
        "s_endpgm",
        "s_call_b64",
        "s_endpgm_saved",
        "s_endpgm_ordered_ps_done",
    )


def _signed16(value: int) -> int:
    return value - 0x10000 if value & 0x8000 else value


def _literal_kind(want: Operand) -> str:
    return want.kind


def _scalar16(t: Translator, enc: int, want: Operand, literal: int | None) -> str:
    value = constant(enc, want, literal)
    if value is not None:
        return f"{value & 0xFFFFFFFF:#x}u"
    return scalar(t, enc, 32, "u", literal)


@functools.lru_cache(maxsize=512)
def _operand(fmt: str, bits: int) -> Operand:
    name = fmt.removeprefix("FMT_NUM_")
    packed = name.startswith("PK")
    if packed:
        name = re.sub(r"^PK\d+_", "", name)
    kind = "b"
    if match := re.match(r"(BF|F|I|U|B|M|IU|FP)(\d+)", name):
        kind = {"BF": "bf", "F": "f", "I": "i", "U": "u"}.get(match[1], "b")
    return Operand(kind, bits, packed)


def translate(code: CodeObject, kernel: KernelInfo) -> Translation:
    """The C text of `kernel`. Raises UnsupportedInstruction before anything runs."""
    if code.arch not in ("cdna", "rdna3"):
        raise EmulatorError(f"{code.target} is not emulated")
    return Translator(code, kernel).translate()


__all__ = ["Translation", "Translator", "sign_modifiers", "translate", "vector"]
