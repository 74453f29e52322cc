"""What to watch for during a launch, and how a fault is told."""

from __future__ import annotations

from dataclasses import dataclass

from hipport.emulator.errors import EmulatorError


@dataclass(frozen=True, slots=True)
class Watch:
    """Optional checks of a launch. Bounds, read-only buffers and LDS size are always checked.

    uninitialised: reads of LDS and of buffers made with `uninitialised()` before any write
    races: two threads touch the same LDS or global word, one writing, with no barrier between
    barriers: a barrier that some lanes or wavefronts of the block do not reach
    lanes: a shuffle or readlane from a lane that is not active
    alignment: an access not aligned to its size (at most 4)
    budget: instructions a wavefront may execute before it counts as an endless loop
    """

    uninitialised: bool = False
    races: bool = False
    barriers: bool = False
    lanes: bool = False
    alignment: bool = False
    budget: int = 200_000_000

    @classmethod
    def all(cls) -> Watch:
        """Every check."""
        return cls(True, True, True, True, True)

    @property
    def flags(self) -> dict[str, int]:
        """The C macros that switch the checks on."""
        return {
            "HP_UNINIT": int(self.uninitialised),
            "HP_RACES": int(self.races),
            "HP_BARRIER": int(self.barriers),
            "HP_LANES": int(self.lanes),
            "HP_ALIGN": int(self.alignment),
        }


#: Fault kinds by the number the C side uses.
KINDS = (
    "none",
    "out-of-bounds",
    "read-only",
    "lds-out-of-bounds",
    "scratch-out-of-bounds",
    "misaligned",
    "uninitialised",
    "uninitialised-lds",
    "race",
    "lds-race",
    "divergent-barrier",
    "inactive-lane",
    "budget",
    "trap",
    "bad-jump",
    "deadlock",
    "mode",
    "message",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what, where and who.

    `kind` is one of KINDS; `line` "file:line" or None without line tables; `block` and `thread`
    the coordinates of the first thread at fault; `buffer` the buffer hit or nearest, `index` the
    element index in it, `offset` the byte offset from its start; `other` the second thread of a
    race, as text.
    """

    kind: str
    kernel: str
    instruction: str
    pc: int
    line: str | None
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int
    size: int
    write: bool
    message: str
    buffer: str | None = None
    index: int | None = None
    offset: int | None = None
    other: str | None = None

    def __str__(self) -> str:
        where = f" at {self.line}" if self.line else ""
        second = f" (with {self.other})" if self.other else ""
        return (
            f"{self.kind}: {self.message}{second}; kernel {self.kernel}{where}, "
            f"{self.instruction} at {self.pc:#x}, block {self.block}, thread {self.thread}"
        )


class KernelFault(EmulatorError):
    """A launch stopped by a fault; `fault` has the particulars."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(str(fault))
