"""The decoder against LLVM's disassembler: every opcode, and a device library linked whole."""

# ruff: noqa: E501  (commands and tables)
from __future__ import annotations

import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from hipport.emulator.decode import decode, tables
from hipport.emulator.devcompile import _BITCODE
from hipport.emulator.opcodes import classify, encodings, main

PAGE = Path(__file__).parents[2] / "docs" / "emulator-opcodes.md"

#: Names LLVM spells differently for the same operation.
_SAME = {
    "buffer_invl2": "buffer_inv",
    "buffer_wbinvl1_vol": "buffer_wbinvl1",
    "v_accvgpr_read_b32": "v_accvgpr_read",
    "v_accvgpr_write_b32": "v_accvgpr_write",
}


def tool(name: str) -> str:
    for version in ("-19", "-18", "-17", ""):
        if path := shutil.which(name + version):
            return path
    pytest.fail(f"{name} is needed (Debian: llvm-19)")


def spelled(name: str) -> str:
    """LLVM's mnemonic in the decoder's spelling."""
    for _ in range(2):
        name = re.sub(r"_(e32|e64|dpp|dpp8|sdwa)$", "", name)
    if match := re.fullmatch(
        r"v_mfma_(f32|f64|i32)_(\d+)x(\d+)x(\d+)(f32|f16|bf16|f64|i8)(_1k)?", name
    ):
        # gfx90a: blocks are not in the name; they follow from the sizes.
        out, m, n, k, kind = match[1], int(match[2]), int(match[3]), int(match[4]), match[5]
        per_lane = {"f32": 1, "f64": 1, "f16": 4, "bf16": 4 if match[6] else 2, "i8": 4}[kind]
        blocks = 64 * per_lane // (m * k)
        return f"v_mfma_{out}_{m}x{n}x{k}_{f'{blocks}b_' if blocks > 1 else ''}{kind}"
    return _SAME.get(name, name)


def disassemble(path: Path, cpu: str) -> dict[int, tuple[str, int]]:
    """Address to (name, size)."""
    text = subprocess.run(
        [tool("llvm-objdump"), "-d", f"--mcpu={cpu}", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found = {}
    for match in re.finditer(r"^\t(\S+)(.*?)// ([0-9A-F]+):((?: [0-9A-F]{8})+)", text, re.M):
        names = [match[1], *re.findall(r":: (\S+)", match[2])]
        found[int(match[3], 16)] = (" :: ".join(map(spelled, names)), 4 * len(match[4].split()))
    return found


def test_every_opcode_has_llvms_name_and_size(target, tmp_path):
    arch = "rdna3" if target == "gfx1100" else "cdna"
    # Image and graphics formats have no place in compute kernels and no decoder here.
    rows = [r for r in encodings(arch) if r[0] not in ("VOP3PX2", "MIMG", "LDSDIR")]
    source, built = tmp_path / "all.s", tmp_path / "all.o"
    # Padding with s_nop keeps the disassembler in step after encodings it does not know.
    nop = "\n".join(
        ".byte " + ",".join(map(str, raw.to_bytes(size, "little"))) + "\n.long " + ",".join(
            ["0xbf800000"] * ((32 - size) // 4)) for _, _, raw, size in rows
    )  # fmt: skip
    source.write_text(".text\n" + nop + "\n")
    subprocess.run(
        [
            tool("llvm-mc"),
            "-arch=amdgcn",
            f"-mcpu={target}",
            "-filetype=obj",
            str(source),
            "-o",
            str(built),
        ],
        check=True,
    )
    theirs = disassemble(built, target)
    agreed = 0
    for i, (_, _, raw, size) in enumerate(rows):
        name, length = theirs.get(32 * i, (".long", 0))
        if name.startswith("."):
            continue  # an opcode of another chip of the family
        ours = decode(raw.to_bytes(size, "little").ljust(16, b"\0"), 0, 0, arch, target)
        assert (ours.name, ours.size) == (name, length), hex(raw)
        agreed += 1
    assert agreed > 1250


def test_device_library_linked_whole(target, tmp_path):
    folder = next(f for f in _BITCODE if f.is_dir())
    text = subprocess.run(
        [tool("llvm-dis"), str(folder / "ocml.bc"), "-o", "-"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    whole, kept, built = tmp_path / "a.ll", tmp_path / "b.ll", tmp_path / "ocml.o"
    whole.write_text(re.sub(r"linkonce_odr (hidden |protected )?", "weak_odr ", text))
    # The f64 forms of the native functions have no instruction to become.
    subprocess.run(
        [
            tool("llvm-extract"),
            "--delete",
            "--rfunc",
            ".*native_.*f64",
            str(whole),
            "-S",
            "-o",
            str(kept),
        ],
        check=True,
    )
    subprocess.run(
        [tool("llc"), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={target}", "-O1", "-filetype=obj", str(kept),
         "-o", str(built)], check=True, capture_output=True,
    )  # fmt: skip
    code = ELFFile(io.BytesIO(built.read_bytes())).get_section_by_name(".text").data()
    theirs = disassemble(built, target)
    assert len(theirs) > 40_000
    arch = "rdna3" if target == "gfx1100" else "cdna"
    seen = set()
    for address, (name, size) in theirs.items():
        inst = decode(code, address, address, arch, target)
        assert (inst.name, inst.size) == (name, size), hex(address)
        key = (inst.name, inst.format, inst.variant)
        if key not in seen:
            seen.add(key)
            status, why = classify(arch, inst, target)
            assert status != "unsupported", f"{inst.name} at {address:#x}: {why}"


def test_the_opcode_page_is_current():
    assert main(["--check", "--output", str(PAGE)]) == 0


def test_unknown_encoding_is_an_error():
    tables("cdna")
    with pytest.raises(ValueError, match="unknown cdna encoding"):
        decode(b"\xff" * 16, 0, 0, "cdna")
