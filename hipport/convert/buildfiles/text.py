"""Make files, shell scripts, Docker files and requirements: by words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hipport.checks.context import Context
from hipport.convert.buildfiles.nvcc_flags import translate
from hipport.findings import Finding
from hipport.parse.unit import Unit
from hipport.rules.build import tools
from hipport.source import Change, Edit, Span

_NVCC_LINE = re.compile(rb"\bnvcc\b|\$[({]NVCC[)}]|^\s*NVCC\w*\s*[:+?]?=", re.M)
_FLAG_VARIABLE = re.compile(
    rb"^[ \t]*(?:export[ \t]+|override[ \t]+)?\w*(?:NVCC|CUDA|CU|GENCODE|ARCH|SM)\w*"
    rb"(?:FLAGS|OPTS?|OPTIONS|FLAG|ARCH\w*|CODE\w*|LIBS?|LDFLAGS)?[ \t]*[:+?]?=",
    re.I,
)
_LINKS = re.compile(rb"(?<!\S)-l(?:cudart|cuda|cublasLt|cublas|curand|cufft|cusparse|cusolver|nvrtc"
                    rb"|nccl|nvToolsExt)(?!\S)")  # fmt: skip
_COMPILER = re.compile(rb"(?<![\w./-])nvcc(?![\w.-])")


def _code(line: bytes) -> bytes:
    """A line without its comment."""
    match = re.search(rb"(?:^|\s)#", line)
    return line[: match.start()] if match else line


def _lines(unit: Unit) -> Iterator[tuple[int, bytes]]:
    """Start offset and text of each line, comments cut off."""
    starts = unit.source.line_starts
    for i, start in enumerate(starts):
        end = starts[i + 1] if i + 1 < len(starts) else len(unit.data)
        yield start, _code(unit.data[start:end].rstrip(b"\r\n"))


def _flag_findings(unit: Unit, context: Context, start: int, line: bytes) -> Iterator[Finding]:
    words = [(m.group().decode("utf-8", "replace"), m.start(), m.end())
             for m in re.finditer(rb"[^\s\"']+", line)]  # fmt: skip
    for item in translate([w for w, _, _ in words]):
        if not item.changed:
            continue
        first, last = words[item.first], words[item.first + item.count - 1]
        at, end = first[1], last[2]
        if not item.words:
            while at > 0 and line[at - 1 : at] in (b" ", b"\t"):
                at -= 1
        slug = item.finding or "nvcc-flags"
        change = Change(
            (Edit.replace(start + at, start + end, " ".join(item.words).encode()),),
            priority=10,
            label="nvcc-flags",
        )
        what = (
            f"'{item.text}' becomes '{' '.join(item.words)}'"
            if item.words
            else f"'{item.text}' was dropped"
        )
        fields: dict[str, Any] = {"what": what}
        if slug == "build-arch":
            fields = {"what": f"'{item.text}'", "chosen": "what --offload-arch names"}
        yield context.finding(
            slug, unit, Span(start + first[1], start + end), change=change, **fields
        )


def make_changes(unit: Unit, context: Context) -> Iterator[Finding | Change | Span]:
    """Make files: the compiler's name, flags in its variables and recipes, libraries."""
    continued = False
    for start, line in _lines(unit):
        relevant = continued or _NVCC_LINE.search(line) or _FLAG_VARIABLE.match(line)
        continued = bool(relevant) and line.endswith(b"\\")
        for match in _COMPILER.finditer(line):
            span = Span(start + match.start(), start + match.end())
            change = Change((Edit(span, b"hipcc"),), priority=10, label="build-language")
            yield context.finding(
                "build-language", unit, span, change=change, what="the compiler nvcc becomes hipcc"
            )
        if relevant:
            yield from _flag_findings(unit, context, start, line)
        else:
            for match in _LINKS.finditer(line):
                yield from _flag_findings(unit, context, start + match.start(), match.group())
    yield from _tool_findings(unit, context)


def script_changes(unit: Unit, context: Context) -> Iterator[Finding | Change | Span]:
    """Shell scripts and Docker files: tools and variables are named, nothing is rewritten."""
    yield from _tool_findings(unit, context)
    for start, line in _lines(unit):
        for match in _COMPILER.finditer(line):
            span = Span(start + match.start(), start + match.end())
            yield context.finding(
                "build-language", unit, span, what="the compiler nvcc is hipcc on ROCm"
            )


def _tool_findings(unit: Unit, context: Context) -> Iterator[Finding]:
    seen: set[tuple[str, int]] = set()
    for start, line in _lines(unit):
        for name, (slug, instead) in tools().items():
            pattern = rb"(?<![\w./$-])" + re.escape(name.encode()) + rb"(?![\w-])"
            for match in re.finditer(pattern, line):
                span = Span(start + match.start(), start + match.end())
                key = (name, unit.line(span.start))
                if key not in seen:
                    seen.add(key)
                    yield context.finding(slug, unit, span, name=name, instead=instead)


_REQUIREMENT = re.compile(rb"^\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*([=<>!~].*)?$")
_NVIDIA = re.compile(
    r"nvidia-.*|cupy-cuda\d+x?|.*-cu1[0-9]+x?|pynvml|nvidia-ml-py|tensorrt.*|cuda-python|pycuda"
    r"|flash-attn|xformers|bitsandbytes|apex|triton|faiss-gpu.*|cudf.*|cuml.*|rmm.*|jax\[cuda.*"
    r"|onnxruntime-gpu|cuda-bindings"
)
_HINTS = {
    "cupy": "CuPy's ROCm package", "flash-attn": "its ROCm build", "xformers": "its ROCm index",
    "bitsandbytes": "a version with ROCm support", "triton": "pytorch-triton-rocm",
    "onnxruntime-gpu": "onnxruntime-rocm", "pynvml": "amdsmi", "nvidia-ml-py": "amdsmi",
    "cuda-python": "hip-python", "pycuda": "hip-python",
}  # fmt: skip


def requirement_changes(unit: Unit, context: Context) -> Iterator[Finding | Change | Span]:
    """Requirement lists: packages that exist for NVIDIA only."""
    for start, line in _lines(unit):
        text = line.decode("utf-8", "replace").strip()
        local = re.search(r"\+cu\d+|/whl/cu\d+", text)
        match = _REQUIREMENT.match(line)
        name = match.group(1).decode().lower() if match else ""
        if local is None and not (name and _NVIDIA.fullmatch(name)):
            continue
        shown = local.group() if local is not None else name
        hint = next(
            (h for k, h in _HINTS.items() if name.startswith(k)), "the ROCm package or index"
        )
        lead = len(line) - len(line.lstrip())
        yield context.finding(
            "nvidia-packages", unit, Span(start + lead, start + len(line)), name=shown, instead=hint
        )
