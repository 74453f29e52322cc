"""Wavefront patterns around the builtins: masks compared, locks, barriers, initialisation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function, on_device
from hipport.checks.warp.builtins import SYNC_NAMES
from hipport.checks.warp.lanes import (
    Function,
    Functions,
    ballot_wrappers,
    is_hip,
    span,
    value,
)
from hipport.findings import Action, Finding, Severity
from hipport.parse.conditions import chains
from hipport.parse.cuda import walk
from hipport.parse.unit import Unit, arguments, callee
from hipport.source import Change, Edit, Span

_CROSS_LANE = re.compile(
    rb"__shfl|__ballot|__any|__all|__activemask|__match|__reduce_\w+_sync|\.shfl|\.ballot"
)
_MASK_SOURCES = frozenset({b"__ballot_sync", b"__ballot", b"__activemask", b"__match_any_sync"})


@check("wave64-hardcoded")
def wide_compare(unit: Unit, context: Context) -> Iterator[Finding]:
    """A ballot or active mask compared with 64 set bits."""
    if b"ballot" not in unit.data and b"activemask" not in unit.data:
        return
    for node in unit.nodes.get("binary_expression", ()):
        if unit.text(node.child_by_field_name("operator")) not in (b"==", b"!="):
            continue
        text = unit.text(node)
        if re.search(rb"__ballot|__activemask|ballot\w*\(", text) and re.search(
            rb"~\s*0u?[lL]{2}|~\s*0[uU]?[lL]{1,2}[uU]?|0x[fF]{16}", text
        ):
            yield context.finding(
                "wave64-hardcoded",
                unit,
                span(node),
                what="a comparison with 64 lanes",
                name="ballot",
            )


@check("full-mask-compare")
def full_mask_compare(unit: Unit, context: Context) -> Iterator[Finding]:
    """A ballot or active mask compared with all 32 lanes."""
    if is_hip(unit, context) or not (
        _CROSS_LANE.search(unit.data) or ballot_wrappers(unit, context) & unit.identifiers
    ):
        return
    functions = Functions(unit, context)
    lines: set[int] = set()
    for node in unit.nodes.get("binary_expression", ()):
        operator = unit.text(node.child_by_field_name("operator"))
        if operator not in (b"==", b"!=", b"<", b">="):
            continue
        function = functions.around(node)
        if function is None:
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            continue
        for one, other in ((left, right), (right, left)):
            what = _full(unit, context, function, one, other)
            line = unit.line(node.start_byte)
            if what and line not in lines:
                lines.add(line)
                yield context.finding(
                    "full-mask-compare", unit, span(node), action=Action.AUTO, what=what
                )
                break


def _name(unit: Unit, call: Node) -> bytes:
    """The last name of what a call names, qualified or not."""
    text = unit.text(call.child_by_field_name("function")).split(b"<")[0]
    return text.rsplit(b"::", 1)[-1].strip()


def _is_mask(unit: Unit, function: Function, node: Node) -> bool:
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    if node.type == "identifier":
        return unit.text(node) in function.masks()
    if node.type == "call_expression":
        return _name(unit, node) in _MASK_SOURCES | function.wrappers
    if node.type == "unary_expression":
        inner = node.child_by_field_name("argument")
        return inner is not None and _is_mask(unit, function, inner)
    return False


def _full(unit: Unit, context: Context, function: Function, mask: Node, other: Node) -> str:
    number = value(unit.text(other), unit, context)
    if (
        mask.type == "unary_expression"
        and number == 0
        and unit.text(mask.child_by_field_name("operator")) == b"~"
        and _is_mask(unit, function, mask)
    ):
        return "all 32 lanes"
    if _is_mask(unit, function, mask):
        return "all 32 lanes" if number in (-1, 0xFFFFFFFF) else ""
    if mask.type == "identifier" and number == 32:
        for text in function.defs.get(unit.text(mask), ()):
            counted = re.match(rb"__popc\s*\((.*)\)\s*$", text, re.S)
            if counted is not None and (
                re.match(rb"\s*__(?:ballot|activemask|match_any)", counted.group(1))
                or counted.group(1).strip() in function.masks()
            ):
                return "a count of 32"
    if mask.type == "call_expression" and callee(unit, mask) == b"__popc":
        listed = arguments(mask)
        if listed and _is_mask(unit, function, listed[0]) and number == 32:
            return "a count of 32"
        if listed and _is_mask(unit, function, listed[0]) and unit.text(other) == b"warpSize":
            return "a count of warpSize"
    return ""


_BITS = (b"__popc", b"__ffs", b"__clz", b"__brev", b"__fns")


@check("popc-ffs-clz-width")
def bit_operations(unit: Unit, context: Context) -> Iterator[Finding]:
    """32-bit operations on masks whose variable takes HIP's 64-bit type."""
    if unit.identifiers.isdisjoint(_BITS) or is_hip(unit, context):
        return
    functions = Functions(unit, context)
    for call in unit.calls(*_BITS):
        function = functions.around(call)
        if function is None:
            continue
        wide = _wide_masks(function)
        listed = arguments(call)
        if not listed or not wide:
            continue
        names = set(re.findall(rb"[A-Za-z_]\w*", unit.text(listed[0])))
        if names & wide:
            yield context.finding(
                "popc-ffs-clz-width",
                unit,
                span(call),
                action=Action.AUTO,
                name=callee(unit, call).decode(),
            )


def _wide_masks(function: Function) -> set[bytes]:
    """Masks declared with ``auto`` or a 64-bit type."""
    found = set()
    for name in function.masks():
        pattern = (
            rb"\b(?:auto|uint64_t|unsigned\s+long\s+long|unsigned\s+long)"
            rb"\s+(?:const\s+)?" + re.escape(name) + rb"\s*[=({]"
        )
        if re.search(pattern, function.text):
            found.add(name)
    return found


@check("shift-overflow")
def shift_overflow(unit: Unit, context: Context) -> Iterator[Finding]:
    """Shifts whose count can reach the width: lane masks up to and including a lane, tails."""
    functions = Functions(unit, context)
    yield from _macro_shifts(unit, context)
    for node in unit.nodes.get("binary_expression", ()):
        operator = unit.text(node.child_by_field_name("operator"))
        if operator not in (b"<<", b">>") or not on_device(unit, node):
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            continue
        function = functions.around(node)
        if function is None:
            continue
        if operator == b"<<":
            finding = _inclusive(unit, context, function, node, left, right)
            count = _inside(right)
            if finding is None and count.type == "binary_expression":
                finding = _rotate(unit, context, node, count)
        else:
            finding = _tail(unit, context, node, left, right)
        if finding is not None:
            yield finding


_UPTO = re.compile(
    rb"\b(1[uU]?)\s*<<\s*\(\s*(\(?\s*\w*(?:lane|\bl\b|LANE)\w*\s*\)?)(\s*\+\s*1[uU]?)\s*\)", re.I
)


def _macro_shifts(unit: Unit, context: Context) -> Iterator[Finding]:
    facts = context.project.files.get(unit.path)
    for macro in facts.macros if facts is not None else ():
        if b"<<" not in macro.body:
            continue
        line = unit.source.line_span(macro.line)
        for match in _UPTO.finditer(unit.data, line.start, line.end):
            change = Change(
                (
                    Edit.replace(match.start(1), match.end(1), b"2u"),
                    Edit.replace(match.start(3), match.end(3), b""),
                ),
                priority=10,
                label="wavefront",
            )
            yield context.finding(
                "shift-overflow",
                unit,
                Span(match.start(), match.end()),
                change=change,
                what="the shift by 32 for the last lane",
            )


def _inside(node: Node) -> Node:
    while node.type == "parenthesized_expression" and node.named_child_count == 1:
        node = node.named_children[0]
    return node


def _inclusive(
    unit: Unit, context: Context, function: Function, node: Node, left: Node, right: Node
) -> Finding | None:
    one = re.fullmatch(rb"1([uU]?)", unit.text(left).strip())
    count = _inside(right)
    if one is None or count.type != "binary_expression":
        return None
    if unit.text(count.child_by_field_name("operator")) != b"+":
        return None
    first, second = count.child_by_field_name("left"), count.child_by_field_name("right")
    if first is None or second is None or unit.text(second).strip(b"uU") != b"1":
        return None
    names = set(re.findall(rb"[A-Za-z_]\w*", unit.text(first)))
    if not any(function.is_lane(n) for n in names) and not re.search(
        rb"&\s*31|%\s*32|thread_rank|__lane_id", unit.text(first)
    ):
        return None
    change = Change(
        (
            Edit.replace(left.start_byte, left.end_byte, b"2u"),
            Edit.replace(first.end_byte, second.end_byte, b""),
        ),
        priority=10,
        label="wavefront",
    )
    return context.finding(
        "shift-overflow", unit, span(node), change=change, what="the shift by 32 for the last lane"
    )


def _tail(unit: Unit, context: Context, node: Node, left: Node, right: Node) -> Finding | None:
    number = value(unit.text(left), unit, context)
    count = _inside(right)
    if count.type != "binary_expression":
        return None
    if number not in (-1, 0xFFFFFFFF):
        return _rotate(unit, context, node, count)
    if unit.text(count.child_by_field_name("operator")) != b"-":
        return None
    first, second = count.child_by_field_name("left"), count.child_by_field_name("right")
    if (
        first is None
        or second is None
        or (value(unit.text(first), unit, context) != 32 and unit.text(first) != b"warpSize")
    ):
        return None
    text = unit.text(second)
    change = None
    if _tested(unit, node, text):
        return None
    if re.fullmatch(rb"[A-Za-z_]\w*", text):
        change = Change(
            Edit.wrap(span(node), b"(" + text + b" ? ", b" : 0u)"), priority=10, label="wavefront"
        )
    return context.finding(
        "shift-overflow",
        unit,
        span(node),
        change=change,
        what="the shift by 32 when the count is zero",
    )


def _tested(unit: Unit, node: Node, count: bytes) -> bool:
    """Whether a conditional expression around a shift asks about its count."""
    parent = node.parent
    while parent is not None and not parent.type.endswith("statement"):
        if parent.type == "conditional_expression":
            test = unit.text(parent.child_by_field_name("condition"))
            if re.search(rb"\b" + re.escape(count) + rb"\b", test):
                return True
        parent = parent.parent
    return False


def _rotate(unit: Unit, context: Context, node: Node, count: Node) -> Finding | None:
    """``(x << n) | (x >> (32 - n))`` with a run-time count: undefined where it is zero."""
    match = re.fullmatch(rb"32u?\s*-\s*([A-Za-z_]\w*)", unit.text(count))
    if match is None or value(match.group(1), unit, context) is not None:
        return None
    if _tested(unit, node, match.group(1)):
        return None
    return context.finding(
        "shift-overflow",
        unit,
        span(node),
        action=Action.FLAG,
        severity=Severity.WARNING,
        what="the shift by 32 when the count is zero",
    )


# -- uninitialised values -----------------------------------------------------------------------

_BY_VALUE = re.compile(rb"^__(?:shfl\w*|any\w*|all\w*|ballot\w*|match\w*|reduce\w*)$")


@check("uninitialised-lane-value")
def uninitialised(unit: Unit, context: Context) -> Iterator[Finding]:
    """A variable that one lane sets under a condition and all lanes hand over by value."""
    for node in unit.nodes.get("declaration", ()):
        if not on_device(unit, node) or b"__shared__" in unit.text(node):
            continue
        kind = unit.text(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            if declarator.type != "identifier" or kind in (b"auto", b""):
                continue
            name = unit.text(declarator)
            use = _first_uses(unit, node, name)
            if use is None:
                continue
            condition, handed = use
            filler = (
                b" = {}"
                if not re.fullmatch(
                    rb"(?:unsigned |signed |long |short )*"
                    rb"(?:int|unsigned|long|short|char|float|double"
                    rb"|bool|size_t|u?int\d+_t|uint|half|__half)",
                    kind,
                )
                else b" = 0"
            )
            change = Change(
                (Edit.insert(declarator.end_byte, filler),), priority=10, label="wavefront"
            )
            text = name.decode("utf-8", "replace")
            yield context.finding(
                "uninitialised-lane-value", unit, span(declarator), change=change, name=text
            )
            for place in (condition, handed):
                yield context.finding(
                    "uninitialised-lane-value",
                    unit,
                    span(place),
                    action=Action.AUTO,
                    severity=Severity.INFO,
                    name=text,
                )


def _first_uses(unit: Unit, declaration: Node, name: bytes) -> tuple[Node, Node] | None:
    """The conditional assignment and the by-value use behind a declaration, in that order."""
    block = declaration.parent
    if block is None or block.type != "compound_statement":
        return None
    condition: Node | None = None
    word = re.compile(rb"\b" + re.escape(name) + rb"\b")
    sibling = declaration.next_named_sibling
    while sibling is not None:
        text = unit.text(sibling)
        if word.search(text):
            if condition is None:
                if (
                    sibling.type != "if_statement"
                    or sibling.child_by_field_name("alternative") is not None
                ):
                    return None
                test = sibling.child_by_field_name("condition")
                if test is None or word.search(unit.text(test)):
                    return None
                if not re.search(rb"\b" + re.escape(name) + rb"(?:\.\w+)?\s*=(?!=)", text):
                    return None
                condition = sibling
            else:
                handed = _handed_over(unit, sibling, name)
                if handed is not None:
                    return condition, handed
                # Set again in every lane before it is handed over: nothing is undefined.
                if sibling.type == "expression_statement" and re.match(
                    re.escape(name) + rb"\s*=(?!=)", text
                ):
                    return None
                if sibling.type == "if_statement":
                    sibling = sibling.next_named_sibling
                    continue
                return None
        sibling = sibling.next_named_sibling
    return None


def _handed_over(unit: Unit, node: Node, name: bytes) -> Node | None:
    for call in walk(node):
        if call.type != "call_expression":
            continue
        function = _name(unit, call)
        if function.startswith(b"atomic"):
            continue
        for argument in arguments(call):
            if (
                unit.text(argument).split(b".")[0] == name
                and function
                and (_BY_VALUE.match(function) or not function.startswith(b"__"))
            ):
                return call
        member = call.child_by_field_name("function")
        if (
            member is not None
            and member.type == "field_expression"
            and re.search(rb"\.(?:shfl\w*|any|all|ballot)$", unit.text(member))
            and any(unit.text(a) == name for a in arguments(call))
        ):
            return call
    return None


# -- locks and lockstep ---------------------------------------------------------------------------

_LOCKING = re.compile(rb"\batomic(?:CAS|Exch)\s*\(")
_ONE_THREAD = re.compile(
    rb"lane\w*\s*==\s*\w+|!\s*lane\w*|threadIdx\s*\.\s*x\s*==\s*0|!\s*threadIdx\s*\.\s*x"
    rb"|tid\w*\s*==\s*0|leader|elected|is_first|thread_rank\(\)\s*==\s*0|==\s*0\s*\)?\s*$",
    re.I,
)


@check("intra-warp-spinlock")
def spinlock(unit: Unit, context: Context) -> Iterator[Finding]:
    """Loops that wait for a lock which another lane of the same wavefront may hold."""
    if not _LOCKING.search(unit.data):
        return
    for kind in ("while_statement", "do_statement", "for_statement"):
        for node in unit.nodes.get(kind, ()):
            if not on_device(unit, node):
                continue
            condition = node.child_by_field_name("condition")
            body = node.child_by_field_name("body")
            in_condition = condition is not None and _LOCKING.search(unit.text(condition))
            waits = bool(in_condition) and not _updates_memory(unit, condition, body)
            if (
                not waits
                and body is not None
                and condition is not None
                and re.fullmatch(rb"\(?\s*(?:true|1)\s*\)?", unit.text(condition))
            ):
                waits = (
                    re.search(
                        rb"if\s*\([^;{}]*atomic(?:CAS|Exch)[^;{}]*\)\s*\{?\s*break", unit.text(body)
                    )
                    is not None
                )
            if not waits and condition is not None and body is not None:
                waits = _waits_on_result(unit, condition, body)
            if waits and not _single_lane(unit, node):
                yield context.finding("intra-warp-spinlock", unit, span(node))


def _waits_on_result(unit: Unit, condition: Node, body: Node) -> bool:
    """``do { old = atomicCAS(lock, 0, 1); } while (old);``"""
    text = unit.text(body).strip().strip(b"{}").strip()
    match = re.fullmatch(
        rb"(\w+)\s*=\s*atomic(?:CAS\s*\([^,]+,\s*0u?\s*,\s*1u?\s*\)|Exch\s*\([^,]+,\s*1u?\s*\))\s*;",
        text,
    )
    return (
        match is not None
        and re.search(rb"\b" + re.escape(match.group(1)) + rb"\b", unit.text(condition)) is not None
    )


@check("intra-warp-spinlock")
def lane_flags(unit: Unit, context: Context) -> Iterator[Finding]:
    """A lane's branch sets a flag that the other lanes' branch polls."""
    functions = Functions(unit, context)
    for node in unit.nodes.get("if_statement", ()):
        condition = node.child_by_field_name("condition")
        otherwise = node.child_by_field_name("alternative")
        function = functions.around(node)
        if condition is None or otherwise is None or function is None:
            continue
        test = unit.text(condition)
        by_lane = re.search(rb"(?:&\s*31|%\s*32|lane_?id\s*\(\s*\))\s*\)?\s*==", test) or (
            b"==" in test
            and any(function.is_lane(n) for n in set(re.findall(rb"[A-Za-z_]\w*", test)))
        )
        if not by_lane or not on_device(unit, node):
            continue
        for loop in walk(otherwise):
            if loop.type not in ("while_statement", "do_statement"):
                continue
            poll = loop.child_by_field_name("condition")
            if poll is not None and re.search(
                rb"\[[^\]]*\]\s*[=!<>]|\*\s*\w+\s*[=!]=|atomic\w+\s*\(", unit.text(poll)
            ):
                yield context.finding("intra-warp-spinlock", unit, span(loop))


def _updates_memory(unit: Unit, condition: Node | None, body: Node | None) -> bool:
    """Whether the loop is a compare-and-swap update (assumed against old), which ends by itself."""
    text = unit.text(body) if body is not None else b""
    if condition is None:
        return False
    test = unit.text(condition)
    for name in set(re.findall(rb"[A-Za-z_]\w*", test)):
        if re.search(rb"\b" + re.escape(name) + rb"\s*(?:[-+*/%&|^]?=(?!=)|\+\+|--)", text):
            return True
    constants = re.search(
        rb"atomicCAS\s*\([^,]+,\s*(?:0u?|UNLOCKED|FREE|\w*(?:EMPTY|FREE|UNLOCK)\w*|false)\s*,"
        rb"|atomicExch\s*\([^,]+,\s*(?:1u?|LOCKED|true|\w*LOCK\w*)\s*\)",
        test,
    )
    return constants is None or re.search(rb"\breturn\b|\bbreak\b", text) is not None


def _single_lane(unit: Unit, node: Node) -> bool:
    parent = node.parent
    while parent is not None and parent.type != "function_definition":
        if parent.type == "if_statement":
            condition = parent.child_by_field_name("condition")
            if condition is not None and _ONE_THREAD.search(unit.text(condition).strip(b"() \t\n")):
                return True
        if parent.type == "for_statement" and re.search(
            rb"==\s*(?:lane|\w*lane\w*)|lane\w*\s*==", unit.text(parent)
        ):
            return True
        parent = parent.parent
    function = enclosing_function(node)
    if function is not None:
        head = unit.data[function.start_byte : node.start_byte]
        return (
            re.search(
                rb"if\s*\(\s*(?:threadIdx\s*\.\s*x|lane\w*|tid\w*)\s*(?:!=\s*0|>\s*0)?\s*\)\s*\{?\s*"
                rb"return",
                head,
            )
            is not None
        )
    return False


_STEP = re.compile(
    rb"(\w+)\s*\[\s*(\w+(?:\.\w+)?)\s*\]\s*(?:[-+*&|^]?=)[^;]*\b\1\s*\[\s*\2\s*\+\s*(\d+)\s*\]"
)


_POINTER_STEP = re.compile(rb"(\w+)\s*\[\s*(0)\s*\]\s*(?:[-+*&|^]?=)[^;]*?\b\1\s*\[\s*(\d+)\s*\]")


@check("warp-synchronous-volatile")
def volatile_steps(unit: Unit, context: Context) -> Iterator[Finding]:
    """The last warp of a reduction, unrolled over volatile shared memory with no barrier."""
    if b"volatile" not in unit.data:
        return
    for node in unit.nodes.get("function_definition", ()):
        body = node.child_by_field_name("body")
        if body is None or not on_device(unit, body) or b"volatile" not in unit.text(node):
            continue
        text = unit.text(body)
        steps = list(_STEP.finditer(text))
        if not steps:
            steps = list(_POINTER_STEP.finditer(text))
        names = {
            m.group(1) for m in steps
            if re.search(rb"volatile[^;(){}]*[*\s]\s*" + re.escape(m.group(1)) + rb"\b",
                         unit.text(node))
        }  # fmt: skip
        mine = [m for m in steps if m.group(1) in names]
        offsets = [int(m.group(3)) for m in mine]
        small = [m for m in mine if int(m.group(3)) <= 32]
        if len(small) < 2 or not {16, 8, 4, 2, 1} & set(offsets):
            continue
        between = text[small[0].end() : small[1].start()]
        if re.search(rb"__syncwarp|__syncthreads|\.sync\(\)|wave_barrier", between):
            continue
        at = body.start_byte + small[0].start()
        yield context.finding(
            "warp-synchronous-volatile", unit, Span(at, body.start_byte + small[0].end())
        )


@check("wave-shared-branches")
def warp_roles(unit: Unit, context: Context) -> Iterator[Finding]:
    """Roles chosen by warp number that wait for each other or hold barriers."""
    functions = Functions(unit, context)
    for node in unit.nodes.get("if_statement", ()):
        condition = node.child_by_field_name("condition")
        if condition is None or not on_device(unit, node):
            continue
        function = functions.around(node)
        if function is None:
            continue
        test = unit.text(condition)
        names = set(re.findall(rb"[A-Za-z_]\w*", test))
        by_warp = any(function.is_warp(n) for n in names) or re.search(
            rb"threadIdx\s*\.\s*x\s*(?:/\s*32|>>\s*5)", test
        )
        if not by_warp:
            continue
        branches = [
            node.child_by_field_name("consequence"),
            node.child_by_field_name("alternative"),
        ]
        texts = [unit.text(b) for b in branches if b is not None]
        barrier = any(re.search(rb"__syncthreads\s*\(", t) for t in texts)
        spins = len(texts) == 2 and any(
            re.search(rb"while\s*\([^;{}]*(?:\*|\[|atomic|volatile|flag|ready)[^;{}]*\)\s*(?:;|\{\s*\})",
                      t) for t in texts
        )  # fmt: skip
        if not (barrier or spins):
            continue
        what = "hold a barrier" if barrier else "wait for each other"
        yield context.finding(
            "wave-shared-branches", unit, span(condition), what=what, severity=Severity.INFO
        )
        pattern = rb"__syncthreads\s*\(" if barrier else rb"while\s*\("
        for branch in branches:
            if branch is None:
                continue
            for match in re.finditer(pattern, unit.text(branch)):
                at = branch.start_byte + match.start()
                yield context.finding(
                    "wave-shared-branches", unit, Span(at, at + len(match.group())), what=what
                )


@check("inactive-lane-read")
def inactive_lane(unit: Unit, context: Context) -> Iterator[Finding]:
    """Shuffles in a branch that read lanes which the branch leaves out."""
    functions = Functions(unit, context)
    names = (b"__shfl_sync", b"__shfl", b"__shfl_down_sync", b"__shfl_down")
    for call in unit.calls(*names):
        listed = arguments(call)
        sync = callee(unit, call).endswith(b"_sync")
        place = 2 if sync else 1
        function = functions.around(call)
        if len(listed) <= place or function is None:
            continue
        number = value(unit.text(listed[place]), unit, context)
        parent = call.parent
        while number is not None and parent is not None and parent.type != "function_definition":
            if parent.type == "if_statement":
                condition = parent.child_by_field_name("condition")
                consequence = parent.child_by_field_name("consequence")
                test = unit.text(condition) if condition is not None else b""
                match = re.fullmatch(rb"\(\s*([\w:]+(?:\(\s*\))?)\s*(<|>=|>)\s*(\w+)\s*\)", test)
                inside = consequence is not None and (
                    consequence.start_byte <= call.start_byte < consequence.end_byte
                )
                if match is not None and inside and function.is_lane(match.group(1)):
                    limit = value(match.group(3), unit, context)
                    idx = b"down" not in callee(unit, call)
                    outside = limit is not None and (
                        number >= limit
                        if match.group(2) == b"<"
                        else idx and number < limit + (match.group(2) == b">")
                    )
                    if outside:
                        yield context.finding("inactive-lane-read", unit, span(call))
                        break
            parent = parent.parent


# -- launches and warpSize ------------------------------------------------------------------------


@check("block-of-32", "tail-wave-mask", "warp-row-mapping")
def launches(unit: Unit, context: Context) -> Iterator[Finding]:
    """Blocks of 32 threads, blocks that leave a wavefront unfilled, two rows in one wavefront."""
    for node in unit.nodes.get("kernel_call_syntax", ()):
        parts = [c for c in node.named_children if c.type != "comment"]
        if len(parts) >= 2 and _shape(unit.text(parts[1]), unit.path, context) == (32, 1):
            yield context.finding("block-of-32", unit, span(node))
    facts = context.project.files.get(unit.path)
    for function in facts.functions if facts is not None else ():
        if function.space != "global" or not function.is_definition:
            continue
        shapes = [
            _shape(launch.block, path, context)
            for path, launch in context.project.launches(function.name)
        ]
        rows = any(s is not None and s[0] == 32 and s[1] > 1 for s in shapes)
        partial = any(s is not None and (s[0] * s[1]) % 64 for s in shapes)
        if not rows and not partial:
            continue
        for call in unit.nodes.get("call_expression", ()):
            if not function.span.start <= call.start_byte < function.span.end:
                continue
            name = callee(unit, call)
            if not re.match(rb"__(?:shfl|ballot|any|all)", name):
                continue
            sync = name in SYNC_NAMES
            masked = sync and not re.search(rb"\(\s*__activemask", unit.text(call)[:60])
            if rows and b"xor" in name and not partial:
                continue
            if rows:
                yield context.finding(
                    "warp-row-mapping",
                    unit,
                    span(call),
                    action=Action.AUTO,
                    severity=Severity.INFO if masked else None,
                )
            elif partial and sync:
                yield context.finding(
                    "tail-wave-mask",
                    unit,
                    span(call),
                    action=Action.AUTO,
                    severity=Severity.INFO,
                )


def _shape(text: bytes, path: str, context: Context) -> tuple[int, int] | None:
    """Threads in x, and in y times z, of a launch parameter."""
    from hipport.parse.values import evaluate

    name = re.fullmatch(rb"\s*([A-Za-z_]\w*)\s*", text)
    if name is not None:
        facts = context.project.files.get(path)
        for shape in facts.shapes if facts is not None else ():
            if shape[0] == name.group(1):
                text = b"dim3(" + shape[1] + b")"
    match = re.fullmatch(rb"\s*dim3\s*[({](.*)[)}]\s*", text, re.S)
    parts = match.group(1).split(b",") if match else [text]
    numbers = [evaluate(p, path, context.project) for p in parts]
    if any(n is None for n in numbers):
        return None
    whole = [n for n in numbers if n is not None]
    rest = 1
    for n in whole[1:]:
        rest *= n
    return whole[0], rest


@check("runtime-warpsize-guard")
def host_guard(unit: Unit, context: Context) -> Iterator[Finding]:
    """Host code that refuses to run where the warp is not 32 lanes."""
    if b"arpSize" not in unit.data and b"WARP_SIZE" not in unit.data:
        return
    asked = {
        match.group(1)
        for match in re.finditer(
            rb"GetAttribute\s*\(\s*&\s*(\w+)\s*,\s*"
            rb"(?:cudaDevAttrWarpSize|CU_DEVICE_ATTRIBUTE_WARP_SIZE)",
            unit.data,
        )
    }
    for node in unit.nodes.get("binary_expression", ()):
        if unit.text(node.child_by_field_name("operator")) not in (b"==", b"!=", b">", b"<"):
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None or on_device(unit, node):
            continue
        for one, other in ((left, right), (right, left)):
            field = one.type == "field_expression" and (
                unit.text(one.child_by_field_name("field")) == b"warpSize"
            )
            if (field or unit.text(one) in asked) and value(unit.text(other), unit, context) == 32:
                yield context.finding("runtime-warpsize-guard", unit, span(node))


_PASS_MACROS = frozenset(
    {b"__GFX9__", b"__GFX8__", b"__GFX10__", b"__GFX11__", b"__GFX12__", b"__AMDGCN_WAVEFRONT_SIZE",
     b"__AMDGCN_WAVEFRONT_SIZE__"}
)  # fmt: skip
_WIDTH = re.compile(rb"#[ \t]*define[ \t]+(\w+)[ \t]+(?:32|64)\b|\b(\w+)\s*=\s*(?:32|64)\s*;")


@check("host-device-width")
def width_by_pass(unit: Unit, context: Context) -> Iterator[Finding]:
    """Widths defined under macros that only one compilation pass has."""
    if unit.identifiers.isdisjoint(_PASS_MACROS):
        return
    for chain in chains(unit):
        if not any(
            b.condition is not None and b.condition.names() & _PASS_MACROS for b in chain.branches
        ):
            continue
        for branch in chain.branches[:1]:
            for match in _WIDTH.finditer(unit.source.text(branch.body)):
                at = branch.body.start + match.start()
                name = (match.group(1) or match.group(2)).decode("utf-8", "replace")
                yield context.finding(
                    "host-device-width", unit, Span(at, at + len(match.group())), name=name
                )
    for token in unit.code_tokens:
        if token.text in _PASS_MACROS and not _in_condition(unit, token.start):
            yield context.finding(
                "host-device-width", unit, Span(token.start, token.end), name=token.text.decode()
            )


def _in_condition(unit: Unit, at: int) -> bool:
    line = unit.source.text(unit.source.line_span(unit.line(at)))
    return re.match(rb"\s*#\s*(?:if|ifdef|ifndef|elif|elifdef)\b", line) is not None


@check(
    "warpsize-constexpr", "warp-size-constant", "reduction-start-16", "per-warp-shared-size",
    "tile-constant-from-warp",
)  # fmt: skip
def warp_size(unit: Unit, context: Context) -> Iterator[Finding]:
    """``warpSize`` in device code: 32 in CUDA, 64 on gfx9; the logical warp writes 32."""
    if is_hip(unit, context):
        return
    yield from _constants(unit, context)
    if b"warpSize" not in unit.identifiers:
        return
    functions: dict[int, Node] = {}
    for node in unit.nodes.get("identifier", ()):
        if unit.text(node) != b"warpSize":
            continue
        if not on_device(unit, node) and enclosing_function(node) is not None:
            continue
        if context.project.macros(unit.path, b"warpSize") or context.project.constants(
            unit.path, b"warpSize"
        ):
            continue
        change = Change(
            (Edit.replace(node.start_byte, node.end_byte, b"32"),), priority=10, label="wavefront"
        )
        constant = _needs_constant(unit, node)
        yield context.finding(
            "warpsize-constexpr" if constant else "warp-size-constant",
            unit,
            span(node),
            change=change,
            severity=None if constant else Severity.INFO,
            name="warpSize",
        )
        function = enclosing_function(node)
        if function is not None:
            functions[function.id] = function
    for function in functions.values():
        yield from _mixed(unit, context, function)


def _needs_constant(unit: Unit, node: Node) -> bool:
    parent: Node | None = node.parent
    child: Node = node
    while parent is not None:
        if parent.type == "array_declarator":
            size = parent.child_by_field_name("size")
            return size is not None and size.id == child.id
        if parent.type in ("template_argument_list", "static_assert_declaration",
                           "case_statement"):  # fmt: skip
            return True
        if parent.type in ("declaration", "field_declaration"):
            return b"constexpr" in unit.text(parent).split(b"=")[0]
        if parent.type == "if_statement":
            return b"constexpr" in unit.data[parent.start_byte : parent.start_byte + 14]
        if parent.type in ("compound_statement", "function_definition", "argument_list"):
            return False
        child, parent = parent, parent.parent
    return False


def _mixed(unit: Unit, context: Context, function: Node) -> Iterator[Finding]:
    """Fixed 32s beside ``warpSize`` in one function: loops from 16, arrays of 32, constants."""
    lines: set[int] = set()
    for node in walk(function):
        if node.type == "identifier" and _WARP_CONSTANT.search(unit.text(node)):
            line = unit.line(node.start_byte)
            if (
                unit.text(node) != b"warpSize"
                and line not in lines
                and value(unit.text(node), unit, context) == 32
            ):
                lines.add(line)
                yield context.finding(
                    "warp-size-constant",
                    unit,
                    span(node),
                    action=Action.AUTO,
                    name=unit.text(node).decode("utf-8", "replace"),
                )
        if node.type == "for_statement":
            start = node.child_by_field_name("initializer")
            match = re.search(rb"=\s*([^;,]+)", unit.text(start)) if start is not None else None
            step = unit.text(node.child_by_field_name("update"))
            body = unit.text(node.child_by_field_name("body"))
            if match is None or b"warpSize" in match.group(1):
                continue
            if (
                value(match.group(1), unit, context) == 16
                and re.search(rb">>=|/=|>>\s*1|/\s*2", step)
                and b"__shfl" in body
            ):
                yield context.finding("reduction-start-16", unit, span(node), action=Action.AUTO)
        elif (
            node.type == "template_function"
            and re.search(rb"<\s*16\s*>", unit.text(node))
            and _is_tree(context, unit.text(node.child_by_field_name("name")))
        ):
            yield context.finding("reduction-start-16", unit, span(node), action=Action.AUTO)
        elif (
            node.type == "subscript_expression"
            and re.search(rb"\*\s*(?:32|\w*WARP\w*)\s*\+\s*\w*lane", unit.text(node), re.I)
            and b"warpSize" in unit.text(function)
        ):
            left = node.parent.child_by_field_name("left") if node.parent is not None else None
            if left is not None and left.id == node.id:
                yield context.finding(
                    "tile-constant-from-warp", unit, span(node), action=Action.AUTO
                )
        elif node.type == "array_declarator":
            declaration = node.parent
            text = unit.text(declaration) if declaration is not None else b""
            size = node.child_by_field_name("size")
            if b"__shared__" not in text or size is None:
                continue
            written = _spelled(unit, context, size)
            number = value(written, unit, context)
            bounded = re.search(
                rb"<\s*\(?\s*(?:blockDim\s*\.\s*x|\w+)\s*/\s*warpSize|<\s*n\w*warps",
                unit.text(function),
                re.I,
            )
            inner = node.child_by_field_name("declarator")
            if number == 32 and inner is not None and inner.type == "array_declarator":
                yield from _rows_of_lanes(unit, context, function, inner)
            if (number == 32 and bounded is None) or re.search(rb"/\s*32|>>\s*5", written):
                yield context.finding("per-warp-shared-size", unit, span(node), action=Action.AUTO)


def _is_tree(context: Context, name: bytes) -> bool:
    """Whether a function template of the project is a tree over its first argument."""
    return any(f.template_params and f.space != "host" for _, f in context.project.functions(name))


def _rows_of_lanes(unit: Unit, context: Context, function: Node, inner: Node) -> Iterator[Finding]:
    """Uses of ``tile[warp][lane]`` whose rows have 32 slots, in code that asks warpSize."""
    name = unit.text(inner.child_by_field_name("declarator"))
    lines: set[int] = set()
    pattern = rb"\b" + re.escape(name) + rb"\s*\[[^\]]*\]\s*\[[^\]]*lane[^\]]*\]"
    for match in re.finditer(pattern, unit.text(function), re.I):
        at = function.start_byte + match.start()
        if at > inner.end_byte + 1 and unit.line(at) not in lines:
            lines.add(unit.line(at))
            yield context.finding(
                "tile-constant-from-warp",
                unit,
                Span(at, at + len(match.group())),
                action=Action.AUTO,
            )


def _spelled(unit: Unit, context: Context, size: Node) -> bytes:
    """An array bound, a named constant by its initialiser."""
    text = unit.text(size)
    if re.fullmatch(rb"[A-Za-z_]\w*", text):
        for constant in context.project.constants(unit.path, text):
            if re.search(rb"/\s*32|>>\s*5|/\s*\w*WARP", constant.value):
                return constant.value
    return text


_WARP_CONSTANT = re.compile(rb"warp_?(?:size|width|threads)|threads_?per_?warp|^WS$|^kWarp", re.I)


def _constants(unit: Unit, context: Context) -> Iterator[Finding]:
    facts = context.project.files.get(unit.path)
    if facts is None:
        return
    listed = [(m.name, m.body, m.line) for m in facts.macros if m.params is None]
    listed += [(c.name, c.value, c.line) for c in facts.constants]
    for name, text, line in listed:
        if not _WARP_CONSTANT.search(name):
            continue
        number = value(text, unit, context)
        at = unit.source.line_span(line)
        place = unit.data.find(name, at.start, at.end)
        where = Span(max(place, at.start), max(place, at.start) + len(name))
        if number == 32 and b"warpSize" in unit.identifiers:
            yield context.finding(
                "warp-size-constant",
                unit,
                where,
                action=Action.AUTO,
                severity=Severity.INFO,
                name=name.decode("utf-8", "replace"),
            )
        elif number == 64:
            yield context.finding(
                "wave64-hardcoded",
                unit,
                where,
                name=name.decode("utf-8", "replace"),
                what=f"{name.decode()} is 64",
            )


@check("lane-arithmetic")
def lane_arithmetic(unit: Unit, context: Context) -> Iterator[Finding]:
    """``& 31`` and kin on thread numbers in functions with cross-lane calls: kept as they are."""
    if is_hip(unit, context) or not (
        _CROSS_LANE.search(unit.data) or b"warpSize" in unit.identifiers
    ):
        return
    functions = Functions(unit, context)
    lines: set[int] = set()
    for node in unit.nodes.get("binary_expression", ()):
        operator = unit.text(node.child_by_field_name("operator"))
        wanted = {b"&": 31, b"%": 32, b">>": 5, b"/": 32}.get(operator)
        if wanted is None:
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if (
            left is None
            or right is None
            or not (
                value(unit.text(right), unit, context) == wanted
                or (wanted == 32 and unit.text(right) == b"warpSize")
                or (
                    wanted == 31
                    and re.fullmatch(rb"\(?\s*warpSize\s*-\s*1\s*\)?", unit.text(right))
                )
            )
        ):
            continue
        function = functions.around(node)
        if function is None:
            continue
        mixed = re.search(
            rb"\bwarpSize\b", function.text
        ) is not None and b"warpSize" not in unit.text(right)
        crosses = _CROSS_LANE.search(function.text) is not None
        if not mixed and not crosses:
            continue
        text = unit.text(left)
        names = set(re.findall(rb"[A-Za-z_]\w*", text))
        if b"threadIdx" not in text and not any(function.depends_on_thread(n) for n in names):
            continue
        line = unit.line(node.start_byte)
        if line not in lines:
            lines.add(line)
            yield context.finding(
                "lane-arithmetic",
                unit,
                span(node),
                action=Action.AUTO,
                severity=Severity.WARNING if mixed and not crosses else Severity.INFO,
            )
