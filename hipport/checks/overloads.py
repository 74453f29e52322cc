"""Same call, other overload: min/max, intrinsics' result types, coordinates, operators."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import head, on_device, on_host
from hipport.findings import Action, Finding, Severity
from hipport.parse.types import FLOATS, INTEGERS, SPELLING, canonical, type_of
from hipport.parse.unit import Unit, arguments, callee
from hipport.source import Change, Edit, Safety, Span

_PROMOTED = frozenset(INTEGERS[:6]) | {"int"}
_MIXED = {
    frozenset({"int", "unsigned"}): "unsigned",
    frozenset({"long", "ulong"}): "ulong",
    frozenset({"longlong", "ulonglong"}): "ulonglong",
}
"""Pairs that CUDA's headers resolve, and to what (asked of nvcc 13; other pairs do not compile)."""


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


def _promote(kind: str) -> str:
    return "int" if kind in _PROMOTED else kind


def _is_own(unit: Unit, context: Context, name: bytes) -> bool:
    return any(
        path in context.project.closure(unit.path) for path, _ in context.project.functions(name)
    ) or bool(context.project.macros(unit.path, name))


@check("mixed-minmax")
def mixed_minmax(unit: Unit, context: Context) -> Iterator[Finding]:
    """Device ``min``/``max`` of a signed and an unsigned integer."""
    for call in unit.calls(b"min", b"max"):
        listed = arguments(call)
        name = callee(unit, call)
        if len(listed) != 2 or not on_device(unit, call) or _is_own(unit, context, name):
            continue
        kinds = [type_of(unit, a) for a in listed]
        if kinds[0] is None or kinds[1] is None:
            continue
        promoted = [_promote(k) for k in kinds if k is not None]
        common = _MIXED.get(frozenset(promoted))
        if common is None:
            continue
        signed = listed[0] if promoted[0] != common else listed[1]
        if _is_plain_literal(unit, signed):
            # A non-negative literal has the same value in both types, below 2**53 also as double.
            wide = common != "unsigned"
            if not wide:
                continue
        spelled = SPELLING.get(common, common)
        change = Change(
            Edit.wrap(_span(signed), f"static_cast<{spelled}>(".encode(), b")"),
            priority=10,
            label="mixed-minmax",
        )
        yield context.finding(
            "mixed-minmax",
            unit,
            _span(call),
            change=change,
            call=name.decode(),
            first=SPELLING.get(promoted[0], promoted[0]),
            second=SPELLING.get(promoted[1], promoted[1]),
            common=spelled,
        )


def _is_plain_literal(unit: Unit, node: Node) -> bool:
    return node.type == "number_literal"


_STD = re.compile(rb"\busing\s+namespace\s+std\b")
_STD_NAMES = re.compile(rb"\busing\s+std::(min|max)\b")


@check("host-minmax")
def host_minmax(unit: Unit, context: Context) -> Iterator[Finding]:
    """Unqualified host ``min``/``max`` of other types than int: HIP's host versions take int."""
    if not unit.is_cuda or unit.identifiers.isdisjoint((b"min", b"max")):
        return
    std = _STD.search(unit.data) is not None
    named = {m.group(1) for m in _STD_NAMES.finditer(unit.data)}
    for call in unit.calls(b"min", b"max"):
        listed = arguments(call)
        name = callee(unit, call)
        if len(listed) != 2 or not on_host(unit, call) or _is_own(unit, context, name):
            continue
        function = call.child_by_field_name("function")
        if function is None or function.type != "identifier":
            continue
        first, second = (type_of(unit, a) for a in listed)
        known = [k for k in (first, second) if k in INTEGERS or k in FLOATS]
        if not known or all(_promote(k) == "int" for k in known):
            continue
        if (std or name in named) and first is not None and first == second:
            continue
        common = _common(first, second)
        change = None
        if common is not None:
            spelled = SPELLING.get(common, common)
            change = Change(
                (
                    Edit.replace(
                        function.start_byte,
                        function.end_byte,
                        f"std::{name.decode()}<{spelled}>".encode(),
                    ),
                ),
                priority=10,
                needs=("<algorithm>",),
                label="host-minmax",
            )
        yield context.finding(
            "host-minmax",
            unit,
            _span(call),
            change=change,
            action=None if change is not None else Action.FLAG,
            call=name.decode(),
            kind=SPELLING.get(known[0], known[0]),
        )


def _common(first: str | None, second: str | None) -> str | None:
    """The type in which CUDA compares, where both are known."""
    if first is None or second is None:
        return None
    one, two = _promote(first), _promote(second)
    if one == two:
        return one
    if {one, two} == {"float", "double"}:
        return "double"
    return _MIXED.get(frozenset({one, two}))


_POPC = frozenset({b"__popc", b"__popcll"})
_ORDER = frozenset({b"<", b">", b"<=", b">="})


@check("intrinsic-return-type")
def intrinsic_return_type(unit: Unit, context: Context) -> Iterator[Finding]:
    """``__popc`` is unsigned in HIP: a difference below zero wraps where it is not cut to int."""
    for call in unit.calls(b"__popc", b"__popcll", b"__umul24"):
        name = callee(unit, call)
        matters = _wraps(unit, call) if name in _POPC else _sign_extends(unit, call)
        if not matters:
            continue
        cuda, hip = ("int", "unsigned int") if name in _POPC else ("unsigned int", "int")
        change = Change(
            Edit.wrap(_span(call), f"static_cast<{cuda}>(".encode(), b")"),
            priority=10,
            label="intrinsic-return-type",
        )
        yield context.finding(
            "intrinsic-return-type",
            unit,
            _span(call),
            change=change,
            call=name.decode(),
            cuda=cuda,
            hip=hip,
        )


def _climb(unit: Unit, node: Node) -> Iterator[tuple[Node, Node, bytes]]:
    """Parent, child and operator (for binary ones), outwards, through parentheses."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "parenthesized_expression":
            child, parent = parent, parent.parent
            continue
        operator = b""
        if parent.type in ("binary_expression", "unary_expression"):
            operator = unit.text(parent.child_by_field_name("operator"))
        yield parent, child, operator
        child, parent = parent, parent.parent


def _wraps(unit: Unit, call: Node) -> bool:
    """Whether an unsigned difference reaches something that sees more than its low 32 bits."""
    minus = False
    for parent, child, operator in _climb(unit, call):
        kind = parent.type
        if kind == "unary_expression":
            if operator == b"-":
                minus = True
                continue
            return False
        if kind == "binary_expression":
            if operator == b"-":
                minus = True
            elif operator in _ORDER or operator in (b"/", b"%", b">>"):
                left = parent.child_by_field_name("left")
                return minus and (operator in _ORDER or (left is not None and left.id == child.id))
            elif operator not in (b"+", b"*"):
                return False
            other = parent.child_by_field_name("left")
            if other is not None and other.id == child.id:
                other = parent.child_by_field_name("right")
            beside = type_of(unit, other)
            if minus and (beside in FLOATS or beside in ("long", "longlong")):
                return True
            continue
        if kind in ("subscript_argument_list", "subscript_expression"):
            return minus
        if kind == "init_declarator":
            declared = parent.parent
            written = declared.child_by_field_name("type") if declared is not None else None
            return minus and _wider(canonical(unit.text(written)) if written else None)
        if kind == "assignment_expression":
            return minus and _wider(type_of(unit, parent.child_by_field_name("left")))
        if kind == "cast_expression":
            return minus and _wider(canonical(unit.text(parent.child_by_field_name("type"))))
        return False
    return False


def _wider(kind: str | None) -> bool:
    return kind in ("long", "longlong", "float", "double", "ulong", "ulonglong")


def _sign_extends(unit: Unit, call: Node) -> bool:
    """Whether a product with the top bit set is used as more than 32 unsigned bits."""
    for parent, child, operator in _climb(unit, call):
        if parent.type == "binary_expression":
            if operator in (b"/", b"%", b">>") or operator in _ORDER:
                left = parent.child_by_field_name("left")
                return operator in _ORDER or (left is not None and left.id == child.id)
            if operator in (b"+", b"-", b"*"):
                continue
            return False
        if parent.type == "init_declarator":
            declared = parent.parent
            written = declared.child_by_field_name("type") if declared is not None else None
            return _wider(canonical(unit.text(written)) if written else None)
        if parent.type == "assignment_expression":
            return _wider(type_of(unit, parent.child_by_field_name("left")))
        return False
    return False


_COORDINATES = (b"threadIdx", b"blockIdx", b"blockDim", b"gridDim")


@check("builtin-coordinates")
def builtin_coordinates(unit: Unit, context: Context) -> Iterator[Finding]:
    """``threadIdx`` and its kin as a whole where a ``uint3`` is wanted."""
    if unit.identifiers.isdisjoint(_COORDINATES):
        return
    for node in unit.nodes.get("identifier", ()):
        name = unit.text(node)
        if name not in _COORDINATES or not _wants_uint3(unit, context, node):
            continue
        text = b"make_uint3(" + b", ".join(name + b"." + c for c in (b"x", b"y", b"z")) + b")"
        change = Change(
            (Edit.replace(node.start_byte, node.end_byte, text),),
            priority=10,
            label="builtin-coordinates",
        )
        yield context.finding(
            "builtin-coordinates", unit, _span(node), change=change, name=name.decode()
        )


def _is_uint3(text: bytes) -> bool:
    words = [
        w for w in re.findall(rb"\w+|\*", text) if w not in (b"const", b"constexpr", b"static")
    ]
    return words == [b"uint3"]


def _wants_uint3(unit: Unit, context: Context, node: Node) -> bool:
    parent = node.parent
    if parent is None:
        return False
    if parent.type == "init_declarator":
        declaration = parent.parent
        value = parent.child_by_field_name("value")
        return (
            value is not None
            and value.id == node.id
            and declaration is not None
            and _is_uint3(unit.text(declaration.child_by_field_name("type")))
        )
    if parent.type == "assignment_expression":
        right = parent.child_by_field_name("right")
        return (
            right is not None
            and right.id == node.id
            and type_of(unit, parent.child_by_field_name("left")) == "uint3"
        )
    if parent.type in ("argument_list", "initializer_list") and parent.parent is not None:
        owner = parent.parent
        place = next((i for i, a in enumerate(parent.named_children) if a.id == node.id), None)
        if place is None:
            return False
        if owner.type == "init_declarator" and owner.parent is not None:
            return _is_uint3(unit.text(owner.parent.child_by_field_name("type")))
        if owner.type != "call_expression":
            return False
        found = context.project.functions(callee(unit, owner))
        kinds = {f.params[place][0] for _, f in found if place < len(f.params)}
        return bool(kinds) and all(_is_uint3(k.replace(b"&", b" ")) for k in kinds)
    if parent.type == "return_statement":
        function = parent.parent
        while function is not None and function.type != "function_definition":
            function = function.parent
        return function is not None and _is_uint3(unit.text(function.child_by_field_name("type")))
    return False


_VECTOR = re.compile(rb"^(?:u?(?:char|short|int|long|longlong)|float|double)[1234]$")
_OPERATOR = re.compile(rb"^operator\s*(\+=|-=|\*=|/=|%=|&=|\|=|\^=|<<=|>>=|\*|/|%|\+|-|<<|>>)$")


def _parameter_types(unit: Unit, declarator: Node) -> list[tuple[str, bool]]:
    """Canonical type and whether it is a reference, for each parameter."""
    listed = declarator.child_by_field_name("parameters")
    found = []
    for each in listed.named_children if listed is not None else ():
        if "parameter_declaration" not in each.type:
            continue
        kind = canonical(unit.text(each.child_by_field_name("type"))) or ""
        found.append((kind, b"&" in unit.text(each)))
    return found


def _operator_definitions(unit: Unit) -> Iterator[tuple[Node, Node, bytes]]:
    """Definitions of free operators: the definition, its function declarator, the symbol."""
    if b"operator" not in unit.data:
        return
    for node in unit.nodes.get("function_definition", ()):
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator") or next(
                (c for c in declarator.named_children if c.type.endswith("declarator")), None
            )
        if declarator is None:
            continue
        name = declarator.child_by_field_name("declarator")
        match = _OPERATOR.match(unit.text(name)) if name is not None else None
        if match is None or _inside(node, ("class_specifier", "struct_specifier")):
            continue
        yield node, declarator, match.group(1)


def _inside(node: Node, kinds: tuple[str, ...]) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.type in kinds:
            return True
        parent = parent.parent
    return False


def guarded(unit: Unit, node: Node) -> tuple[Edit, ...]:
    """Edits that keep a definition out of AMD builds: whole lines between an ``#if`` pair."""
    outer = node.parent
    whole = outer if outer is not None and outer.type == "template_declaration" else node
    first = unit.source.line_span(unit.line(whole.start_byte)).start
    last = unit.source.line_span(unit.line(max(whole.end_byte - 1, 0)))
    if unit.data[first : whole.start_byte].strip() or unit.data[whole.end_byte : last.end].strip():
        first, end = whole.start_byte, whole.end_byte
        newline = unit.source.newline
        return Edit.wrap(
            Span(first, end),
            newline + b"#if !defined(__HIP_PLATFORM_AMD__)" + newline,
            newline + b"#endif" + newline,
        )
    newline = unit.source.newline
    tail = b"" if unit.data[: last.end].endswith((b"\n", b"\r")) else newline
    return Edit.wrap(
        Span(first, last.end),
        b"#if !defined(__HIP_PLATFORM_AMD__)" + newline,
        tail + b"#endif" + newline,
    )


@check("vector-operators", "vector-operator-hijack")
def vector_operators(unit: Unit, context: Context) -> Iterator[Finding]:
    """User operators on HIP's vector types: ambiguous, or silently not chosen."""
    for node, declarator, symbol in _operator_definitions(unit):
        kinds = _parameter_types(unit, declarator)
        text = head(unit, node)
        vectors = [bool(_VECTOR.match(k.encode())) for k, _ in kinds]
        template = b"template" in text.split(b"operator")[0]
        name = f"operator{symbol.decode()}"
        if template and len(kinds) == 2 and symbol.decode() in "+-*/":
            parameters = {k for k, _ in kinds}
            if len(parameters) == 1 and not any(vectors) and _is_bare_template(text, kinds[0][0]):
                yield context.finding("vector-operator-hijack", unit, _span(declarator), name=name)
            continue
        if not any(vectors):
            continue
        both = b"__host__" in text and b"__device__" in text
        compound = symbol.endswith(b"=")
        ambiguous = both and (
            (compound and len(kinds) == 2 and vectors[0])
            or (symbol in (b"*", b"/") and len(kinds) == 2 and all(vectors))
        )
        if not ambiguous:
            continue
        change = Change(guarded(unit, node), Safety.ASSIST, 5, label="vector-operators")
        yield context.finding(
            "vector-operators",
            unit,
            _span(declarator),
            change=change,
            name=name,
            kind=next(k for k, _ in kinds if _VECTOR.match(k.encode())),
        )


def _is_bare_template(text: bytes, kind: str) -> bool:
    """Whether a parameter type is the template parameter itself."""
    pattern = rb"(?:typename|class)\s+" + re.escape(kind.encode()) + rb"\b"
    return re.search(pattern, text) is not None


_CLASHES: dict[bytes, tuple[tuple[str, ...], ...]] = {
    b"atomicAdd": (
        ("double*", "double"), ("__half2*", "__half2"), ("half2*", "half2"),
        ("__half*", "__half"), ("half*", "half"),
        ("__nv_bfloat16*", "__nv_bfloat16"), ("__nv_bfloat162*", "__nv_bfloat162"),
    ),
    b"atomicMax": (("float*", "float"), ("double*", "double")),
    b"atomicMin": (("float*", "float"), ("double*", "double")),
    b"atomicSub": (("float*", "float"), ("double*", "double")),
}  # fmt: skip
_HALF = ("half", "half2", "__half", "__half2", "__nv_bfloat16", "__nv_bfloat162")


@check("user-overload-clash")
def user_overload_clash(unit: Unit, context: Context) -> Iterator[Finding]:
    """Helpers that CUDA lacks and HIP has: a redefinition at global scope."""
    if unit.identifiers.isdisjoint(_CLASHES):
        return
    for node in unit.nodes.get("function_definition", ()):
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "function_declarator":
            declarator = declarator.child_by_field_name("declarator") or next(
                (c for c in declarator.named_children if c.type.endswith("declarator")), None
            )
        if declarator is None:
            continue
        name = unit.text(declarator.child_by_field_name("declarator"))
        signatures = _CLASHES.get(name)
        if signatures is None or b"__device__" not in head(unit, node):
            continue
        if _inside(node, ("namespace_definition", "class_specifier", "struct_specifier")):
            continue
        outer = node.parent
        if outer is not None and outer.type == "template_declaration":
            continue
        kinds = _pointer_types(unit, declarator)
        if kinds not in signatures:
            continue
        half = any(k.rstrip("*") in _HALF for k in kinds)
        change = (
            None if half else Change(guarded(unit, node), priority=5, label="user-overload-clash")
        )
        yield context.finding(
            "user-overload-clash",
            unit,
            _span(declarator),
            change=change,
            action=None if change is not None else Action.FLAG,
            severity=Severity.WARNING if half else None,
            name=f"{name.decode()}({', '.join(kinds)})",
        )


def _pointer_types(unit: Unit, declarator: Node) -> tuple[str, ...]:
    listed = declarator.child_by_field_name("parameters")
    found = []
    for each in listed.named_children if listed is not None else ():
        if "parameter_declaration" not in each.type:
            continue
        kind = canonical(unit.text(each.child_by_field_name("type"))) or ""
        inner = each.child_by_field_name("declarator")
        pointers = unit.text(inner).count(b"*") if inner is not None else 0
        found.append(kind + "*" * pointers)
    return tuple(found)
