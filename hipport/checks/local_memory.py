"""Shared memory (LDS) beyond what a work-group gets on AMD."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function
from hipport.findings import Finding, Severity
from hipport.parse.calls import find_calls
from hipport.parse.unit import Unit
from hipport.parse.values import SIZES, evaluate
from hipport.source import Span

LDS_BYTES = 64 * 1024
"""LDS a work-group gets on gfx90a, gfx942, gfx1100 and gfx1201 (160 KiB on gfx950)."""

_GFX950 = 160 * 1024
_OPT_IN = (
    b"cudaFuncAttributeMaxDynamicSharedMemorySize",
    b"hipFuncAttributeMaxDynamicSharedMemorySize",
    b"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
)


def _array(unit: Unit, context: Context, node: Node) -> tuple[int | None, int]:
    """Number of elements of an array declarator (None: not known) and its dimensions."""
    count: int | None = 1
    depth = 0
    current: Node | None = node
    while current is not None and current.type == "array_declarator":
        size = current.child_by_field_name("size")
        value = evaluate(unit.text(size), unit.path, context.project) if size is not None else None
        count = None if count is None or value is None else count * value
        depth += 1
        current = current.child_by_field_name("declarator")
    return count, depth


def _targets(size: int) -> str:
    return "every target" if size > _GFX950 else "every target but gfx950 (160 KiB)"


@check("lds-limit")
def lds_limit(unit: Unit, context: Context) -> Iterator[Finding]:
    """Static arrays, dynamic sizes at launches, and opt-ins above 64 KiB."""
    yield from _static(unit, context)
    yield from _opt_in(unit, context)
    yield from _launches(unit, context)


def _static(unit: Unit, context: Context) -> Iterator[Finding]:
    if b"__shared__" not in unit.identifiers:
        return
    for node in unit.nodes.get("declaration", ()):
        head = unit.data[node.start_byte : node.start_byte + 200]
        if b"__shared__" not in head or b"extern" in head.split(b"[")[0]:
            continue
        size = SIZES.get(unit.text(node.child_by_field_name("type")))
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type != "array_declarator" or size is None:
                continue
            count, _ = _array(unit, context, declarator)
            if count is not None and count * size > LDS_BYTES:
                yield context.finding(
                    "lds-limit",
                    unit,
                    Span(declarator.start_byte, declarator.end_byte),
                    what=f"{count * size} bytes of static shared memory",
                    where=_targets(count * size),
                )


def _opt_in(unit: Unit, context: Context) -> Iterator[Finding]:
    names = (b"cudaFuncSetAttribute", b"hipFuncSetAttribute", b"cuFuncSetAttribute")
    for call in find_calls(unit, names):
        if len(call.arguments) != 3:
            continue
        if unit.source.text(call.arguments[1]) not in _OPT_IN:
            continue
        value = evaluate(unit.source.text(call.arguments[2]), unit.path, context.project)
        if value is not None and value <= LDS_BYTES:
            continue
        text = unit.source.text(call.arguments[2]).decode("utf-8", "replace")
        yield context.finding(
            "lds-limit",
            unit,
            Span(call.name.start, call.name.end),
            severity=None if value is not None else Severity.INFO,
            what=f"{value} bytes of dynamic shared memory"
            if value is not None
            else f"'{text}' bytes of dynamic shared memory (size not known here)",
            where=_targets(value) if value is not None else "most targets if above 65536",
        )


def _launches(unit: Unit, context: Context) -> Iterator[Finding]:
    for node in unit.nodes.get("kernel_call_syntax", ()):
        parts = [c for c in node.named_children if c.type != "comment"]
        if len(parts) < 3:
            continue
        value = evaluate(unit.text(parts[2]), unit.path, context.project)
        if value is None:
            value = _local_value(unit, context, node, unit.text(parts[2]))
        if value is not None and value > LDS_BYTES:
            yield context.finding(
                "lds-limit",
                unit,
                Span(parts[2].start_byte, parts[2].end_byte),
                what=f"{value} bytes of dynamic shared memory",
                where=_targets(value),
            )


def _local_value(unit: Unit, context: Context, node: Node, name: bytes) -> int | None:
    """The value of a local variable that is set once in the function around a launch."""
    function = enclosing_function(node)
    if function is None or re.fullmatch(rb"[A-Za-z_]\w*", name) is None:
        return None
    found = re.findall(rb"\b" + re.escape(name) + rb"\s*=(?!=)\s*([^;]+);", unit.text(function))
    return evaluate(found[0], unit.path, context.project) if len(found) == 1 else None
