"""AMD code objects executed exactly on the CPU. See docs/emulator.md."""

from hipport.emulator.errors import EmulatorError, UnsupportedInstruction
from hipport.emulator.launch import (
    Kernel,
    LaunchResult,
    Module,
    Ptr,
    Struct,
    Variable,
    load,
    uninitialised,
)
from hipport.emulator.watch import Fault, KernelFault, Watch

__all__ = [
    "EmulatorError",
    "Fault",
    "Kernel",
    "KernelFault",
    "LaunchResult",
    "Module",
    "Ptr",
    "Struct",
    "UnsupportedInstruction",
    "Variable",
    "Watch",
    "load",
    "uninitialised",
]
