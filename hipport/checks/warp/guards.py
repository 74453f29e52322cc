"""Whether a shuffle's value can come from the other half, and whether lanes have left before."""

from __future__ import annotations

import re

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.warp.lanes import Function, value
from hipport.parse.calls import TokenCall
from hipport.parse.cuda import walk
from hipport.parse.unit import Unit

_HALVES = re.compile(rb">>=\s*1|/=\s*2|=\s*\w+\s*(?:>>\s*1|/\s*2)")
_ORDER = re.compile(rb">=|<=|>|<|==|!=")


def crosses(
    unit: Unit,
    function: Function | None,
    call: TokenCall,
    node: Node | None,
    sync: bool,
    context: Context,
) -> bool:
    """Whether a shuffle without width may use a value of the other half of a 64-lane wavefront."""
    name = call.name.text.removesuffix(b"_sync")
    lane = call.arguments[2 if sync else 1]
    text = unit.source.text(lane)
    if name == b"__shfl_xor":
        number = value(text, unit, context)
        return number is not None and number >= 32
    if function is None or node is None:
        return name != b"__shfl_down"
    if name == b"__shfl":
        return not _own_half(function, text)
    if name == b"__shfl_down":
        return not (
            _reduces(unit, function, call, node, sync) or _guarded(unit, function, node, text)
        )
    return not _guarded(unit, function, node, text)


def _own_half(function: Function, text: bytes) -> bool:
    """Whether an index keeps the reader's own half: ``lane ^ k`` of the full lane number."""
    match = re.fullmatch(rb"\(?\s*__lane_id\(\)\s*\^\s*\w+\s*\)?", text.strip())
    return match is not None


def _statement(node: Node) -> Node:
    current = node
    while current.parent is not None and not (
        current.type.endswith("statement") or current.type == "declaration"
    ):
        current = current.parent
    return current


def _target(unit: Unit, node: Node) -> bytes:
    """The variable that takes a call's value, if it goes straight into one."""
    child, parent = node, node.parent
    while parent is not None and parent.type in (
        "parenthesized_expression", "cast_expression", "binary_expression", "argument_list",
        "call_expression", "conditional_expression",
    ):  # fmt: skip
        child, parent = parent, parent.parent
    if parent is None:
        return b""
    if parent.type == "init_declarator":
        name = parent.child_by_field_name("declarator")
        return unit.text(name).lstrip(b"*&")
    if parent.type == "assignment_expression":
        left = parent.child_by_field_name("left")
        if left is not None and left.id != child.id:
            return unit.text(left)
    return b""


def _reduces(unit: Unit, function: Function, call: TokenCall, node: Node, sync: bool) -> bool:
    """Whether a ``down`` shuffle is a step of a tree that is read at lane 0."""
    variable = unit.source.text(call.arguments[1 if sync else 0])
    delta = unit.source.text(call.arguments[2 if sync else 1])
    loop = node.parent
    while loop is not None and loop.type not in (
        "for_statement",
        "while_statement",
        "do_statement",
        "function_definition",
    ):
        loop = loop.parent
    tree = False
    if loop is not None and loop.type != "function_definition":
        tree = _HALVES.search(unit.text(loop)) is not None
        index = re.search(rb"[A-Za-z_]\w*", delta)
        tree = tree and index is not None
    number = value(delta, unit, function.context)
    unrolled = number in (1, 2, 4, 8, 16) and unit.text(function.node).count(call.name.text) >= 3
    if not (tree or unrolled):
        return False
    target = _target(unit, node)
    base = re.match(rb"[A-Za-z_]\w*", variable)
    if base is None:
        return False
    if target == variable or (target and base.group() == target):
        return True
    # A helper variable that is folded into the shuffled one.
    fold = rb"\b" + re.escape(variable) + rb"\s*(?:[-+*&|^]?=)[^;]*\b" + re.escape(target) + rb"\b"
    if target and re.search(fold, function.text):
        return True
    condition = rb"if\s*\([^;{}]*\b" + re.escape(target) + rb"\b[^;{}]*\)" if target else b"$^"
    return bool(target) and re.search(condition, function.text) is not None


def _is_lane_test(function: Function, condition: bytes, delta: bytes) -> bool:
    if not _ORDER.search(condition) and not re.fullmatch(rb"\(?\s*!?\s*[A-Za-z_]\w*\s*\)?",
                                                         condition.strip()):  # fmt: skip
        return False
    names = set(re.findall(rb"[A-Za-z_]\w*", condition))
    if any(function.is_lane(n) for n in names):
        return True
    masked = rb"&\s*31|%\s*32|%\s*\w*WARP|%\s*warpSize|&\s*\(\s*\w+\s*-\s*1u?\s*\)|lane_?id\s*\("
    return re.search(masked, condition) is not None


def _guarded(unit: Unit, function: Function, node: Node, delta: bytes) -> bool:
    """Whether the value is used only where a test of the lane allows it."""
    parent = node.parent
    child = node
    while parent is not None and parent.type not in ("compound_statement", "function_definition"):
        if parent.type == "conditional_expression":
            condition = parent.child_by_field_name("condition")
            if (
                condition is not None
                and condition.id != child.id
                and _is_lane_test(function, unit.text(condition), delta)
            ):
                return True
        if parent.type == "binary_expression" and unit.text(
            parent.child_by_field_name("operator")
        ) in (b"*", b"&&", b"&"):
            other = parent.child_by_field_name("left")
            if other is not None and other.id == child.id:
                other = parent.child_by_field_name("right")
            if other is not None and _is_lane_test(function, unit.text(other), delta):
                return True
        child, parent = parent, parent.parent
    target = _target(unit, node)
    if not target or not re.fullmatch(rb"[A-Za-z_]\w*", target):
        return False
    word = re.compile(rb"\b" + re.escape(target) + rb"\b")
    after = node.end_byte
    for other in walk(function.node):
        if other.start_byte < after:
            continue
        if other.type == "binary_expression":
            operator = unit.text(other.child_by_field_name("operator"))
            if operator not in (b"&&", b"||", b"*", b"&"):
                continue
            for side in ("left", "right"):
                part = other.child_by_field_name(side)
                if (
                    part is not None
                    and _is_lane_test(function, unit.text(part), delta)
                    and word.search(unit.text(other))
                ):
                    return True
        elif other.type in ("if_statement", "conditional_expression"):
            condition = other.child_by_field_name("condition")
            if condition is None or not _is_lane_test(function, unit.text(condition), delta):
                continue
            if word.search(unit.text(other)):
                return True
    return False


_LEAVES = frozenset({"return_statement", "continue_statement"})


def early_exit(unit: Unit, function: Function, node: Node) -> Node | None:
    """An ``if (...) return`` in front of a call, at the function's own level, that some lanes take.

    Exits that whole warps take together (by warp, row or block number) are none.
    """
    body = function.node.child_by_field_name("body")
    if body is None:
        return None
    blocks: list[Node] = []
    current: Node | None = node
    while current is not None and current.id != body.id:
        if current.parent is not None and current.parent.type == "compound_statement":
            blocks.append(current)
        current = current.parent
    for inside in blocks:
        sibling = inside.prev_named_sibling
        while sibling is not None:
            if (
                sibling.type == "if_statement"
                and sibling.child_by_field_name("alternative") is None
            ):
                body_node = sibling.child_by_field_name("consequence")
                condition = sibling.child_by_field_name("condition")
                if (
                    body_node is not None
                    and condition is not None
                    and _ends_with_exit(unit, body_node)
                    and _divergent(function, unit.text(condition))
                ):
                    return sibling
            sibling = sibling.prev_named_sibling
    return None


def _ends_with_exit(unit: Unit, node: Node) -> bool:
    if node.type in _LEAVES:
        return True
    if node.type == "compound_statement" and node.named_children:
        return node.named_children[-1].type in _LEAVES
    return False


def _divergent(function: Function, condition: bytes) -> bool:
    """Whether lanes of one logical warp may disagree about a condition."""
    if re.search(rb"threadIdx\s*\.\s*x(?!\s*(?:/\s*32|>>\s*5|/\s*\w*WARP))", condition):
        return True
    for name in set(re.findall(rb"[A-Za-z_]\w*", condition)):
        if function.is_warp(name):
            continue
        if function.is_lane(name) or function.depends_on_thread(name):
            return True
    return False
