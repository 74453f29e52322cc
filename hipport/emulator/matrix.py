"""Matrix instructions: MFMA of gfx90a and gfx942, WMMA of gfx1100."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hipport.emulator.decode import Inst
from hipport.emulator.operands import Unsupported

if TYPE_CHECKING:
    from hipport.emulator.translate import Translator

HELPERS = ""


def is_matrix(inst: Inst) -> bool:
    """Whether `inst` multiplies matrices across the wavefront."""
    return inst.name.startswith(("v_mfma_", "v_smfmac_", "v_wmma_"))


def translate(t: Translator, inst: Inst) -> list[str]:
    """C of a matrix instruction."""
    raise Unsupported("matrix instruction")
