"""Every opcode of the emulated instruction sets, and how each is covered.

`python -m hipport.emulator.opcodes` writes docs/emulator-opcodes.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hipport.emulator import handwritten, matrix, memory, vectors
from hipport.emulator.codeobject import CodeObject, KernelInfo
from hipport.emulator.decode import Inst, decode, plain, shape_of, tables
from hipport.emulator.errors import EmulatorError
from hipport.emulator.operands import Unsupported
from hipport.emulator.translate import _NOTHING, Translator

#: The instruction set each target uses here.
SETS = {"cdna": ("gfx942", 64), "rdna3": ("gfx1100", 32)}


@dataclass(frozen=True, slots=True)
class Opcode:
    """One opcode: `status` is translated, hand-written, no-op or unsupported."""

    arch: str
    format: str
    name: str
    status: str
    why: str = ""


_UNUSED = re.compile(r"src\d|vsrc\d|data\d?|vdst|addr|saddr|sdata|sbase|soffset|ssrc\d")


def synthetic(arch: str, code: bytes, target: str | None = None) -> Translator:
    """A translator over bare machine code, for tables and tests."""
    name, wave = SETS[arch]
    kernel = KernelInfo(
        "k",
        "k",
        (),
        0,
        65536,
        0,
        wave,
        100,
        256,
        256,
        1024,
        None,
        0,
        0xAF << 12 & 0xFF000 | 0xC0000 | 0xA00000,
        0,
        0,
        0,
        0,
        False,
    )
    return Translator(
        CodeObject(target or name, arch, code, (kernel,), (), (), (), (0, len(code))), kernel
    )


def encodings(arch: str) -> Iterator[tuple[str, Any, int, int]]:
    """(format, operation, encoding, size) of every opcode with plain register operands."""
    ins, _ = tables(arch)
    seen = set()
    names = [n for n, c in vars(ins).items() if isinstance(c, type) and hasattr(c, "_fields")]
    for class_name in names:
        cls = getattr(ins, class_name)
        if class_name == "Inst" or any(s in class_name for s in ("_DPP", "_SDWA")):
            continue
        fields = dict(cls._fields)
        if "op" not in fields:
            continue
        op_field = fields["op"]
        for op in sorted(op_field.allowed or list(op_field._enum), key=lambda o: o.value):
            family = class_name.split("_")[0]
            if (family, op) in seen:
                continue
            seen.add((family, op))
            raw = 0
            shape = shape_of(arch, op)
            for name, f in fields.items():
                value = 0
                kind = type(f).__name__
                if (
                    shape
                    and _UNUSED.match(name)
                    and name not in shape
                    and ({"src1": "vsrc1", "vsrc1": "src1"}.get(name, name) not in shape)
                    and not (name == "src2" and vectors._takes_mask(plain(op.name)))
                ):
                    continue
                if name == "op":
                    value = op.value
                elif kind == "FixedBitField":
                    value = f.default
                elif kind == "SrcField":
                    value = 256 + {"src0": 1, "src1": 2, "src2": 4}.get(name, 1) * 2
                    label = plain(op.name)
                    if name == "src2" and vectors._takes_mask(label):
                        value = 106
                    if "writelane" in label or (name != "src0" and "lane" in label):
                        value = 4
                elif kind == "SSrcField" and name == "vdst":
                    value = 8
                elif kind in ("SSrcField",):
                    value = {"ssrc0": 4, "ssrc1": 6, "soffset": 20}.get(name, 4)
                    if "SENDMSG_RTN" in op.name:
                        value = 131
                elif kind == "SGPRField":
                    value = {
                        "saddr": 126 if False else 124,
                        "sdst": 8,
                        "sdata": 16,
                        "soffset": 124,
                    }.get(name, 8)
                    if name == "saddr" and arch == "cdna":
                        value = 127
                elif kind == "VGPRField":
                    value = {
                        "vdst": 20,
                        "addr": 2,
                        "data0": 4,
                        "data1": 8,
                        "data": 4,
                        "vdata": 4,
                        "vaddr": 2,
                        "vsrc1": 6,
                    }.get(name, 2)
                elif kind in ("SBaseField", "SRsrcField"):
                    value = 2
                elif name == "simm16" and "ETREG" in op.name:
                    value = 1 | 31 << 11
                elif name == "simm16" and "SENDMSG" in op.name:
                    value = 3 if arch != "cdna" else 1
                elif kind == "SSrcField":
                    value = 4
                elif name in ("opsel_hi",):
                    value = 3
                elif name in ("opsel_hi2", "imm"):
                    value = 1
                raw |= (value & f.mask) << f.lo
            yield family, op, raw, cls._base_size


def status_of(arch: str, family: str, op: Any, raw: int, size: int) -> Opcode:
    """How one opcode is covered, found by translating it."""
    name = plain(op.name)
    try:
        inst = decode(raw.to_bytes(size, "little").ljust(16, b"\0"), 0, 0, arch)
    except ValueError:
        return Opcode(arch, family, name, "unsupported", "no decoder for this format")
    if inst.name.startswith("v_fma_mix") and name.startswith("v_mad_mix"):
        name = inst.name
    if inst.name != name:
        # The same bits mean another opcode of the family (scalar destination forms and the like).
        return Opcode(arch, family, name, "unsupported", f"decodes as {inst.name}")
    return Opcode(arch, family, name, *classify(arch, inst))


def classify(arch: str, inst: Inst, target: str | None = None) -> tuple[str, str]:
    """(status, reason) of one decoded instruction."""
    if inst.name in _NOTHING or memory.no_effect(inst.name):
        return "no-op", ""
    t = synthetic(arch, b"", target)
    try:
        t.one(inst)
        t.flush()
    except Unsupported as error:
        return "unsupported", str(error)
    except EmulatorError as error:
        return "unsupported", str(error)
    name = inst.name
    if name in handwritten.LANE:
        return "hand-written", handwritten.LANE[name].why
    if name in vectors._PAIRS:
        return "hand-written", handwritten.NOTES["pairs"]
    if matrix.is_matrix(inst):
        return "hand-written", handwritten.NOTES["wmma" if "wmma" in name else "mfma"]
    if inst.format in ("FLAT", "GLOBAL", "SCRATCH", "MUBUF", "MTBUF", "DS", "SMEM"):
        if "atomic" in name or (
            inst.format == "DS"
            and memory.plain_access(name.partition("_")[2]) is None
            and "2" not in name
            and "permute" not in name
            and "swizzle" not in name
        ):
            return "translated", ""
        return "hand-written", handwritten.NOTES[
            "cross-lane" if "permute" in name or "swizzle" in name else "memory"
        ]
    if any(
        w in name
        for w in (
            "readlane",
            "writelane",
            "readfirstlane",
            "permlane",
            "swap_b",
            "accvgpr",
            "_mix",
            "movrel",
        )
    ):
        return "hand-written", handwritten.NOTES["cross-lane"]
    if inst.format == "SOPP" or t.scalar_special_name(name):
        return "hand-written", handwritten.NOTES["control"]
    return "translated", ""


def all_opcodes() -> list[Opcode]:
    """Every opcode of every emulated instruction set."""
    return [
        status_of(arch, family, op, raw, size)
        for arch in SETS
        for family, op, raw, size in encodings(arch)
    ]


def render(rows: list[Opcode]) -> str:
    """The Markdown page."""
    out = [
        "# Opcodes of the emulated device",
        "",
        "Written by `python -m hipport.emulator.opcodes`, which translates every opcode of the ISA",
        "tables once. *translated*: C made from the ISA manual's pseudocode; *hand-written*: C in",
        "`hipport/emulator`, with its source named in `handwritten.py`; *no-op*: waits, hints and",
        "cache control, which a coherent machine does not need; *unsupported*: a kernel that",
        "reaches it is refused, by name, before it runs.",
        "",
        "gfx90a and gfx942 share the `cdna` tables, which also hold opcodes that only gfx950 has.",
        "",
        "| set | translated | hand-written | no-op | unsupported |",
        "|---|---|---|---|---|",
    ]
    for arch in SETS:
        n = Counter(r.status for r in rows if r.arch == arch)
        out.append(
            f"| {arch} | {n['translated']} | {n['hand-written']} | {n['no-op']} | "
            f"{n['unsupported']} |"
        )
    for arch in SETS:
        out += ["", f"## {arch}", ""]
        for family in dict.fromkeys(r.format for r in rows if r.arch == arch):
            out += [f"### {arch} {family}", ""]
            mine = [r for r in rows if r.arch == arch and r.format == family]
            for status in ("translated", "hand-written", "no-op", "unsupported"):
                names = [r for r in mine if r.status == status]
                if not names:
                    continue
                if status == "unsupported":
                    out.append(f"- **unsupported** ({len(names)}):")
                    reasons: dict[str, list[str]] = {}
                    for r in names:
                        reasons.setdefault(r.why, []).append(r.name)
                    for why, group in reasons.items():
                        out.append(f"  - {why}: " + ", ".join(f"`{n}`" for n in group))
                else:
                    out.append(
                        f"- {status} ({len(names)}): " + ", ".join(f"`{r.name}`" for r in names)
                    )
            out.append("")
    return "\n".join(out).rstrip() + "\n"


def main(argv: list[str] | None = None) -> int:
    """Write the page, or with `--check` say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/emulator-opcodes.md"))
    parser.add_argument("--check", action="store_true", help="fail if the page is out of date")
    options = parser.parse_args(argv)
    text = render(all_opcodes())
    if options.check:
        if not options.output.exists() or options.output.read_text() != text:
            print(
                f"{options.output} is out of date; run python -m hipport.emulator.opcodes",
                file=sys.stderr,
            )
            return 1
        return 0
    options.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
