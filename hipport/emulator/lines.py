"""Source lines of code addresses, from the DWARF line table."""

from __future__ import annotations

import bisect
import io
import os
from typing import Any

from elftools.elf.elffile import ELFFile


class LineTable:
    """Address to "file:line"; empty if the code object has no line table."""

    def __init__(self, data: bytes) -> None:
        rows: list[tuple[int, str | None]] = []
        try:
            elf = ELFFile(io.BytesIO(data))
            if elf.has_dwarf_info():
                rows = _rows(elf)
        except Exception:
            # A damaged debug section must not hide the fault that is being told.
            rows = []
        rows.sort(key=lambda r: r[0])
        self._addresses = [a for a, _ in rows]
        self._lines = [text for _, text in rows]

    def find(self, address: int) -> str | None:
        """The source line of the instruction at `address`, or None."""
        at = bisect.bisect_right(self._addresses, address) - 1
        return self._lines[at] if at >= 0 else None


def _rows(elf: ELFFile) -> list[tuple[int, str | None]]:
    found: dict[int, str | None] = {}
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        top = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        here = _text(top.value) if top is not None else ""
        names: dict[int, str] = {}
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            text = None
            if not state.end_sequence and state.line:
                if state.file not in names:
                    names[state.file] = _file_name(program.header, state.file, here)
                text = f"{names[state.file]}:{state.line}"
            # Several rows may share an address; the last one wins, as debuggers do.
            if text is not None or state.address not in found:
                found[state.address] = text
    return list(found.items())


def _file_name(header: Any, index: int, here: str) -> str:
    """Path of a line program's file, relative to the compilation folder where it lies in it."""
    first = 0 if header["version"] >= 5 else 1
    entry = header["file_entry"][index - first]
    folder = ""
    if first == 0 or entry["dir_index"]:
        folder = _text(header["include_directory"][entry["dir_index"] - first])
    full = os.path.join(folder, _text(entry["name"]))
    return full[len(here) + 1 :] if here and full.startswith(here + os.sep) else full


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
