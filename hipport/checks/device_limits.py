"""What code assumes about the device: properties, capability, launch bounds, local memory."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.findings import Finding, Severity
from hipport.parse.calls import find_calls
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

_PROPERTY_TYPES = (b"cudaDeviceProp", b"hipDeviceProp_t", b"hipDeviceProp")
_PROPERTY_SOURCES = re.compile(rb"[Pp]rop|DeviceProperties")
_OPERATORS = {
    "binary_expression",
    "conditional_expression",
    "assignment_expression",
    "init_declarator",
    "if_statement",
    "return_statement",
    "update_expression",
    "switch_statement",
    "condition_clause",
}
_COMPARISONS = frozenset({b"<", b">", b"<=", b">=", b"==", b"!="})


def _property_variables(unit: Unit) -> frozenset[bytes]:
    """Variables (pointers and references too) declared as device properties."""
    found = set()
    tokens = unit.code_tokens
    for i, token in enumerate(tokens):
        if token.text in _PROPERTY_TYPES:
            at = i + 1
            while at < len(tokens) and tokens[at].text in (b"*", b"&", b"const", b">"):
                at += 1
            if at < len(tokens):
                found.add(tokens[at].text)
    return frozenset(found)


def _property_fields(unit: Unit, names: frozenset[bytes]) -> Iterator[tuple[Node, bytes]]:
    """Accesses to named members of device properties."""
    if unit.identifiers.isdisjoint(names):
        return
    variables = _property_variables(unit)
    for node in unit.nodes.get("field_expression", ()):
        name = unit.text(node.child_by_field_name("field"))
        if name not in names:
            continue
        base = unit.text(node.child_by_field_name("argument"))
        root = re.match(rb"[A-Za-z_]\w*", base)
        if (root is not None and root.group() in variables) or _PROPERTY_SOURCES.search(base):
            yield node, name


def _use(unit: Unit, node: Node) -> str:
    """How a value is used: ``arithmetic``, ``compare``, ``assign``, ``print`` or ``other``."""
    child, parent = node, node.parent
    while parent is not None:
        kind = parent.type
        if kind == "binary_expression":
            operator = unit.text(parent.child_by_field_name("operator"))
            if operator == b"<<" and _is_stream(unit, parent):
                return "print"
            return "compare" if operator in _COMPARISONS else "arithmetic"
        if kind in ("init_declarator", "assignment_expression"):
            left = parent.child_by_field_name("left") or parent.child_by_field_name("declarator")
            return "other" if left is not None and left.id == child.id else "assign"
        if kind == "argument_list":
            call = parent.parent
            name = unit.text(call.child_by_field_name("function")) if call is not None else b""
            if re.search(rb"printf|print|log|LOG|format|append|to_string|puts|write", name):
                return "print"
            return "argument"
        if kind in ("return_statement", "condition_clause", "conditional_expression"):
            return "compare" if kind != "return_statement" else "assign"
        if kind.endswith("statement") or kind in ("compound_statement", "lambda_expression"):
            return "other"
        child, parent = parent, parent.parent
    return "other"


def _is_stream(unit: Unit, node: Node) -> bool:
    left: Node | None = node
    while left is not None and left.type == "binary_expression":
        left = left.child_by_field_name("left")
    text = unit.text(left)
    return (
        re.search(rb"cout|cerr|clog|stream|\bos\b|\bss\b|\bout\b|LOG|log|endl|\"", text) is not None
    )


_ODD_FIELDS: dict[bytes, str] = {
    b"sharedMemPerBlockOptin": "is 0 before ROCm 6.3 and the plain limit (64 KiB on most targets) "
    "since",
    b"regsPerBlock": "is 0 or the register file of another unit on some targets",
    b"regsPerMultiprocessor": "is 0 on some targets",
    b"maxBlocksPerMultiProcessor": "underestimates (2 on many targets)",
    b"sharedMemPerMultiprocessor": "was reported wrongly in some ROCm versions",
    b"reservedSharedMemPerBlock": "has no meaning on AMD",
    b"memoryBusWidth": "is 0 on some systems",
    b"memoryClockRate": "is 0 on some systems",
    b"accessPolicyMaxWindowSize": "is 0 on AMD: there is no access policy window",
    b"persistingL2CacheMaxSize": "is 0 on AMD: there is no persisting L2 carve-out",
}
_MILD_FIELDS: dict[bytes, str] = {
    b"multiProcessorCount": "counts work-group processors (two compute units each) on RDNA",
    b"clockRate": "is the peak engine clock; the counter of clock64() runs at another rate",
}


@check("device-prop-fields")
def device_prop_fields(unit: Unit, context: Context) -> Iterator[Finding]:
    """Members of the device properties whose value means something else on AMD."""
    every = {**_ODD_FIELDS, **_MILD_FIELDS}
    lines: set[tuple[int, bool]] = set()
    found = sorted(
        _property_fields(unit, frozenset(every)),
        key=lambda item: (item[0].start_byte, item[1]),
    )
    odd_lines = {unit.line(n.start_byte) for n, name in found if name in _ODD_FIELDS}
    for node, name in found:
        use = _use(unit, node)
        if use in ("print", "other"):
            continue
        mild = name in _MILD_FIELDS
        line = unit.line(node.start_byte)
        if (line, mild) in lines or (mild and (use == "assign" or line in odd_lines)):
            continue
        lines.add((line, mild))
        yield context.finding(
            "device-prop-fields",
            unit,
            Span(node.start_byte, node.end_byte),
            severity=Severity.INFO if mild else None,
            name=name.decode(),
            meaning=every[name],
        )


_CAPABILITY_ATTRIBUTES = frozenset(
    b"cudaDevAttrComputeCapabilityMajor cudaDevAttrComputeCapabilityMinor "
    b"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR "
    b"CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR".split()
)


@check("compute-capability-gate")
def compute_capability_gate(unit: Unit, context: Context) -> Iterator[Finding]:
    """Decisions on ``major``/``minor``: on AMD they are the gfx number."""
    lines: set[int] = set()
    nodes: list[Node] = [
        node
        for node, _ in _property_fields(unit, frozenset({b"major", b"minor"}))
        if _use(unit, node) in ("compare", "arithmetic")
    ]
    variables = _capability_variables(unit)
    if variables:
        for node in unit.nodes.get("identifier", ()):
            if unit.text(node) in variables and _use(unit, node) in ("compare", "arithmetic"):
                nodes.append(node)
    for node in sorted(nodes, key=lambda n: n.start_byte):
        line = unit.line(node.start_byte)
        if line in lines:
            continue
        lines.add(line)
        yield context.finding(
            "compute-capability-gate",
            unit,
            Span(node.start_byte, node.end_byte),
            expression=unit.text(node).decode("utf-8", "replace"),
        )


def _capability_variables(unit: Unit) -> frozenset[bytes]:
    """Variables filled from the capability attributes or computed from ``major``."""
    found: set[bytes] = set()
    if unit.identifiers & _CAPABILITY_ATTRIBUTES:
        names = (b"cudaDeviceGetAttribute", b"cuDeviceGetAttribute", b"hipDeviceGetAttribute")
        for call in find_calls(unit, names):
            if len(call.arguments) < 2:
                continue
            attribute = unit.source.text(call.arguments[1])
            target = unit.source.text(call.arguments[0])
            if attribute in _CAPABILITY_ATTRIBUTES and target.startswith(b"&"):
                found.add(target[1:].strip())
    for node, _ in _property_fields(unit, frozenset({b"major"})):
        parent = node.parent
        while parent is not None and parent.type in (
            "binary_expression",
            "parenthesized_expression",
        ):
            if unit.text(parent.child_by_field_name("operator")) in _COMPARISONS:
                break
            parent = parent.parent
        if parent is not None and parent.type == "init_declarator":
            found.add(unit.text(parent.child_by_field_name("declarator")))
        elif parent is not None and parent.type == "assignment_expression":
            found.add(unit.text(parent.child_by_field_name("left")))
    return frozenset(name for name in found if re.fullmatch(rb"[A-Za-z_]\w*", name))


def _comma(unit: Unit, at: int) -> int:
    """Offset of the comma behind an argument; comments in between stay."""
    for token in unit.code_tokens[max(unit.token_index(at), 0) :]:
        if token.start >= at and token.text == b",":
            return token.start
    return at


@check("launch-bounds-second")
def launch_bounds(unit: Unit, context: Context) -> Iterator[Finding]:
    """The second argument counts wavefronts a SIMD in HIP, blocks an SM in CUDA."""
    for call in find_calls(unit, (b"__launch_bounds__",)):
        if len(call.arguments) < 2:
            continue
        first, last = call.arguments[0], call.arguments[-1]
        change = Change(
            (Edit.replace(_comma(unit, first.end), last.end, b""),),
            priority=10,
            label="launch-bounds-second",
        )
        second = unit.source.text(call.arguments[1]).decode("utf-8", "replace")
        yield context.finding(
            "launch-bounds-second",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            second=second,
            cluster=(
                "; the third (cluster size) is a syntax error" if len(call.arguments) > 2 else ""
            ),
        )
