"""Arithmetic types of expressions, as far as one file tells: enough for overload questions.

Types are written canonically: ``bool char schar uchar short ushort int unsigned long ulong longlong
ulonglong half float double``, pointers with ``*`` appended, others (``float4``, a class) by their
name. What is not known is None, and a check stays silent then.
"""

from __future__ import annotations

from functools import lru_cache
from weakref import WeakKeyDictionary

from tree_sitter import Node

from hipport.parse.unit import Unit

_CANONICAL: dict[bytes, str] = {
    b"bool": "bool", b"char": "char", b"signed char": "schar", b"unsigned char": "uchar",
    b"uchar": "uchar", b"int8_t": "schar", b"uint8_t": "uchar", b"short": "short",
    b"unsigned short": "ushort", b"ushort": "ushort", b"int16_t": "short", b"uint16_t": "ushort",
    b"int": "int", b"signed": "int", b"signed int": "int", b"int32_t": "int",
    b"unsigned": "unsigned", b"unsigned int": "unsigned", b"uint": "unsigned",
    b"uint32_t": "unsigned", b"long": "long", b"long int": "long", b"int64_t": "long",
    b"ptrdiff_t": "long", b"ssize_t": "long", b"unsigned long": "ulong",
    b"unsigned long int": "ulong", b"uint64_t": "ulong", b"size_t": "ulong",
    b"std::size_t": "ulong", b"uintptr_t": "ulong", b"ulong": "ulong",
    b"long long": "longlong", b"long long int": "longlong", b"unsigned long long": "ulonglong",
    b"unsigned long long int": "ulonglong", b"half": "half", b"__half": "half",
    b"float": "float", b"double": "double",
}  # fmt: skip

INTEGERS = (
    "bool", "char", "schar", "uchar", "short", "ushort", "int", "unsigned", "long", "ulong",
    "longlong", "ulonglong",
)  # fmt: skip
_RANK = {name: rank for rank, name in enumerate(INTEGERS)}
_PROMOTED = frozenset(INTEGERS[:6])
UNSIGNED = frozenset({"unsigned", "ulong", "ulonglong"})
FLOATS = frozenset({"half", "float", "double"})
SPELLING = {
    "unsigned": "unsigned int", "ulong": "unsigned long", "longlong": "long long",
    "ulonglong": "unsigned long long", "schar": "signed char", "uchar": "unsigned char",
    "ushort": "unsigned short",
}  # fmt: skip
"""How a canonical name is written in C++ where it differs."""

_RETURNS: dict[bytes, str] = {
    b"__popc": "int", b"__popcll": "int", b"__clz": "int", b"__clzll": "int", b"__ffs": "int",
    b"__ffsll": "int", b"__float_as_int": "int", b"__float_as_uint": "unsigned",
    b"__int_as_float": "float", b"__uint_as_float": "float", b"__brev": "unsigned",
    b"__double_as_longlong": "longlong", b"__longlong_as_double": "double",
    b"__umulhi": "unsigned", b"__mulhi": "int", b"sqrtf": "float", b"fabsf": "float",
    b"expf": "float", b"logf": "float", b"powf": "float", b"fminf": "float", b"fmaxf": "float",
    b"floorf": "float", b"ceilf": "float", b"rsqrtf": "float", b"sinf": "float", b"cosf": "float",
    b"__expf": "float", b"__logf": "float", b"__ldg": "?",
}  # fmt: skip
_COORDINATES = frozenset({b"threadIdx", b"blockIdx", b"blockDim", b"gridDim"})
_VECTORS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float", "double")
_SCOPES = ("function_definition", "lambda_expression", "translation_unit")


def canonical(text: bytes) -> str | None:
    """The canonical name of a written type without declarator; None for an empty one."""
    words = text.replace(b"*", b" * ").replace(b"&", b" ").split()
    drop = (
        b"const",
        b"constexpr",
        b"volatile",
        b"static",
        b"register",
        b"inline",
        b"__restrict__",
        b"restrict",
        b"__shared__",
        b"__device__",
        b"__constant__",
        b"extern",
        b"mutable",
        b"std::",
        b"struct",
        b"typename",
        b"__restrict",
    )
    pointers = words.count(b"*")
    plain = b" ".join(w for w in words if w not in drop and w != b"*")
    if not plain:
        return None
    base = _CANONICAL.get(plain) or _CANONICAL.get(plain.removeprefix(b"std::"))
    return (base or plain.decode("utf-8", "replace")) + "*" * pointers


def usual(left: str, right: str) -> str | None:
    """The usual arithmetic conversions; None where a type is not arithmetic."""
    for kind in ("double", "float", "half"):
        if kind in (left, right):
            other = right if left == kind else left
            return kind if other in _RANK or other in FLOATS else None
    if left not in _RANK or right not in _RANK:
        return None
    left = "int" if left in _PROMOTED else left
    right = "int" if right in _PROMOTED else right
    if left == right:
        return left
    low, high = sorted((left, right), key=lambda t: _RANK[t])
    if low == "unsigned" and high == "long":
        return "long"
    if low == "ulong" and high == "longlong":
        return "ulonglong"
    return high


def _literal(text: bytes) -> str | None:
    lower = text.lower().replace(b"'", b"")
    if lower.startswith((b"0x", b"0b")):
        digits = lower.rstrip(b"ulz")
        suffix = lower[len(digits) :]
        value = int(digits, 0) if digits[2:] else 0
        if not suffix:
            return "int" if value < 2**31 else "unsigned" if value < 2**32 else "long"
    elif b"." in lower or (b"e" in lower) or lower.endswith(b"f"):
        if lower.endswith(b"f"):
            return "float"
        return "double"
    else:
        digits = lower.rstrip(b"ulz")
        suffix = lower[len(digits) :]
        if not digits.isdigit():
            return None
        value = int(digits)
        if not suffix:
            return "int" if value < 2**31 else "long"
    if b"ll" in suffix:
        return "ulonglong" if b"u" in suffix else "longlong"
    if b"l" in suffix:
        return "ulong" if b"u" in suffix else "long"
    return "unsigned" if value < 2**32 else "ulong"


class _Scope:
    """Declared types by enclosing function, made once a unit."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.by_scope: dict[int, dict[bytes, str | None]] = {}
        for kind in (
            "declaration",
            "parameter_declaration",
            "optional_parameter_declaration",
            "field_declaration",
        ):
            for node in unit.nodes.get(kind, ()):
                self._declaration(node)

    def _declaration(self, node: Node) -> None:
        written = node.child_by_field_name("type")
        if written is None:
            return
        base = canonical(self.unit.text(written))
        scope: Node | None = node.parent
        while scope is not None and scope.type not in _SCOPES:
            if scope.type in ("struct_specifier", "class_specifier"):
                return
            scope = scope.parent
        if scope is None:
            return
        names = self.by_scope.setdefault(scope.id, {})
        for declarator in node.children_by_field_name("declarator"):
            name, pointers, value = self._declarator(declarator)
            if not name:
                continue
            kind = base
            if base in ("auto", "auto*"):
                kind = type_of(self.unit, value) if value is not None else None
            full = kind + "*" * pointers if kind is not None else None
            # Two declarations of one name in nested blocks that disagree leave it unknown.
            names[name] = full if names.get(name, full) == full else None

    def _declarator(self, node: Node) -> tuple[bytes, int, Node | None]:
        pointers, value = 0, None
        current: Node | None = node
        while current is not None:
            kind = current.type
            if kind in ("identifier", "field_identifier"):
                return self.unit.text(current), pointers, value
            if kind == "init_declarator":
                value = current.child_by_field_name("value")
            elif kind in ("pointer_declarator", "array_declarator"):
                pointers += 1
            elif kind == "function_declarator":
                return b"", 0, None
            nested = current.child_by_field_name("declarator")
            if nested is None:
                nested = next(
                    (
                        c
                        for c in current.named_children
                        if c.type.endswith(("declarator", "identifier"))
                    ),
                    None,
                )
            current = nested
        return b"", 0, None

    def lookup(self, node: Node, name: bytes) -> str | None:
        scope: Node | None = node.parent
        while scope is not None:
            if scope.type in _SCOPES:
                known = self.by_scope.get(scope.id, {})
                if name in known:
                    return known[name]
            scope = scope.parent
        return None


_scopes: WeakKeyDictionary[Unit, _Scope] = WeakKeyDictionary()


def _scope(unit: Unit) -> _Scope:
    scope = _scopes.get(unit)
    if scope is None:
        scope = _Scope.__new__(_Scope)
        _scopes[unit] = scope
        scope.__init__(unit)  # type: ignore[misc]
    return scope


@lru_cache(maxsize=64)
def _vector_member(kind: str) -> str | None:
    for base in sorted(_VECTORS, key=len, reverse=True):
        if kind.startswith(base) and kind[len(base) :] in ("1", "2", "3", "4"):
            return {"uint": "unsigned"}.get(base, base)
    return {"dim3": "unsigned", "__half2": "half", "half2": "half"}.get(kind)


def type_of(unit: Unit, node: Node | None) -> str | None:
    """The canonical type of an expression, None where it is not known."""
    if node is None:
        return None
    kind = node.type
    if kind == "number_literal":
        return _literal(unit.text(node))
    if kind in ("true", "false"):
        return "bool"
    if kind == "char_literal":
        return "char"
    if kind == "parenthesized_expression":
        return type_of(unit, node.named_children[0]) if node.named_child_count == 1 else None
    if kind == "identifier":
        name = unit.text(node)
        return "int" if name == b"warpSize" else _scope(unit).lookup(node, name)
    if kind == "cast_expression":
        return _descriptor(unit, node.child_by_field_name("type"))
    if kind == "sizeof_expression":
        return "ulong"
    if kind in ("unary_expression", "update_expression"):
        return _unary(unit, node)
    if kind == "pointer_expression":
        inner = type_of(unit, node.child_by_field_name("argument"))
        operator = unit.data[node.start_byte : node.start_byte + 1]
        if inner is None:
            return None
        return inner + "*" if operator == b"&" else inner[:-1] if inner.endswith("*") else None
    if kind == "subscript_expression":
        inner = type_of(unit, node.child_by_field_name("argument"))
        return inner[:-1] if inner is not None and inner.endswith("*") else None
    if kind == "field_expression":
        return _field(unit, node)
    if kind == "binary_expression":
        return _binary(unit, node)
    if kind == "conditional_expression":
        first = type_of(unit, node.child_by_field_name("consequence"))
        second = type_of(unit, node.child_by_field_name("alternative"))
        if first is None or second is None:
            return None
        return first if first == second else usual(first, second)
    if kind == "call_expression":
        return _call(unit, node)
    return None


def _descriptor(unit: Unit, node: Node | None) -> str | None:
    return canonical(unit.text(node)) if node is not None else None


def _unary(unit: Unit, node: Node) -> str | None:
    operator = unit.text(node.child_by_field_name("operator"))
    inner = type_of(unit, node.child_by_field_name("argument"))
    if operator == b"!":
        return "bool"
    if inner in _PROMOTED and node.type == "unary_expression":
        return "int"
    return inner


def _field(unit: Unit, node: Node) -> str | None:
    base = node.child_by_field_name("argument")
    if base is None:
        return None
    name = unit.text(node.child_by_field_name("field"))
    if unit.text(base) in _COORDINATES:
        return "unsigned"
    owner = type_of(unit, base)
    if owner is None or name not in (b"x", b"y", b"z", b"w"):
        return None
    return _vector_member(owner.rstrip("*"))


def _binary(unit: Unit, node: Node) -> str | None:
    operator = unit.text(node.child_by_field_name("operator"))
    if operator in (b"<", b">", b"<=", b">=", b"==", b"!=", b"&&", b"||"):
        return "bool"
    left = type_of(unit, node.child_by_field_name("left"))
    right = type_of(unit, node.child_by_field_name("right"))
    if operator in (b"<<", b">>"):
        return "int" if left in _PROMOTED else left
    if left is None or right is None:
        return None
    if left.endswith("*") and operator in (b"+", b"-"):
        return "long" if right.endswith("*") else left
    return usual(left, right)


def _call(unit: Unit, node: Node) -> str | None:
    function = node.child_by_field_name("function")
    if function is None:
        return None
    text = unit.text(function)
    if function.type == "template_function" and text.split(b"<")[0] in (
        b"static_cast",
        b"reinterpret_cast",
        b"const_cast",
    ):
        return canonical(text[text.index(b"<") + 1 : text.rindex(b">")])
    plain = canonical(text)
    if plain in _RANK or plain in FLOATS:
        return plain
    known = _RETURNS.get(text)
    if known is not None and known != "?":
        return known
    arguments = node.child_by_field_name("arguments")
    listed = arguments.named_children if arguments is not None else []
    if text in (b"__ldg", b"fabs", b"abs") and listed:
        inner = type_of(unit, listed[0])
        return (
            inner[:-1]
            if inner is not None and text == b"__ldg" and inner.endswith("*")
            else (inner if text != b"__ldg" else None)
        )
    if text in (b"min", b"max") and len(listed) == 2:
        first, second = type_of(unit, listed[0]), type_of(unit, listed[1])
        return usual(first, second) if first is not None and second is not None else None
    return None
