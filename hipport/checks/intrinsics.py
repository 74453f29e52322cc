"""Device intrinsics without a HIP name, and launches and allocations in device code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function, on_device
from hipport.findings import Action, Finding, Severity
from hipport.parse.calls import find_calls
from hipport.parse.tokens import Kind, directive_name
from hipport.parse.types import FLOATS, INTEGERS, type_of
from hipport.parse.unit import Unit, arguments, callee
from hipport.source import Change, Edit, Safety, Span

COMPAT = '"hipport_compat.h"'


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


def _defined_here(unit: Unit, context: Context, name: bytes) -> bool:
    """Whether the code base has a function or macro of that name."""
    closure = context.project.closure(unit.path)
    return any(path in closure for path, _ in context.project.functions(name)) or bool(
        context.project.macros(unit.path, name)
    )


_DOT = {
    b"__dp4a": b"hipport_dp4a",
    b"__dp2a_lo": b"hipport_dp2a_lo",
    b"__dp2a_hi": b"hipport_dp2a_hi",
}


@check("dp4a-dp2a")
def dot_products(unit: Unit, context: Context) -> Iterator[Finding]:
    """``__dp4a`` and ``__dp2a``: no such names; the compatibility header has exact functions."""
    for call in find_calls(unit, _DOT):
        name = call.name.text
        if len(call.arguments) != 3 or _defined_here(unit, context, name):
            continue
        change = Change(
            (Edit.replace(call.name.start, call.name.end, _DOT[name]),),
            priority=10,
            needs=(COMPAT,),
            label="dp4a-dp2a",
        )
        yield context.finding(
            "dp4a-dp2a",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            name=name.decode(),
        )


_LOADS = {
    b"__ldcs": "nontemporal", b"__ldlu": "nontemporal", b"__ldcg": "plain", b"__ldca": "plain",
    b"__ldcv": "volatile",
}  # fmt: skip
_STORES = {b"__stcs": "nontemporal", b"__stwt": "nontemporal", b"__stcg": "plain",
           b"__stwb": "plain"}  # fmt: skip


@check("ldg-cache-hints")
def cache_hints(unit: Unit, context: Context) -> Iterator[Finding]:
    """Loads and stores with cache hints; ``__ldg`` itself exists."""
    for call in find_calls(unit, _LOADS):
        name, span = call.name.text, Span(call.name.start, call.name.end)
        if len(call.arguments) != 1 or _defined_here(unit, context, name):
            continue
        argument = call.arguments[0]
        if _LOADS[name] == "nontemporal" and _scalar_pointer(unit, argument):
            edits: tuple[Edit, ...] = (
                Edit.replace(span.start, span.end, b"__builtin_nontemporal_load"),
            )
        elif _LOADS[name] == "volatile":
            yield context.finding(
                "ldg-cache-hints",
                unit,
                span,
                action=Action.FLAG,
                name=name.decode(),
                what="use a relaxed __hip_atomic_load",
            )
            continue
        else:
            edits = (
                Edit.replace(span.start, call.open + 1, b"(*("),
                Edit.replace(call.close, call.close + 1, b"))"),
            )
        yield _hinted(unit, context, name, span, edits)
    for call in find_calls(unit, _STORES):
        name, span = call.name.text, Span(call.name.start, call.name.end)
        if len(call.arguments) != 2 or _defined_here(unit, context, name):
            continue
        first, second = call.arguments
        edits = (
            Edit.replace(span.start, call.open + 1, b"(*("),
            Edit.replace(first.end, second.start, b") = ("),
            Edit.replace(call.close, call.close + 1, b"))"),
        )
        yield _hinted(unit, context, name, span, edits)


def _hinted(
    unit: Unit, context: Context, name: bytes, span: Span, edits: tuple[Edit, ...]
) -> Finding:
    change = Change(edits, priority=10, label="ldg-cache-hints")
    return context.finding(
        "ldg-cache-hints",
        unit,
        span,
        change=change,
        name=name.decode(),
        what="a plain or nontemporal access takes its place",
    )


def _scalar_pointer(unit: Unit, argument: Span) -> bool:
    """Whether an argument is known to point to a scalar, which the builtin demands."""
    node = unit.tree.root_node.named_descendant_for_byte_range(argument.start, argument.end)
    while node is not None and node.end_byte < argument.end:
        node = node.parent
    kind = type_of(unit, node)
    return (
        kind is not None
        and kind.endswith("*")
        and (kind[:-1] in INTEGERS or kind[:-1] in FLOATS - {"half"})
    )


_SCOPED = re.compile(rb"^(atomic\w+?)_(block|system)$")
_FETCH = {
    b"atomicAdd": "add", b"atomicSub": "sub", b"atomicAnd": "and", b"atomicOr": "or",
    b"atomicXor": "xor", b"atomicMin": "min", b"atomicMax": "max",
}  # fmt: skip
_IN_HIP = frozenset({b"atomicAdd_system"})


@check("atomic-scope-missing")
def scoped_atomics(unit: Unit, context: Context) -> Iterator[Finding]:
    """``atomicAdd_block`` and kin: the scope is an argument of HIP's builtins."""
    names = {n for n in unit.identifiers if _SCOPED.match(n) and n not in _IN_HIP}
    for call in find_calls(unit, names):
        match = _SCOPED.match(call.name.text)
        if match is None or _defined_here(unit, context, call.name.text):
            continue
        scope = "WORKGROUP" if match.group(2) == b"block" else "SYSTEM"
        operation = _FETCH.get(match.group(1))
        verb = f"fetch_{operation}" if operation else None
        if match.group(1) == b"atomicExch":
            verb = "exchange"
        change = None
        if verb is not None and len(call.arguments) == 2:
            tail = f", __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_{scope}"
            change = Change(
                (
                    Edit.replace(call.name.start, call.name.end, f"__hip_atomic_{verb}".encode()),
                    Edit.insert(call.close, tail.encode()),
                ),
                priority=10,
                label="atomic-scope-missing",
            )
        yield context.finding(
            "atomic-scope-missing",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            action=None if change is not None else Action.FLAG,
            name=call.name.text.decode(),
        )


@check("dynamic-parallelism")
def dynamic_parallelism(unit: Unit, context: Context) -> Iterator[Finding]:
    """Launches and synchronisation in device code."""
    for node in unit.nodes.get("kernel_call_syntax", ()):
        if _only_device(unit, node):
            yield context.finding(
                "dynamic-parallelism", unit, _span(node), what="a kernel launch in device code"
            )
    for call in unit.calls(b"cudaDeviceSynchronize", b"cudaStreamCreateWithFlags"):
        if _only_device(unit, call):
            name = callee(unit, call).decode()
            yield context.finding(
                "dynamic-parallelism", unit, _span(call), what=f"{name} in device code"
            )


def _only_device(unit: Unit, node: Node) -> bool:
    function = enclosing_function(node)
    if function is None:
        return False
    body = function.child_by_field_name("body")
    text = unit.data[function.start_byte : body.start_byte if body else function.end_byte]
    return b"__global__" in text or (b"__device__" in text and b"__host__" not in text)


@check("device-heap")
def device_heap(unit: Unit, context: Context) -> Iterator[Finding]:
    """``malloc``, ``free`` and ``new`` in kernels."""
    nodes = list(unit.calls(b"malloc", b"free")) + list(unit.nodes.get("new_expression", ()))
    for node in sorted(nodes, key=lambda n: n.start_byte):
        if node.type == "new_expression" and re.match(rb"new\s*\(", unit.text(node)):
            continue
        if _only_device(unit, node):
            name = "new" if node.type == "new_expression" else callee(unit, node).decode()
            yield context.finding("device-heap", unit, _span(node), name=name)


@check("launch-through-macro")
def launch_through_macro(unit: Unit, context: Context) -> Iterator[Finding]:
    """Launches in macro bodies: kept as they are, clang takes them."""
    tokens = unit.code_tokens
    ends = -1
    for i, token in enumerate(tokens):
        if token.kind is Kind.DIRECTIVE and directive_name(token) == b"define":
            stop = re.compile(rb"(?<!\\)\r?\n").search(unit.data, token.start)
            ends = stop.start() if stop else len(unit.data)
        elif token.text == b"<<<" and token.start < ends and i:
            yield context.finding(
                "launch-through-macro", unit, Span(token.start, token.end), action=Action.AUTO
            )


_COUNTER = re.compile(rb"gridDim|\bblocks\b|num_?blocks|n_?blocks|grid_?size", re.I)


@check("home-made-grid-barrier")
def grid_barrier(unit: Unit, context: Context) -> Iterator[Finding]:
    """A counter that all blocks raise, and a loop that waits for it."""
    for kind in ("while_statement", "do_statement"):
        for node in unit.nodes.get(kind, ()):
            if not on_device(unit, node):
                continue
            condition = node.child_by_field_name("condition")
            function = enclosing_function(node)
            if condition is None or function is None:
                continue
            text, whole = unit.text(condition), unit.text(function)
            waits = _COUNTER.search(text) is not None or re.search(
                rb"atomicAdd\s*\([^,]+,\s*0\s*\)", text
            )
            if (
                waits
                and re.search(rb"atomic(?:Add|Inc|Sub)\s*\(", whole)
                and not re.search(rb"cooperative_groups|grid\.sync|this_grid", whole)
            ):
                yield context.finding("home-made-grid-barrier", unit, _span(condition))


_HALF_POINTER = re.compile(r"^(__half2?|half2?|__nv_bfloat162?|nv_bfloat162?)\*$")


@check("half-bf16-atomics")
def half_atomics(unit: Unit, context: Context) -> Iterator[Finding]:
    """``atomicAdd`` on half and bfloat16, absent from HIP for years."""
    for call in unit.calls(b"atomicAdd"):
        listed = arguments(call)
        kind = type_of(unit, listed[0]) if listed else None
        if kind is not None and _HALF_POINTER.match(kind.replace(" ", "")):
            yield context.finding("half-bf16-atomics", unit, _span(call), kind=kind[:-1])


@check("fp-atomics")
def float_atomics(unit: Unit, context: Context) -> Iterator[Finding]:
    """``atomicAdd`` on float and double: one note a file."""
    for call in unit.calls(b"atomicAdd"):
        listed = arguments(call)
        kind = type_of(unit, listed[0]) if listed else None
        if kind in ("float*", "double*"):
            yield context.finding(
                "fp-atomics",
                unit,
                _span(call),
                severity=Severity.INFO,
                name=f"atomicAdd on {kind[:-1]}",
            )


_HOST_MATH = (
    b"rsqrt", b"rsqrtf", b"rcbrt", b"rcbrtf", b"cospi", b"cospif", b"sinpi", b"sinpif",
    b"sincospi", b"sincospif", b"erfinv", b"erfinvf", b"erfcinv", b"erfcx", b"erfcxf",
    b"normcdf", b"normcdff", b"normcdfinv",
)  # fmt: skip


@check("host-math-functions")
def host_math(unit: Unit, context: Context) -> Iterator[Finding]:
    """CUDA's header gives these functions to the host too; HIP's are device-only."""
    if not unit.is_cuda:
        return
    for call in unit.calls(*_HOST_MATH):
        name = callee(unit, call)
        function = enclosing_function(call)
        if function is None or on_device(unit, call) or _defined_here(unit, context, name):
            continue
        change = None
        listed = arguments(call)
        if name in (b"rsqrt", b"rsqrtf") and len(listed) == 1:
            head = call.child_by_field_name("function")
            one = b"1.0f" if name == b"rsqrtf" else b"1.0"
            root = b"sqrtf" if name == b"rsqrtf" else b"sqrt"
            if head is not None:
                change = Change(
                    (
                        Edit.replace(head.start_byte, head.end_byte, b"(" + one + b" / " + root),
                        Edit.insert(call.end_byte, b")"),
                    ),
                    Safety.AUTO,
                    10,
                    label="host-math-functions",
                )
        yield context.finding(
            "host-math-functions",
            unit,
            _span(call),
            change=change,
            action=None if change is not None else Action.FLAG,
            name=name.decode(),
        )
