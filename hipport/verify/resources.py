"""Registers, LDS and scratch of each kernel in a code object, and the occupancy they allow.

Read from the metadata note ("User Guide for AMDGPU Backend", code object metadata); the register
arithmetic follows the same guide and ROCm's "Hardware specifications".
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from hipport.errors import UsageError
from hipport.verify.targets import Target

_NOTE = 32


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel takes on one target. Sizes in bytes; `lds` is the static part.

    `occupancy` is waves a SIMD, an estimate from registers and static LDS for blocks of `block`
    threads; dynamic LDS is not known here.
    """

    kernel: str
    target: str
    vgprs: int
    agprs: int
    sgprs: int
    lds: int
    scratch: int
    vgpr_spills: int
    sgpr_spills: int
    block: int
    occupancy: int
    max_waves: int


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def occupancy(target: Target, vgprs: int, agprs: int, lds: int, block: int) -> int:
    """Waves that a SIMD holds, at most; 0 where a block does not fit.

    Args:
        target: what it runs on.
        vgprs: vector registers of a lane, accumulation registers included where the two share a
            file, as in the metadata of gfx90a and later.
        agprs: accumulation registers.
        lds: bytes a block.
        block: threads a block.
    """
    if lds > target.lds:
        return 0
    if target.vgpr_pools == 2:
        pool = target.vgprs // 2
        taken = max(_up(max(r, 1), target.vgpr_granule) for r in (vgprs, agprs))
    else:
        pool, taken = target.vgprs, _up(max(vgprs, 1), target.vgpr_granule)
    waves = min(target.max_waves, pool // taken)
    if lds:
        shared = target.lds * (2 if target.wgp else 1)
        of_block = _up(block, target.wave) // target.wave
        waves = min(waves, max(1, shared // lds * of_block // target.simds))
    return waves


def _metadata(data: bytes) -> list[dict[str, Any]]:
    try:
        import msgpack  # type: ignore[import-untyped,unused-ignore]
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise UsageError(
            f"reading code objects needs '{error.name}': pip install 'hipport[device]'"
        ) from error
    try:
        section: Any
        for section in ELFFile(io.BytesIO(data)).iter_sections("SHT_NOTE"):
            for note in section.iter_notes():
                if note["n_name"] == "AMDGPU" and int(note["n_type"]) == _NOTE:
                    found = msgpack.unpackb(bytes(note["n_descdata"]), strict_map_key=False)
                    return list(found.get("amdhsa.kernels", []))
    except (ELFError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"not a readable code object: {error}") from error
    return []


def read(data: bytes, target: Target) -> list[KernelResources]:
    """Resources of every kernel in a code object, in its order.

    Raises:
        UsageError: it is none, or the packages that read it are not installed.
    """
    out = []
    for kernel in _metadata(data):
        vgprs, agprs = int(kernel.get(".vgpr_count", 0)), int(kernel.get(".agpr_count", 0))
        lds = int(kernel.get(".group_segment_fixed_size", 0))
        block = min(int(kernel.get(".max_flat_workgroup_size", 1024)), 256)
        out.append(
            KernelResources(
                kernel=str(kernel.get(".name", "?")),
                target=target.gfx,
                vgprs=vgprs,
                agprs=agprs,
                sgprs=int(kernel.get(".sgpr_count", 0)),
                lds=lds,
                scratch=int(kernel.get(".private_segment_fixed_size", 0)),
                vgpr_spills=int(kernel.get(".vgpr_spill_count", 0)),
                sgpr_spills=int(kernel.get(".sgpr_spill_count", 0)),
                block=block,
                occupancy=occupancy(target, vgprs, agprs, lds, block),
                max_waves=target.max_waves,
            )
        )
    return out
