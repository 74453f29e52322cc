"""Ordering, polling, aliasing, and sizes of grids."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function, head, on_device
from hipport.findings import Confidence, Finding, Severity
from hipport.parse.cuda import walk
from hipport.parse.types import canonical, type_of
from hipport.parse.unit import Unit, callee
from hipport.parse.values import evaluate
from hipport.source import Span

_FENCES = frozenset({b"__threadfence", b"__threadfence_block", b"__threadfence_system",
                     b"__nanosleep", b"__syncwarp"})  # fmt: skip


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


def _only_waits(unit: Unit, body: Node | None) -> bool:
    """Whether a loop's body does nothing but fence, sleep, or nothing at all."""
    if body is None:
        return True
    for node in walk(body):
        if node.type == "call_expression":
            if callee(unit, node) not in _FENCES:
                return False
        elif node.type in (
            "assignment_expression",
            "update_expression",
            "return_statement",
            "break_statement",
            "declaration",
        ):
            return False
    return True


def _reads_memory(unit: Unit, condition: Node) -> Node | None:
    """A plain load in a condition: ``*p``, ``p[i]``, ``p->x``."""
    for node in walk(condition):
        if node.type == "call_expression":
            return None
        if node.type == "pointer_expression" and unit.data[node.start_byte :].startswith(b"*"):
            return node
        if node.type == "subscript_expression":
            return node
        if node.type == "field_expression" and b"->" in unit.text(node):
            return node
    return None


@check("threadfence-spin")
def threadfence_spin(unit: Unit, context: Context) -> Iterator[Finding]:
    """Polling loops on memory that another block, die or the host writes."""
    for kind in ("while_statement", "do_statement", "for_statement"):
        for node in unit.nodes.get(kind, ()):
            condition = node.child_by_field_name("condition")
            if condition is None or not _only_waits(unit, node.child_by_field_name("body")):
                continue
            if kind == "for_statement" and node.child_by_field_name("update") is not None:
                continue
            load = _reads_memory(unit, condition)
            if load is None or not on_device(unit, node):
                continue
            kindname = type_of(unit, load.child_by_field_name("argument"))
            function = enclosing_function(node)
            volatile = function is not None and _is_volatile(unit, function, load)
            yield context.finding(
                "threadfence-spin",
                unit,
                _span(node),
                what=(
                    "a volatile load observes the flag but orders nothing behind it"
                    if volatile or "volatile" in (kindname or "")
                    else "a plain load may be kept in a register or the scalar cache for ever"
                ),
            )


def _is_volatile(unit: Unit, function: Node, load: Node) -> bool:
    name = re.search(rb"[A-Za-z_]\w*", unit.text(load))
    if name is None:
        return False
    text = unit.text(function)
    pattern = rb"volatile[^;(){}]*\b" + re.escape(name.group()) + rb"\b|\*\s*\(\s*volatile"
    return re.search(pattern, text) is not None


_NO_VALUE_NEEDED = re.compile(
    rb"\breturn\b|\bthrow\b|\basm\b|__asm__|__builtin_unreachable|\babort\s*\(|\bexit\s*\("
    rb"|__trap|__builtin_trap|\bco_return\b|while\s*\(\s*(?:true|1)\s*\)|for\s*\(\s*;\s*;\s*\)"
    rb"|__assume"
)


@check("missing-return")
def missing_return(unit: Unit, context: Context) -> Iterator[Finding]:
    """Device functions with a result type and no return statement at all."""
    for node in unit.nodes.get("function_definition", ()):
        body = node.child_by_field_name("body")
        kind = node.child_by_field_name("type")
        if body is None or kind is None or body.type != "compound_statement":
            continue
        if canonical(unit.text(kind)) in ("void", None) and not _pointer_result(unit, node):
            continue
        if b"__device__" not in head(unit, node) or body.has_error:
            continue
        if unit.text(kind) == b"auto" and b"->" not in head(unit, node):
            continue
        if _has_macro_call(unit, body):
            continue
        if _NO_VALUE_NEEDED.search(unit.text(body)) and not _falls_through(unit, body):
            continue
        declarator = node.child_by_field_name("declarator")
        name = re.search(rb"(~?\w+)\s*\(", unit.text(declarator))
        yield context.finding(
            "missing-return",
            unit,
            _span(declarator if declarator is not None else node),
            name=name.group(1).decode() if name is not None else "the function",
        )


def _falls_through(unit: Unit, body: Node) -> bool:
    """Whether a body ends in a switch without default whose every case returns."""
    statements = [c for c in body.named_children if c.type != "comment"]
    if not statements or statements[-1].type != "switch_statement":
        return False
    text = unit.text(statements[-1])
    return b"default" not in text and b"return" in text


def _pointer_result(unit: Unit, node: Node) -> bool:
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and declarator.type == "pointer_declarator"


def _has_macro_call(unit: Unit, body: Node) -> bool:
    """Whether something in capitals stands where a macro may hide the return."""
    return any(
        node.type == "call_expression"
        and callee(unit, node).isupper()
        and len(callee(unit, node)) > 1
        for node in walk(body)
    )


_EXEMPT = frozenset({
    "char", "schar", "uchar", "void", "bool", "float2", "float4", "int2", "int4", "uint2", "uint4",
    "double2", "half2", "__half2", "uint3", "float3", "short2", "ushort2", "uchar4", "char4",
})  # fmt: skip


@check("strict-aliasing")
def strict_aliasing(unit: Unit, context: Context) -> Iterator[Finding]:
    """One buffer handed over under two element types in one call."""
    seen: set[int] = set()
    for call in unit.nodes.get("call_expression", ()):
        listed = call.child_by_field_name("arguments")
        if listed is None:
            continue
        casts = {}
        plain = {}
        for each in listed.named_children:
            target, source = _pointer_cast(unit, each)
            if target is not None and source is not None:
                casts[source] = (each, target)
            elif each.type == "identifier":
                plain[unit.text(each)] = type_of(unit, each)
        for name, (node, target) in casts.items():
            other = plain.get(name)
            if other is None or not other.endswith("*") or other == target + "*":
                continue
            base = other[:-1]
            if target in _EXEMPT or base in _EXEMPT or _same_size_signs(target, base):
                continue
            line = unit.line(node.start_byte)
            if line in seen:
                continue
            seen.add(line)
            yield context.finding(
                "strict-aliasing",
                unit,
                _span(node),
                name=name.decode("utf-8", "replace"),
                first=base,
                second=target,
            )


@check("strict-aliasing")
def two_views(unit: Unit, context: Context) -> Iterator[Finding]:
    """A second pointer of another element type to the same memory, both used in one function."""
    for node in unit.nodes.get("init_declarator", ()):
        value = node.child_by_field_name("value")
        target = node.child_by_field_name("declarator")
        function = enclosing_function(node)
        if value is None or target is None or function is None or not on_device(unit, node):
            continue
        kind, source = _pointer_cast(unit, value)
        name = unit.text(target).lstrip(b"*& ").removeprefix(b"__restrict__").strip()
        if kind is None or source is None or kind in _EXEMPT:
            continue
        base = (type_of(unit, _identifier(value, unit, source)) or "").removesuffix("*")
        if not base or base == kind or base in _EXEMPT or _same_size_signs(kind, base):
            continue
        text = unit.text(function)[node.end_byte - function.start_byte :]
        writes = re.search(
            rb"(?:\*\s*|\b)"
            + re.escape(name)
            + rb"\s*(?:\[[^\]]*\])?\s*(?:[-+*/&|^]|<<|>>)?=(?!=)",
            text,
        )
        uses = re.search(
            rb"(?:\*\s*" + re.escape(source) + rb"\b|\b" + re.escape(source) + rb"\s*\[)", text
        )
        if writes and uses:
            yield context.finding(
                "strict-aliasing",
                unit,
                _span(value),
                name=source.decode("utf-8", "replace"),
                first=base,
                second=kind,
            )


def _identifier(node: Node, unit: Unit, name: bytes) -> Node | None:
    return next((n for n in walk(node) if n.type == "identifier" and unit.text(n) == name), None)


def _same_size_signs(one: str, two: str) -> bool:
    return {one, two} in (
        {"int", "unsigned"}, {"long", "ulong"}, {"longlong", "ulonglong"}, {"short", "ushort"},
    )  # fmt: skip


def _pointer_cast(unit: Unit, node: Node) -> tuple[str | None, bytes | None]:
    """Element type and variable of ``reinterpret_cast<T*>(x)`` or ``(T*)x``."""
    text = unit.text(node)
    match = re.fullmatch(
        rb"reinterpret_cast\s*<\s*([\w\s:]+?)\s*\*\s*(?:__restrict__\s*)?>\s*\(\s*([A-Za-z_]\w*)\s*\)",
        text,
    ) or re.fullmatch(rb"\(\s*([\w\s:]+?)\s*\*\s*\)\s*([A-Za-z_]\w*)", text)
    if match is None:
        return None, None
    return canonical(match.group(1)), match.group(2)


@check("grid-total-threads")
def grid_total_threads(unit: Unit, context: Context) -> Iterator[Finding]:
    """Launches whose number of threads in one dimension may reach 2**32."""
    for node in unit.nodes.get("kernel_call_syntax", ()):
        parts = [c for c in node.named_children if c.type != "comment"]
        if len(parts) < 2:
            continue
        grid = evaluate(_strip_cast(unit.text(parts[0])), unit.path, context.project)
        block = evaluate(unit.text(parts[1]), unit.path, context.project)
        if grid is not None and block is not None:
            if grid * block >= 1 << 32:
                yield context.finding(
                    "grid-total-threads",
                    unit,
                    _span(node),
                    what=f"{grid} blocks of {block} threads are {grid * block} work-items",
                )
            continue
        if _narrowed_from_wide(unit, parts[0]) or type_of(unit, parts[0]) in _WIDE:
            yield context.finding(
                "grid-total-threads",
                unit,
                _span(node),
                severity=Severity.INFO,
                confidence=Confidence.LOW,
                what="the number of blocks comes from a 64-bit count",
            )


_WIDE = ("long", "ulong", "longlong", "ulonglong")


def _strip_cast(text: bytes) -> bytes:
    text = re.sub(rb"^\s*(?:static_cast\s*<[^<>]*>|dim3|unsigned|int|uint32_t)\s*\((.*)\)\s*$",
                  rb"\1", text, flags=re.S)  # fmt: skip
    return re.sub(rb"^\s*\(\s*(?:unsigned|int|uint32_t|unsigned int)\s*\)\s*", b"", text)


def _narrowed_from_wide(unit: Unit, node: Node) -> bool:
    """Whether an expression cuts a 64-bit value to 32 bits by a cast."""
    inner = node
    if node.type == "cast_expression":
        value = node.child_by_field_name("value")
        inner = value if value is not None else node
        return type_of(unit, inner) in ("long", "ulong", "longlong", "ulonglong")
    return False
