"""What an error means for a port: which rule cures it, which package brings a header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from hipport.rules import api

_PACKAGES = {
    "hipblas": ("hipBLAS", "libhipblas-dev", "hipblas-dev"),
    "hipblas-common": ("hipBLAS-common", "", "hipblas-common-dev"),
    "hipblaslt": ("hipBLASLt", "", "hipblaslt-dev"),
    "hipcub": ("hipCUB", "libhipcub-dev", "hipcub-dev"),
    "hipfft": ("hipFFT", "libhipfft-dev", "hipfft-dev"),
    "hiprand": ("hipRAND", "libhiprand-dev", "hiprand-dev"),
    "hipsolver": ("hipSOLVER", "libhipsolver-dev", "hipsolver-dev"),
    "hipsparse": ("hipSPARSE", "libhipsparse-dev", "hipsparse-dev"),
    "hipsparselt": ("hipSPARSELt", "", "hipsparselt-dev"),
    "hiptensor": ("hipTensor", "", "hiptensor-dev"),
    "miopen": ("MIOpen", "libmiopen-dev", "miopen-hip-dev"),
    "rccl": ("RCCL", "librccl-dev", "rccl-dev"),
    "rocblas": ("rocBLAS", "librocblas-dev", "rocblas-dev"),
    "rocfft": ("rocFFT", "librocfft-dev", "rocfft-dev"),
    "rocprim": ("rocPRIM", "librocprim-dev", "rocprim-dev"),
    "rocrand": ("rocRAND", "librocrand-dev", "rocrand-dev"),
    "rocsolver": ("rocSOLVER", "librocsolver-dev", "rocsolver-dev"),
    "rocsparse": ("rocSPARSE", "librocsparse-dev", "rocsparse-dev"),
    "rocthrust": ("rocThrust", "librocthrust-dev", "rocthrust-dev"),
    "thrust": ("rocThrust", "librocthrust-dev", "rocthrust-dev"),
    "rocwmma": ("rocWMMA", "", "rocwmma-dev"),
    "roctracer": ("roctracer", "libroctracer-dev", "roctracer-dev"),
    "rocprofiler-sdk": ("ROCprofiler-SDK", "", "rocprofiler-sdk"),
    "ck": ("Composable Kernel", "", "composablekernel-dev"),
    "ck_tile": ("Composable Kernel", "", "composablekernel-dev"),
    "amd_smi": ("AMD SMI", "", "amd-smi-lib"),
    "hip": ("HIP", "libamdhip64-dev", "hip-dev"),
    "hiprtc.h": ("HIP", "libamdhip64-dev", "hip-dev"),
}
"""First part of an include path: library, Debian's package ('' for none), ROCm's package."""


@dataclass(frozen=True, slots=True)
class Hint:
    """What to do about an error. `slug` names a rule, empty where none is known.

    `missing` says that a header of somebody else is absent: the conversion is not to blame.
    `stub` is the ROCm library whose declarations would do, for ``--assume-headers``.
    """

    text: str = ""
    slug: str = ""
    missing: bool = False
    stub: str = ""


_FILE = re.compile(r"'([^']+)' file not found")
_UNDECLARED = re.compile(
    r"(?:use of undeclared identifier|unknown type name|no matching function for call to|"
    r"no type named|no member named) '([^']+)'"
)
_RULES = (
    (r"static assertion failed.*(mask|64.?bit)|The mask must be a 64-bit", "sync-mask-width",
     "cross-lane masks have 64 bits; convert the call"),
    (r"operator.*ambiguous|use of overloaded operator", "vector-operators",
     "HIP's headers define operators of vector types too; guard or remove these"),
    (r"call to '\w+' is ambiguous", "overload-ambiguity",
     "HIP declares other overloads; cast the arguments to one type"),
    (r"invalid instruction|<inline asm>|invalid (input|output) constraint|"
     r"couldn't allocate (input|output) reg", "inline-ptx",
     "PTX is no instruction set of AMD GPUs; replace the statement"),
    (r"local memory \(\d+\) exceeds limit|exceeds limit \(\d+\)", "lds-limit",
     "the kernel needs more LDS than the target has"),
    (r"reference to __host__ function '(malloc|free|operator new)", "device-heap",
     "the device heap is only partly there"),
    (r"dynamic parallelism|reference to __global__ function", "dynamic-parallelism",
     "kernels cannot launch kernels"),
    (r"variable length array|not a constant expression.*|constexpr.*warpSize", "warpsize-constexpr",
     "warpSize is no constant of the language"),
    (r"launch_bounds.*(argument|expression)|attribute takes no more than 2", "launch-bounds-second",
     "HIP takes two arguments"),
    (r"image|texture.*not supported|__HIP_NO_IMAGE_SUPPORT", "texture",
     "the target has no image instructions"),
)  # fmt: skip


@lru_cache(maxsize=1)
def _table() -> api.ApiTable:
    return api.load(None)


def header(name: str) -> Hint:
    """What a header that was not found belongs to."""
    table = _table()
    part = name.split("/", 1)[0]
    if name.encode() in table.headers:
        new = table.headers[name.encode()].decode()
        return Hint(f"a CUDA header; HIP's is {new}: convert the file that includes it")
    if part in _PACKAGES or name in _PACKAGES:
        library, debian, rocm = _PACKAGES.get(name) or _PACKAGES[part]
        how = [f"apt install {debian} (Debian)"] if debian else ["Debian has no package"]
        how.append(f"apt install {rocm} (ROCm)")
        stub = part if "/" in name else library.lower()
        return Hint(f"{library} is not installed: {' or '.join(how)}", missing=True, stub=stub)
    if re.match(r"(cuda|cu[a-z]+(_v2)?\.h$|nv|cub/|cutlass/|cute/|cooperative_groups)", name):
        return Hint(f"'{name}' belongs to CUDA and has no counterpart; 'hipport query {name}'")
    return Hint(f"'{name}' is not on the include path: a third-party header, or add its folder "
                "with -I", missing=True)  # fmt: skip


def hint(message: str) -> Hint:
    """What is known about an error message; an empty hint where nothing is."""
    if found := _FILE.search(message):
        return header(found.group(1))
    for pattern, slug, text in _RULES:
        if re.search(pattern, message, re.IGNORECASE):
            return Hint(text, slug)
    if found := _UNDECLARED.search(message):
        name = found.group(1).split("::")[-1]
        row = _table().row(name.encode())
        if row is None:
            return Hint()
        if row.hip and row.hip != name:
            return Hint(f"HIP calls it {row.hip}; 'hipport query {name}'")
        if row.replacement:
            return Hint(f"HIP has none: {row.replacement}; 'hipport query {name}'",
                        "no-hip-equivalent")  # fmt: skip
        since = f" since HIP {row.hip_added}" if row.hip_added else ""
        where = f" in {row.hip_header}" if row.hip_header else ""
        if row.hip:
            return Hint(f"{name} is there{since}{where}; 'hipport query {name}'")
        return Hint(f"HIP has no {name}; 'hipport query {name}'", "no-hip-equivalent")
    return Hint()
