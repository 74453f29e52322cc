"""Source lines of code addresses, from the DWARF line table."""

from __future__ import annotations

import bisect
import io
import os

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
    rows: list[tuple[int, str | None]] = []
    dwarf = elf.get_dwarf_info()
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        if program is None:
            continue
        header = program.header
        version = header["version"]
        directories = list(header["include_directory"])
        top = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
        here = top.value.decode(errors="replace") if top is not None else ""

        def name(index: int) -> str:
            files = header["file_entry"]  # noqa: B023
            entry = files[index if version >= 5 else index - 1]  # noqa: B023
            folder = ""
            if version >= 5:  # noqa: B023
                folder = _text(directories[entry["dir_index"]]["DW_LNCT_path"])  # noqa: B023
            elif entry["dir_index"]:
                folder = _text(directories[entry["dir_index"] - 1])  # noqa: B023
            file = _text(entry["name"])
            full = os.path.join(folder, file)
            if here and full.startswith(here + os.sep):  # noqa: B023
                full = full[len(here) + 1 :]  # noqa: B023
            return full

        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            text = (
                None if state.end_sequence or not state.line else f"{name(state.file)}:{state.line}"
            )
            rows.append((state.address, text))
    # Several rows may share an address; the last one wins, as debuggers do.
    last: dict[int, str | None] = {}
    for address, text in rows:
        if text is not None or address not in last:
            last[address] = text
    return list(last.items())


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value
