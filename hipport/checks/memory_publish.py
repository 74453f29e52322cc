"""Publishing data, cooperative grids, fine-grained memory, launch limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function, head, on_device
from hipport.findings import Finding, Severity
from hipport.parse.calls import find_calls
from hipport.parse.cuda import walk
from hipport.parse.facts import FunctionFact
from hipport.parse.types import type_of
from hipport.parse.unit import Unit, arguments, callee
from hipport.parse.values import SIZES, evaluate
from hipport.source import Span

_PUBLISHES = frozenset({b"atomicExch", b"atomicCAS", b"atomicAdd", b"atomicOr", b"atomicInc"})
_FLAG_NAME = re.compile(rb"flag|ready|head|lock|mutex|tail|done|publish|avail|full|turn|next", re.I)
_FENCES = frozenset({b"__threadfence", b"__threadfence_system", b"__syncthreads",
                     b"__threadfence_block"})  # fmt: skip


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


@check("publish-without-fence")
def publish(unit: Unit, context: Context) -> Iterator[Finding]:
    """A plain store to memory, then an atomic on a flag, with no fence between the two."""
    for function in unit.nodes.get("function_definition", ()):
        body = function.child_by_field_name("body")
        if body is None or not on_device(unit, body):
            continue
        shared = _shared_names(unit, body)
        stored: Node | None = None
        for node in walk(body):
            if node.type in ("assignment_expression", "update_expression"):
                left = node.child_by_field_name("left") or node.child_by_field_name("argument")
                right = node.child_by_field_name("right")
                if right is not None and b"atomic" in unit.text(right):
                    continue
                if left is not None and _is_memory(unit, left, shared):
                    stored = node
            elif node.type == "call_expression":
                name = callee(unit, node)
                if name in _FENCES:
                    stored = None
                elif (
                    name in _PUBLISHES
                    and stored is not None
                    and (node.start_byte >= stored.end_byte)
                ):
                    listed = arguments(node)
                    target = unit.text(listed[0]) if listed else b""
                    if _FLAG_NAME.search(target) and not _mentions(shared, target):
                        yield context.finding(
                            "publish-without-fence", unit, _span(node), name=name.decode()
                        )
                    stored = None


def _shared_names(unit: Unit, body: Node) -> frozenset[bytes]:
    text = unit.text(body)
    return frozenset(re.findall(rb"__shared__[^;=\[]*?\b([A-Za-z_]\w*)\s*[\[;=]", text))


def _mentions(names: frozenset[bytes], text: bytes) -> bool:
    return any(re.search(rb"\b" + re.escape(n) + rb"\b", text) for n in names)


def _is_memory(unit: Unit, left: Node, shared: frozenset[bytes]) -> bool:
    text = unit.text(left)
    if _mentions(shared, text):
        return False
    if left.type == "subscript_expression":
        base = left.child_by_field_name("argument")
        kind = type_of(unit, base)
        declared = base is not None and base.type == "identifier"
        return not (declared and kind is None) or b"->" in text
    if left.type == "pointer_expression":
        return True
    if left.type != "field_expression":
        return False
    base = left.child_by_field_name("argument")
    return b"->" in text or (base is not None and base.type == "subscript_expression")


@check("cooperative-residency")
def cooperative(unit: Unit, context: Context) -> Iterator[Finding]:
    """Cooperative launches in files that never ask for the occupancy."""
    names = (b"cudaLaunchCooperativeKernel", b"cuLaunchCooperativeKernel")
    asks = any(b"OccupancyMaxActiveBlocks" in name for name in unit.identifiers)
    if asks:
        return
    for call in find_calls(unit, names):
        yield context.finding("cooperative-residency", unit, Span(call.name.start, call.name.end))


_FINE = (b"cudaMallocManaged", b"cudaHostAlloc", b"cudaMallocHost", b"__managed__")


@check("fp-atomics-fine-grained", "atomic-minmax-float")
def float_atomics(unit: Unit, context: Context) -> Iterator[Finding]:
    """Float atomics where fine-grained memory is about; float min/max of HIP 5."""
    fine = next((name for name in _FINE if name in unit.identifiers), None)
    for call in unit.calls(b"atomicAdd", b"unsafeAtomicAdd", b"atomicMax", b"atomicMin"):
        listed = arguments(call)
        kind = type_of(unit, listed[0]) if listed else None
        name = callee(unit, call)
        if kind not in ("float*", "double*"):
            continue
        if name in (b"atomicMax", b"atomicMin"):
            yield context.finding(
                "atomic-minmax-float",
                unit,
                _span(call),
                name=name.decode(),
                kind=kind[:-1],
                severity=None if context.rocm < (6, 0) else Severity.INFO,
            )
        elif fine is not None and _may_point_to(unit, context, call, listed[0], _MANAGED):
            yield context.finding(
                "fp-atomics-fine-grained",
                unit,
                _span(call),
                kind=kind[:-1],
                name=fine.decode() if fine else "",
            )


@check("constant-in-template")
def constant_in_template(unit: Unit, context: Context) -> Iterator[Finding]:
    """``__constant__`` variables and members inside templates."""
    if b"__constant__" not in unit.identifiers:
        return
    for kind in ("declaration", "field_declaration"):
        for node in unit.nodes.get(kind, ()):
            text = unit.data[node.start_byte : node.start_byte + 160].split(b";")[0]
            parent = node.parent
            if b"__constant__" not in text:
                continue
            while parent is not None and parent.type != "template_declaration":
                parent = parent.parent
            if parent is not None:
                yield context.finding("constant-in-template", unit, _span(node))


_ARGUMENT_BYTES = 4096


@check("kernel-argument-size")
def argument_size(unit: Unit, context: Context) -> Iterator[Finding]:
    """Structures by value whose arrays alone exceed HIP's limit."""
    sizes: dict[bytes, int] = {}
    for node in unit.nodes.get("struct_specifier", ()):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            continue
        total = 0
        for member in body.named_children:
            if member.type != "field_declaration":
                continue
            size = SIZES.get(unit.text(member.child_by_field_name("type")), 0)
            for declarator in member.children_by_field_name("declarator"):
                count: int | None = 1
                current: Node | None = declarator
                while current is not None and current.type == "array_declarator":
                    value = evaluate(
                        unit.text(current.child_by_field_name("size")), unit.path, context.project
                    )
                    count = None if count is None or value is None else count * value
                    current = current.child_by_field_name("declarator")
                pointer = declarator.type == "pointer_declarator"
                total += (8 if pointer else size) * (count or 0)
        sizes[unit.text(name)] = total
    for path, function in _kernels(unit, context):
        if path != unit.path:
            continue
        for kind, parameter in function.params:
            plain = kind.replace(b"const", b"").replace(b"struct", b"").strip()
            size = sizes.get(plain, 0)
            if size > _ARGUMENT_BYTES:
                at = unit.data.find(parameter, function.span.start)
                yield context.finding(
                    "kernel-argument-size",
                    unit,
                    Span(at, at + len(parameter)),
                    name=parameter.decode("utf-8", "replace"),
                    size=size,
                )


def _kernels(unit: Unit, context: Context) -> Iterator[tuple[str, FunctionFact]]:
    facts = context.project.files.get(unit.path)
    for function in facts.functions if facts is not None else ():
        if function.space == "global" and function.is_definition:
            yield unit.path, function


@check("launch-bounds-exceeded")
def bounds_exceeded(unit: Unit, context: Context) -> Iterator[Finding]:
    """Launches with more threads a block than the kernel was compiled for."""
    bounds: dict[bytes, int] = {}
    for node in unit.nodes.get("function_definition", ()):
        text = head(unit, node)
        match = re.search(rb"__launch_bounds__\s*\(\s*([^(),]+)", text)
        named = (
            re.search(rb"([A-Za-z_]\w*)\s*\(", text[match.end() :].split(b")", 1)[-1])
            if (match)
            else None
        )
        if match is None or named is None:
            continue
        value = evaluate(match.group(1), unit.path, context.project)
        if value is not None:
            bounds[named.group(1)] = value
    if not bounds:
        return
    facts = context.project.files.get(unit.path)
    for launch in facts.launches if facts is not None else ():
        bound = bounds.get(launch.kernel)
        block = _threads(launch.block, unit, context)
        if bound is not None and block is not None and block > bound:
            yield context.finding(
                "launch-bounds-exceeded",
                unit,
                unit.source.line_span(launch.line),
                kernel=launch.kernel.decode("utf-8", "replace"),
                block=block,
                bound=bound,
            )


def _threads(text: bytes, unit: Unit, context: Context) -> int | None:
    """Threads a block of a launch parameter: a number, or ``dim3(x, y, z)``."""
    match = re.fullmatch(rb"\s*dim3\s*[({](.*)[)}]\s*", text, re.S)
    parts = match.group(1).split(b",") if match else [text]
    total = 1
    for part in parts:
        value = evaluate(part, unit.path, context.project)
        if value is None:
            return None
        total *= value
    return total


_MANAGED = re.compile(
    rb"cuda(?:MallocManaged|HostAlloc|MallocHost)\s*\(\s*(?:\(\s*void\s*\*\s*\*\s*\)\s*)?&\s*(\w+)"
)
_MAPPED = re.compile(
    rb"cuda(?:HostGetDevicePointer|HostAlloc)\s*\(\s*(?:\(\s*void\s*\*\s*\*\s*\)\s*)?&\s*(\w+)"
)
_RISKY_ATOMICS = (
    b"atomicMin", b"atomicMax", b"atomicCAS", b"atomicSub", b"atomicAnd", b"atomicOr",
    b"atomicXor", b"atomicExch", b"atomicInc", b"atomicDec",
)  # fmt: skip


def _may_point_to(
    unit: Unit, context: Context, call: Node, target: Node, allocated: re.Pattern[bytes]
) -> bool:
    """Whether an atomic's target is a kernel parameter that gets memory of such an allocation.

    Without a launch of the kernel in the file nothing is known, which counts as no.
    """
    names = set(allocated.findall(unit.data))
    function = enclosing_function(call)
    facts = context.project.files.get(unit.path)
    if not names or function is None or facts is None:
        return False
    words = set(re.findall(rb"[A-Za-z_]\w*", unit.text(target)))
    for fact in facts.functions:
        if not fact.span.start <= call.start_byte < fact.span.end:
            continue
        places = [i for i, (_, name) in enumerate(fact.params) if name in words]
        for syntax in unit.nodes.get("kernel_call_syntax", ()):
            launch = syntax.parent
            if launch is None or fact.name not in unit.text(launch).split(b"<<<")[0]:
                continue
            listed = arguments(launch)
            if any(p < len(listed) and unit.text(listed[p]) in names for p in places):
                return True
    return False


@check("host-memory-atomics")
def host_memory(unit: Unit, context: Context) -> Iterator[Finding]:
    """Atomics other than addition on mapped host memory."""
    if b"Mapped" not in unit.data:
        return
    for call in unit.calls(*_RISKY_ATOMICS):
        listed = arguments(call)
        if listed and _may_point_to(unit, context, call, listed[0], _MAPPED):
            for match in re.finditer(rb"cudaHost(?:Alloc|Register)Mapped", unit.data):
                yield context.finding(
                    "host-memory-atomics",
                    unit,
                    Span(match.start(), match.end()),
                    name=match.group().decode(),
                )
            yield context.finding(
                "host-memory-atomics", unit, _span(call), name=callee(unit, call).decode()
            )
            return


@check("register-budget")
def without_bounds(unit: Unit, context: Context) -> Iterator[Finding]:
    """Kernels with large local arrays that state no bound, though every launch is smaller."""
    facts = context.project.files.get(unit.path)
    for function in facts.functions if facts is not None else ():
        if function.space != "global" or not function.is_definition:
            continue
        text = unit.data[function.span.start : function.span.end]
        if b"__launch_bounds__" in text:
            continue
        sizes = [
            evaluate(m, unit.path, context.project)
            for m in re.findall(rb"^\s*(?:float|double|int)\s+\w+\s*\[([^\]]+)\]\s*;", text, re.M)
        ]
        launches = context.project.launches(function.name)
        blocks = [_threads(launch.block, unit, context) for _, launch in launches]
        if not blocks or any(b is None or b >= 1024 for b in blocks):
            continue
        if any(size is not None and size >= 64 for size in sizes):
            yield context.finding(
                "register-budget",
                unit,
                unit.source.line_span(function.line),
                severity=Severity.INFO,
                what=f"{function.name.decode('utf-8', 'replace')} keeps much in registers",
            )
