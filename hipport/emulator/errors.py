"""What can go wrong, each with one clear line."""

from __future__ import annotations


class EmulatorError(Exception):
    """A code object, argument or tool the emulator cannot work with."""


class UnsupportedInstruction(EmulatorError):
    """An instruction reachable from the kernel that is not translated.

    Raised before anything runs. `name` is the instruction, `address` its offset in the
    code object, `line` its source line ("file:line") or None without line tables.
    """

    def __init__(
        self, name: str, address: int, kernel: str, line: str | None, why: str = ""
    ) -> None:
        self.name, self.address, self.kernel, self.line = name, address, kernel, line
        where = f" ({line})" if line else ""
        reason = f": {why}" if why else ""
        super().__init__(
            f"kernel {kernel}: instruction {name} at {address:#x}{where} is not supported{reason}"
        )
