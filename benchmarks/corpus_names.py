"""Look for CUDA names in sources, independently of the converter.

The scanner below shares nothing with `hipport.parse`: it is one regular expression that knows
comments, string and character literals, raw strings, numbers and identifiers. What it calls a name
is what a C++ preprocessor would.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_SCAN = re.compile(
    rb"""
    (?P<include>^[ \t]*\#[ \t]*include[ \t]*(?P<path><[^>\n]*>|"[^"\n]*"))
  | (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\(.*?(?:\)(?P=tag)"|\Z))
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'?[\w.])*)
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'?)
  | (?P<name>[A-Za-z_$][\w$]*)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)

_CUDA_NAME = re.compile(
    r"cuda|CUDA|cu[A-Z]|CU_|CU[a-z]|cu(?:blas|fft|rand|sparse|solver|dnn|tensor|file)"
    r"|CU(?:BLAS|FFT|RAND|SPARSE|SOLVER|DNN|DA)|CUstream|CUdevice|CUmodule|CUfunction|CUcontext"
    r"|nccl|NCCL|nvtx|NVTX|nvrtc|NVRTC|nvml|cupti|CUPTI|nvJitLink|npp[a-z]"
    r"|__nv_|nv_|nvcuda|__NVCC|__CUDA"
    r"|__(?:global|device|host|shared|constant|managed|grid_constant|forceinline|noinline)__$"
    r"|__launch_bounds__|__(?:shfl|ballot|any|all|activemask|match|reduce|syncwarp|syncthreads"
    r"|threadfence|popc|ffs|clz|brev|ldg|half|float2|hadd|hmul|hfma|dp4a|dp2a)"
    r"|(?:block|grid)(?:Idx|Dim)$|threadIdx$|warpSize$|(?:atomic(?:Add|CAS|Min|Max|Exch|Or|And))"
    r"|thrust$|cub$|cooperative_groups$|wmma$|half2?$|make_(?:float|int|uint|double)[1-4]$|dim3$"
    r"|GOOGLE_CUDA|USE_CUDA|(?:float|int|uint|double|uchar|char)[1-4]$|asm$|__asm__$|min$|max$"
)
_CUDA_INCLUDE = re.compile(
    r"cuda|cublas|cufft|curand|cusparse|cusolver|cudnn|nccl|nvtx|nvToolsExt|nvrtc|nvml|cupti"
    r"|thrust/|cub/|cooperative_groups|mma\.h|vector_types|device_launch|driver_types|\.cuh|\.cu"
    r"|cutlass|cute/|texture_|surface_|math_constants|sm_\d|library_types|cuComplex|channel_desc"
)


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier, or the path of an `#include` (`header` is true), with its 1-based line."""

    text: str
    line: int
    header: bool = False


def names(data: bytes) -> Iterator[Name]:
    """Identifiers and include paths of a source, outside comments and literals."""
    line, at = 1, 0
    for found in _SCAN.finditer(data):
        kind = found.lastgroup
        if kind == "name":
            line += data.count(b"\n", at, found.start())
            at = found.start()
            yield Name(found.group().decode("ascii", "replace"), line)
        elif found.group("path") is not None:
            line += data.count(b"\n", at, found.start())
            at = found.start()
            yield Name(found.group("path")[1:-1].decode("latin-1"), line, header=True)


def prose(data: bytes) -> list[bytes]:
    """Comments and literals of a source, in order: what a renaming tool has to leave alone.

    Those inside an `asm` statement are code, and left out.
    """
    found: list[bytes] = []
    at, depth, assembly = 0, 0, False
    for token in _SCAN.finditer(data):
        if assembly:
            gap = data[at : token.start()]
            depth += gap.count(b"(") - gap.count(b")")
            # Between `asm` and its parenthesis only qualifiers may stand.
            assembly = depth > 0 or (b")" not in gap and b";" not in gap)
        at = token.end()
        if token.group("path") is not None or token.group("number") is not None:
            continue
        if token.group("name") is None:
            if not assembly:
                found.append(token.group())
        elif token.group() in (b"asm", b"__asm__", b"__asm") and not assembly:
            assembly, depth = True, 0
    return found


def mentions_cuda(data: bytes) -> bool:
    """Whether any identifier or include path of a source belongs to CUDA or to device code."""
    return any(
        (_CUDA_INCLUDE.search(name.text) if name.header else _CUDA_NAME.match(name.text))
        for name in names(data)
    )


def facts_map(folder: Path) -> dict[str, str]:
    """CUDA name to HIP name from public tables (`api_map_2025-07.tsv` in `folder`), or nothing."""
    table = folder / "api_map_2025-07.tsv"
    if not table.is_file():
        return {}
    with table.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            row["cuda_name"]: row["hip_name"]
            for row in rows
            if re.fullmatch(r"\w+", row.get("hip_name") or "")
            and row["hip_name"] != row["cuda_name"]
        }


@dataclass(frozen=True, slots=True)
class Left:
    """A CUDA name that is still there after the conversion and has a HIP counterpart."""

    path: str
    line: int
    name: str
    counterpart: str


_CUB = re.compile(r"cub/(?!agent/|detail/|device/dispatch/)")
_CONDITIONS = frozenset({"__CUDACC__", "__NVCC__", "__CUDA_ARCH__"})


def left(data: bytes, path: str, counterparts: Mapping[str, str]) -> Iterator[Left]:
    """Names and headers of `counterparts` that a source still uses.

    Macros that the compiler defines are conditions, not names: code that answers for HIP in
    another branch keeps them as they are.
    Every public header below ``cub/`` has a counterpart, whether the table lists it or not.
    """
    for name in names(data):
        other = counterparts.get(name.text)
        if other is None and name.header and _CUB.match(name.text):
            other = "hipcub/hipcub.hpp"
        if other is None or other == name.text or name.text in _CONDITIONS:
            continue
        yield Left(path, name.line, name.text, other)


_ENUM = re.compile(rb"\benum\b[^{};()]*\{(?P<body>[^{}]*)\}")
_ENUMERATOR = re.compile(rb"(?:^|,)\s*([A-Za-z_]\w*)\s*(?==|,|$)")


def declared(wanted: Iterable[str], sources: Iterable[bytes]) -> dict[str, str]:
    """How a code base itself declares some of the `wanted` names: name to the declaring line.

    Only forms that introduce a name count: `#define`, a class, enum, alias or namespace, and
    "type name" followed by what a function or variable has there.
    """
    want = set(wanted)
    if not want:
        return {}
    any_of = b"(?P<own>" + b"|".join(re.escape(name.encode()) for name in sorted(want)) + b")"
    forms = re.compile(
        rb"^[ \t]*\#[ \t]*define[ \t]+" + any_of + rb"\b"
        rb"|\b(?:struct|class|enum|union|using|namespace|typename|concept)[ \t]+(?:class[ \t]+)?"
        + any_of.replace(b"own", b"own2")
        + rb"\b(?![ \t]*::)"
        rb"|(?:\btypedef\b[^;{]*\b|\}[ \t\n]*)" + any_of.replace(b"own", b"own3") + rb"[ \t]*;"
        rb"|\([ \t]*\w*[ \t]*\*[ \t]*" + any_of.replace(b"own", b"own5") + rb"[ \t]*\)[ \t]*\("
        rb"|(?<![\w.])(?!(?:return|else|case|goto|throw|new|delete|using)\b)[A-Za-z_][\w:]*"
        rb"(?:<[^;(){}]*>)?[ \t]*[&* \t][&* \t\n]*"
        + any_of.replace(b"own", b"own4")
        + rb"[ \t]*[(=;{,)\[]",
        re.MULTILINE,
    )
    found: dict[str, str] = {}
    for data in sources:
        bare = _SCAN.sub(_blank, data)
        for body in _ENUM.finditer(bare):
            for name in _ENUMERATOR.findall(body.group("body")):
                if name.decode() in want:
                    found.setdefault(name.decode(), f"an enumerator {name.decode()}")
        for hit in forms.finditer(bare):
            name = next(group for group in hit.groups() if group is not None).decode()
            found.setdefault(name, " ".join(hit.group().decode("latin-1").split()))
        if len(found) == len(want):
            break
    return found


def _blank(found: re.Match[bytes]) -> bytes:
    if found.group("name") is not None or found.group("number") is not None:
        return found.group()
    if found.group("path") is not None:
        return b"\n"
    return b" " + b"\n" * found.group().count(b"\n")
