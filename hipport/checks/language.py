"""Language details: initialisers, bools, exceptions, results, strings, guards of frameworks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import on_device
from hipport.findings import Action, Finding, Severity
from hipport.parse.conditions import chains
from hipport.parse.tokens import Kind, Token
from hipport.parse.types import UNSIGNED, canonical, type_of
from hipport.parse.unit import Unit, arguments, callee
from hipport.parse.values import evaluate
from hipport.source import Change, Edit, Span

_VECTOR = re.compile(rb"^(?:const\s+)?(?:u?(?:char|short|int|long|longlong)|float|double)([234])$")


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


@check("vector-init")
def vector_init(unit: Unit, context: Context) -> Iterator[Finding]:
    """``float4 v = {1.f}``: CUDA fills with zeros, HIP's one-argument constructor is explicit."""
    for node in unit.nodes.get("declaration", ()):
        kind = unit.text(node.child_by_field_name("type"))
        match = _VECTOR.match(kind)
        if match is None:
            continue
        for declarator in node.children_by_field_name("declarator"):
            value = declarator.child_by_field_name("value")
            target = declarator.child_by_field_name("declarator")
            if value is None or value.type != "initializer_list" or target is None:
                continue
            listed = [c for c in value.named_children if c.type != "comment"]
            if target.type == "identifier" and any(c.type == "initializer_pair" for c in listed):
                yield context.finding(
                    "vector-init",
                    unit,
                    _span(declarator),
                    action=Action.FLAG,
                    kind=kind.decode(),
                    count=len(listed),
                )
                continue
            if target.type != "identifier" or len(listed) != 1:
                continue
            if listed[0].type in ("initializer_pair", "initializer_list") or _VECTOR.match(
                (type_of(unit, listed[0]) or "").encode()
            ):
                continue
            rest = b", 0" * (int(match.group(1)) - 1)
            change = Change(
                (Edit.insert(listed[0].end_byte, rest),), priority=10, label="vector-init"
            )
            yield context.finding(
                "vector-init", unit, _span(declarator), change=change, kind=kind.decode(), count=1
            )


@check("byte-as-bool")
def byte_as_bool(unit: Unit, context: Context) -> Iterator[Finding]:
    """Casts of other pointers to ``bool*``."""
    if not unit.is_cuda or b"bool" not in unit.data:
        return
    lines: set[int] = set()
    for node in (*unit.nodes.get("cast_expression", ()), *unit.nodes.get("call_expression", ())):
        text = unit.data[node.start_byte : min(node.end_byte, node.start_byte + 80)]
        if (
            re.match(
                rb"\(\s*(?:const\s+)?bool\s*(?:const\s*)?\*\s*\)"
                rb"|reinterpret_cast\s*<\s*(?:const\s+)?bool\s*(?:const\s*)?\*",
                text,
            )
            is None
        ):
            continue
        line = unit.line(node.start_byte)
        if line not in lines:
            lines.add(line)
            yield context.finding("byte-as-bool", unit, _span(node))


@check("clang-strictness")
def strictness(unit: Unit, context: Context) -> Iterator[Finding]:
    """Exceptions in device code."""
    for kind in ("throw_statement", "try_statement"):
        for node in unit.nodes.get(kind, ()):
            function = node.parent
            while function is not None and function.type != "function_definition":
                function = function.parent
            if function is None:
                continue
            body = function.child_by_field_name("body")
            text = unit.data[function.start_byte : body.start_byte if body else node.start_byte]
            if b"__global__" in text or (b"__device__" in text and b"__host__" not in text):
                yield context.finding(
                    "clang-strictness", unit, _span(node), what="exceptions in device code"
                )


@check("printf-device")
def device_printf(unit: Unit, context: Context) -> Iterator[Finding]:
    """``printf`` on the device: one note a file."""
    for call in unit.calls(b"printf"):
        if on_device(unit, call):
            yield context.finding("printf-device", unit, _span(call))
            return


@check("overload-ambiguity")
def overload_ambiguity(unit: Unit, context: Context) -> Iterator[Finding]:
    """``abs`` of unsigned and ``pow(float, int)`` in device code."""
    for call in unit.calls(b"abs", b"pow"):
        listed = arguments(call)
        if not on_device(unit, call) or not listed:
            continue
        first = type_of(unit, listed[0])
        if callee(unit, call) == b"abs" and len(listed) == 1 and first in UNSIGNED:
            yield context.finding(
                "overload-ambiguity",
                unit,
                _span(call),
                what="abs of an unsigned value is ambiguous in HIP",
            )
        elif (
            callee(unit, call) == b"pow"
            and len(listed) == 2
            and first == "float"
            and (type_of(unit, listed[1]) == "int")
        ):
            yield context.finding(
                "overload-ambiguity",
                unit,
                _span(call),
                severity=Severity.INFO,
                what="pow(float, int) is computed in float in HIP and in double by recent nvcc",
            )


@check("integer-intrinsic-bugs")
def averaging(unit: Unit, context: Context) -> Iterator[Finding]:
    """Integer averages of HIP before 6.3."""
    if context.rocm >= (6, 3):
        return
    for call in unit.calls(b"__hadd", b"__rhadd", b"__uhadd", b"__urhadd"):
        listed = arguments(call)
        if listed and type_of(unit, listed[0]) in ("int", "unsigned"):
            yield context.finding(
                "integer-intrinsic-bugs", unit, _span(call), name=callee(unit, call).decode()
            )


_WIDE = ("long", "longlong", "ulong", "ulonglong")


@check("float-int-conversion", "nan-minmax")
def conversions(unit: Unit, context: Context) -> Iterator[Finding]:
    """Casts of floating point to 64-bit integers, and float extremes, in device code."""
    for node in (*unit.nodes.get("cast_expression", ()), *unit.nodes.get("call_expression", ())):
        target, value = _cast(unit, node)
        if (
            target in _WIDE
            and value is not None
            and type_of(unit, value) in ("float", "double")
            and (on_device(unit, node))
        ):
            yield context.finding(
                "float-int-conversion", unit, _span(node), name="the cast to a 64-bit integer"
            )
    for call in unit.calls(b"min", b"max"):
        kinds = [type_of(unit, a) for a in arguments(call)]
        if on_device(unit, call) and kinds and all(k in ("float", "double") for k in kinds):
            yield context.finding("nan-minmax", unit, _span(call))


def _cast(unit: Unit, node: Node) -> tuple[str | None, Node | None]:
    """Target type and operand of a cast."""
    if node.type == "cast_expression":
        return canonical(unit.text(node.child_by_field_name("type"))), node.child_by_field_name(
            "value"
        )
    function = unit.text(node.child_by_field_name("function"))
    match = re.fullmatch(rb"static_cast\s*<(.*)>", function)
    listed = arguments(node)
    return (canonical(match.group(1)), listed[0]) if match and len(listed) == 1 else (None, None)


@check("clang-strictness")
def shared_objects(unit: Unit, context: Context) -> Iterator[Finding]:
    """Objects with constructors in shared memory."""
    made = set(re.findall(rb"\b(?:struct|class)\s+(\w+)[^;{}]*\{[^{}]*\b\1\s*\(", unit.data))
    made |= {
        m.group(1)
        for m in re.finditer(rb"\b(?:struct|class)\s+(\w+)\s*\{[^{}]*?\w\s*=\s*[^;=]+;", unit.data)
    }
    for node in unit.nodes.get("declaration", ()):
        if b"__shared__" not in unit.data[node.start_byte : node.start_byte + 60]:
            continue
        if unit.text(node.child_by_field_name("type")) in made:
            yield context.finding(
                "clang-strictness",
                unit,
                _span(node),
                what="an object with a constructor in shared memory",
            )


@check("integer-intrinsic-bugs")
def averaging_note(unit: Unit, context: Context) -> Iterator[Finding]:
    """The same as a note for newer versions, where the results are right."""
    if context.rocm < (6, 3):
        return
    for call in unit.calls(b"__hadd", b"__rhadd", b"__uhadd", b"__urhadd"):
        listed = arguments(call)
        if listed and type_of(unit, listed[0]) in ("int", "unsigned"):
            yield context.finding(
                "integer-intrinsic-bugs",
                unit,
                _span(call),
                severity=Severity.INFO,
                name=callee(unit, call).decode(),
            )


@check("nodiscard-return")
def unchecked(unit: Unit, context: Context) -> Iterator[Finding]:
    """Calls whose result nobody looks at: one note a file."""
    bare = [
        call
        for node in unit.nodes.get("expression_statement", ())
        for call in node.named_children[:1]
        if call.type == "call_expression"
        and re.match(rb"cu(?:da)?[A-Z]|hip[A-Z]|cublas|hipblas", callee(unit, call))
    ]
    if bare:
        yield context.finding("nodiscard-return", unit, _span(bare[0]), count=len(bare))


@check("indirect-calls")
def indirect(unit: Unit, context: Context) -> Iterator[Finding]:
    """Virtual device functions: one note a file."""
    pattern = (
        rb"\bvirtual\b[^;{}]*__device__|__device__[^;{}()]*\bvirtual\b"
        rb"|(?:__device__|__constant__)\s+\w+\s+\w+\s*\[[^\]]*\]\s*=\s*\{\s*&?[A-Za-z_]\w*\s*[,}]"
        rb"|(?:__device__|__constant__)\s+\w+\s+\w+\s*=\s*&?[A-Za-z_]\w*\s*;"
    )
    for match in re.finditer(pattern, unit.data):
        yield context.finding("indirect-calls", unit, Span(match.start(), match.end()))


_OPTION = re.compile(
    rb"--?gpu-architecture(?:=|\b)(?:compute|sm)?\w*|-arch=(?:sm|compute)_\w+|--gpu-code\S*"
    rb"|\bcompute_\d+\b|--use_fast_math|--std=c\+\+\d+(?=.*sm_)"
)


@check("nvrtc-options")
def nvrtc_options(unit: Unit, context: Context) -> Iterator[Finding]:
    """Architecture options in string literals."""
    if not any(n.startswith((b"nvrtc", b"hiprtc")) for n in unit.identifiers):
        return
    for token in unit.tokens:
        if token.kind is not Kind.STRING:
            continue
        match = _OPTION.search(token.text)
        if match is not None:
            yield context.finding(
                "nvrtc-options",
                unit,
                Span(token.start, token.end),
                name=match.group().decode("utf-8", "replace"),
            )


@check("thrust-backend")
def thrust_backend(unit: Unit, context: Context) -> Iterator[Finding]:
    """``thrust::cuda::par`` and kin."""
    tokens = unit.code_tokens
    for i, token in enumerate(tokens[:-2]):
        if (
            token.text == b"thrust"
            and tokens[i + 1].text == b"::"
            and (tokens[i + 2].text == b"cuda")
        ):
            yield context.finding(
                "thrust-backend",
                unit,
                Span(token.start, tokens[i + 2].end),
                action=Action.AUTO,
                name="thrust::cuda",
            )


@check("tf-custom-op")
def tensorflow_guard(unit: Unit, context: Context) -> Iterator[Finding]:
    """``#if GOOGLE_CUDA``: widened by ROCm's macro."""
    if b"GOOGLE_CUDA" not in unit.identifiers:
        return
    for chain in chains(unit):
        for branch in chain.branches:
            condition = branch.condition
            if condition is None or b"GOOGLE_CUDA" not in condition.names():
                continue
            if b"TENSORFLOW_USE_ROCM" in condition.names():
                continue
            token = next(t for t in condition.tokens if t.text == b"GOOGLE_CUDA")
            edits: tuple[Edit, ...]
            if condition.word == b"ifdef":
                edits = (Edit.replace(
                    condition.head.start, token.end,
                    b"#if defined(GOOGLE_CUDA) || defined(TENSORFLOW_USE_ROCM)"),)  # fmt: skip
            elif condition.word == b"ifndef":
                edits = (Edit.replace(
                    condition.head.start, token.end,
                    b"#if !defined(GOOGLE_CUDA) && !defined(TENSORFLOW_USE_ROCM)"),)  # fmt: skip
            else:
                edits = _widen(condition.tokens)
            change = Change(edits, priority=10, label="tf-custom-op") if edits else None
            yield context.finding("tf-custom-op", unit, Span(token.start, token.end), change=change)


def _widen(tokens: tuple[Token, ...]) -> tuple[Edit, ...]:
    for i, token in enumerate(tokens):
        if token.text != b"GOOGLE_CUDA":
            continue
        first, last = token, token
        text = b"GOOGLE_CUDA || TENSORFLOW_USE_ROCM"
        if i >= 2 and tokens[i - 1].text == b"(" and tokens[i - 2].text == b"defined":
            first, last = tokens[i - 2], tokens[i + 1]
            text = b"defined(GOOGLE_CUDA) || defined(TENSORFLOW_USE_ROCM)"
        elif i >= 1 and tokens[i - 1].text == b"defined":
            first = tokens[i - 1]
            text = b"defined(GOOGLE_CUDA) || defined(TENSORFLOW_USE_ROCM)"
        whole = first is tokens[0] and last is tokens[-1]
        return (Edit.replace(first.start, last.end, text if whole else b"(" + text + b")"),)
    return ()


_STD_HEADERS = {
    b"vector": b"vector", b"sort": b"algorithm", b"min": b"algorithm", b"max": b"algorithm",
    b"string": b"string", b"map": b"map", b"function": b"functional", b"unique_ptr": b"memory",
    b"thread": b"thread", b"mutex": b"mutex", b"array": b"array", b"tuple": b"tuple",
    b"accumulate": b"numeric", b"numeric_limits": b"limits",
}  # fmt: skip


@check("hip7-header-slimming")
def standard_headers(unit: Unit, context: Context) -> Iterator[Finding]:
    """Standard names in CUDA sources that include no standard header for them."""
    if not unit.is_cuda or context.rocm < (7, 0) or b"std" not in unit.identifiers:
        return
    seen = context.project.system_includes(unit.path)
    if any(b"/" in name and not name.startswith((b"hip/", b"cub/")) for name in seen):
        return
    tokens = unit.code_tokens
    named: set[bytes] = set()
    for i, token in enumerate(tokens[:-2]):
        if token.text != b"std" or tokens[i + 1].text != b"::":
            continue
        name = tokens[i + 2].text
        header = _STD_HEADERS.get(name)
        if header is None or header in seen or name in named:
            continue
        named.add(name)
        yield context.finding(
            "hip7-header-slimming",
            unit,
            Span(token.start, tokens[i + 2].end),
            name=f"std::{name.decode()}",
            header=header.decode(),
        )


@check("denormals")
def flushing(unit: Unit, context: Context) -> Iterator[Finding]:
    """PTX instructions that flush subnormals."""
    for token in unit.tokens:
        if token.kind is Kind.STRING and re.search(rb"\b\w+(?:\.\w+)*\.ftz\.", token.text):
            yield context.finding(
                "denormals", unit, Span(token.start, token.end), what="a flushing PTX instruction"
            )


@check("device-selection")
def device_order(unit: Unit, context: Context) -> Iterator[Finding]:
    """CUDA_DEVICE_ORDER in a string."""
    for token in unit.tokens:
        if token.kind is Kind.STRING and token.text == b'"CUDA_DEVICE_ORDER"':
            yield context.finding(
                "device-selection", unit, Span(token.start, token.end), name="CUDA_DEVICE_ORDER"
            )


@check("cub-block-multiple")
def transposed_blocks(unit: Unit, context: Context) -> Iterator[Finding]:
    """Warp-transposed loads and stores of blocks that fill no whole wavefronts."""
    pattern = (
        rb"Block(?:Load|Store|Exchange)\s*<\s*[^,<>]+,\s*([^,<>]+),[^;]*?"
        rb"BLOCK_(?:LOAD|STORE)_WARP_TRANSPOSE\w*"
    )
    for match in re.finditer(pattern, unit.data):
        number = evaluate(match.group(1), unit.path, context.project)
        if number is None or number % 64:
            yield context.finding(
                "cub-block-multiple",
                unit,
                Span(match.start(), match.end()),
                severity=Severity.INFO if number is None else None,
                name=f"a block of {match.group(1).strip().decode('utf-8', 'replace')}",
            )


@check("fp8-format")
def fp8_limit(unit: Unit, context: Context) -> Iterator[Finding]:
    """The largest e4m3 value as a number in files about 8-bit floats."""
    if not any(re.search(rb"fp8|e4m3|float8", n, re.I) for n in unit.identifiers):
        return
    for token in unit.code_tokens:
        if token.kind is not Kind.NUMBER or not re.fullmatch(rb"448(?:\.0*)?[fF]?", token.text):
            continue
        line = unit.source.text(unit.source.line_span(unit.line(token.start)))
        if re.search(rb"fp8|e4m3|float8|max|limit|clamp|scale", line, re.I):
            yield context.finding(
                "fp8-format", unit, Span(token.start, token.end), name="the limit 448"
            )


@check("memcpy-sync-semantics")
def pageable_copies(unit: Unit, context: Context) -> Iterator[Finding]:
    """Asynchronous copies from or to memory of the C++ heap."""
    for call in unit.calls(b"cudaMemcpyAsync", b"cudaMemcpy2DAsync"):
        if any(re.search(rb"\.data\(\)|^&|\bnew\b", unit.text(a)) for a in arguments(call)[:2]):
            yield context.finding(
                "memcpy-sync-semantics", unit, _span(call), name="cudaMemcpyAsync"
            )


@check("rdc-cross-unit")
def across_units(unit: Unit, context: Context) -> Iterator[Finding]:
    """Device variables and functions that another translation unit defines."""
    for match in re.finditer(
        rb"^[ \t]*extern\s+(?:__device__|__constant__|__managed__)\b[^;()]*;", unit.data, re.M
    ):
        yield context.finding(
            "rdc-cross-unit",
            unit,
            Span(match.start(), match.end()),
            what="a device variable of another file",
        )
    facts = context.project.files.get(unit.path)
    for function in facts.functions if facts is not None else ():
        if function.is_definition or function.space != "device":
            continue
        if not any(f.is_definition for _, f in context.project.functions(function.name)):
            yield context.finding(
                "rdc-cross-unit",
                unit,
                unit.source.line_span(function.line),
                what=f"the device function {function.name.decode('utf-8', 'replace')}, "
                "which is defined nowhere in the project",
            )
