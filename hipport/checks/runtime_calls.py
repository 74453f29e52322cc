"""Runtime calls whose shape differs: symbols, function pointers, overloads, attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.findings import Action, Finding, Severity
from hipport.parse.calls import TokenCall, find_calls
from hipport.parse.facts import OwnName
from hipport.parse.tokens import Kind
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

SYMBOL_ARGUMENT = {
    b"cudaMemcpyToSymbol": 0,
    b"cudaMemcpyToSymbolAsync": 0,
    b"cudaMemcpyFromSymbol": 1,
    b"cudaMemcpyFromSymbolAsync": 1,
    b"cudaGetSymbolAddress": 1,
    b"cudaGetSymbolSize": 1,
    b"cudaGraphAddMemcpyNodeToSymbol": 4,
    b"cudaGraphAddMemcpyNodeFromSymbol": 5,
}
"""Which argument is the symbol."""

FUNCTION_ARGUMENT = {
    b"cudaFuncSetAttribute": 0,
    b"cudaFuncSetCacheConfig": 0,
    b"cudaFuncSetSharedMemConfig": 0,
    b"cudaFuncGetAttributes": 1,
    b"cudaLaunchKernel": 0,
}
"""Which argument is a kernel that CUDA's C++ overloads take as it is and HIP as ``const void*``."""

_IS_POINTER = re.compile(
    rb"(?:reinterpret_cast|static_cast)\s*<\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*>"
    rb"|\(\s*(?:const\s+)?void\s*(?:const\s*)?\*\s*\)|nullptr\b|NULL\b"
)


def _is_own(unit: Unit, call: TokenCall, own: list[OwnName]) -> bool:
    name = call.name.text
    return any(o.name == name and o.region.start <= call.name.start < o.region.end for o in own)


def _calls(unit: Unit, context: Context, names: dict[bytes, int]) -> Iterator[TokenCall]:
    """Calls in code: members, declarations and the code base's own functions left out."""
    own = context.project.own_names(unit.path)
    tokens = unit.code_tokens
    for call in find_calls(unit, names):
        before = tokens[call.index - 1] if call.index else None
        if before is not None and (
            before.text in (b".", b"->")
            or (
                before.kind is Kind.IDENT
                and before.text not in (b"return", b"else", b"do", b"case", b"throw", b"co_return")
                and not before.text.isupper()
            )
        ):
            continue
        if not _is_own(unit, call, own):
            yield call


@check("symbol-argument")
def symbol_argument(unit: Unit, context: Context) -> Iterator[Finding]:
    """``cudaMemcpyToSymbol(sym, ...)``: the portable form is ``HIP_SYMBOL(sym)``."""
    for call in _calls(unit, context, SYMBOL_ARGUMENT):
        at = SYMBOL_ARGUMENT[call.name.text]
        if at >= len(call.arguments):
            continue
        span = call.arguments[at]
        text = unit.source.text(span)
        if text.startswith((b"HIP_SYMBOL", b'"')) or not text or _IS_POINTER.match(text):
            continue
        change = Change(Edit.wrap(span, b"HIP_SYMBOL(", b")"), priority=10, label="symbol-argument")
        yield context.finding(
            "symbol-argument",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            symbol=text.decode("utf-8", "replace"),
        )


@check("smem-optin-attribute", "runtime-overloads")
def function_argument(unit: Unit, context: Context) -> Iterator[Finding]:
    """Kernels handed to calls that want ``const void*`` in HIP."""
    if unit.source.path.suffix == ".c":
        return
    for call in _calls(unit, context, FUNCTION_ARGUMENT):
        at = FUNCTION_ARGUMENT[call.name.text]
        if at >= len(call.arguments):
            continue
        span = call.arguments[at]
        text = unit.source.text(span)
        if _IS_POINTER.match(text) or not text:
            continue
        change = Change(
            Edit.wrap(span, b"reinterpret_cast<const void*>(", b")"),
            priority=10,
            label="smem-optin-attribute",
        )
        place = Span(call.name.start, call.name.end)
        kernel = text.decode("utf-8", "replace")
        name = call.name.text.decode()
        if name == "cudaFuncSetAttribute":
            yield context.finding(
                "smem-optin-attribute", unit, place, change=change, call=name, kernel=kernel
            )
        else:
            yield context.finding(
                "runtime-overloads",
                unit,
                place,
                change=change,
                call=f"{name} with '{kernel}'",
                instead="a cast to const void*",
            )


_TYPED_POINTER = {b"cudaMallocPitch": 0, b"cudaHostAlloc": 0}


@check("runtime-overloads")
def overloads(unit: Unit, context: Context) -> Iterator[Finding]:
    """C++ overloads of the CUDA runtime that HIP spells otherwise."""
    for call in _calls(unit, context, {b"cudaEventCreate": 0}):
        if len(call.arguments) == 2:
            change = Change(
                (Edit.replace(call.name.start, call.name.end, b"hipEventCreateWithFlags"),),
                priority=10,
                label="runtime-overloads",
            )
            yield context.finding(
                "runtime-overloads",
                unit,
                Span(call.name.start, call.name.end),
                change=change,
                call="cudaEventCreate(event, flags)",
                instead="hipEventCreateWithFlags",
            )
    for call in _calls(unit, context, {b"cudaMallocHost": 0}):
        text = unit.source.text(call.arguments[0]) if call.arguments else b"(void"
        typed = re.search(rb"void\s*\*\s*\*\s*" + re.escape(text.lstrip(b"&")) + rb"\b", unit.data)
        if typed is None and not re.match(rb"\(\s*void|reinterpret_cast\s*<\s*void", text):
            yield context.finding(
                "runtime-overloads",
                unit,
                Span(call.name.start, call.name.end),
                action=Action.AUTO,
                severity=Severity.INFO,
                call="cudaMallocHost with a typed pointer",
                instead="hipHostMalloc",
            )
    if context.rocm >= (6, 0) or unit.source.path.suffix == ".c":
        return
    for call in _calls(unit, context, _TYPED_POINTER):
        if not call.arguments:
            continue
        span = call.arguments[0]
        text = unit.source.text(span)
        if re.match(rb"\(\s*void|reinterpret_cast\s*<\s*void", text):
            continue
        change = Change(
            Edit.wrap(span, b"reinterpret_cast<void**>(", b")"),
            priority=10,
            label="runtime-overloads",
        )
        yield context.finding(
            "runtime-overloads",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            call=f"{call.name.text.decode()} with a typed pointer",
            instead="a cast to void**",
        )


@check("pointer-attributes")
def pointer_attributes(unit: Unit, context: Context) -> Iterator[Finding]:
    """``attr.memoryType`` is ``attr.type`` since HIP 6."""
    if context.rocm < (6, 0) or b"memoryType" not in unit.identifiers:
        return
    tokens = unit.code_tokens
    variables: set[bytes] = set()
    for i, token in enumerate(tokens):
        if token.text in (b"cudaPointerAttributes", b"hipPointerAttribute_t"):
            at = i + 1
            while at < len(tokens) and tokens[at].text in (b"*", b"&", b"const"):
                at += 1
            while at < len(tokens) and tokens[at].kind is Kind.IDENT:
                variables.add(tokens[at].text)
                if tokens[at + 1 : at + 2] and tokens[at + 1].text == b",":
                    at += 2
                else:
                    break
    for i, token in enumerate(tokens):
        if token.text != b"memoryType" or i < 2 or tokens[i - 1].text not in (b".", b"->"):
            continue
        base = i - 2
        while base > 0 and tokens[base].text != b"" and tokens[base].kind is not Kind.IDENT:
            base -= 1
        if tokens[base].text not in variables:
            continue
        change = Change(
            (Edit.replace(token.start, token.end, b"type"),),
            priority=10,
            label="pointer-attributes",
        )
        yield context.finding(
            "pointer-attributes", unit, Span(token.start, token.end), change=change
        )


_RUNTIME_HEADERS = frozenset(
    {
        b"cuda_runtime.h",
        b"cuda.h",
        b"hip/hip_runtime.h",
        b"cooperative_groups.h",
        b"hip/hip_cooperative_groups.h",
    }
)
_BRINGS_RUNTIME = re.compile(
    rb"(?:^|/)hipport_\w+\.h$|^(?:torch/|ATen/(?:cuda|hip)|c10/(?:cuda|hip)|thrust/|cub/|hipcub/|cublas|hipblas|mma\.h)"
)
_NEEDS_RUNTIME = frozenset(
    b"threadIdx blockIdx blockDim gridDim __syncthreads __syncwarp "
    b"dim3 float4 float2 int2 int4 uint3 warpSize atomicAdd".split()
)


_RUNTIME_NAME = re.compile(rb"cuda[A-Z]|cu[A-Z]|hip[A-Z]|__shfl")


@check("implicit-runtime-header")
def implicit_runtime_header(unit: Unit, context: Context) -> Iterator[Finding]:
    """nvcc includes ``cuda_runtime.h`` before every ``.cu``; hipcc includes no API header."""
    if unit.source.path.suffix not in (".cu", ".hip"):
        return
    names = unit.identifiers
    if not names & _NEEDS_RUNTIME and not any(_RUNTIME_NAME.match(n) for n in names):
        return
    seen = context.project.system_includes(unit.path) | {
        t.text[1:-1].strip() for t in unit.tokens if t.kind is Kind.HEADER
    }
    if seen & _RUNTIME_HEADERS or any(_BRINGS_RUNTIME.match(name) for name in seen):
        return
    first = next((t for t in unit.code_tokens), None)
    if first is None:
        return
    change = Change(
        (), needs=("<hip/hip_runtime.h>",), priority=10, label="implicit-runtime-header"
    )
    yield context.finding(
        "implicit-runtime-header", unit, Span(first.start, first.end), change=change
    )
