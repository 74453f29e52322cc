"""The ISA manuals' pseudocode as C.

AMD's ISA documents give an operation's meaning as a few lines of pseudocode; tinygrad carries
them as text. `compile_pcode` parses that text and writes the same meaning as C for one lane (or
for the scalar unit). What it cannot express raises `PcodeError`; such operations are in
`handwritten.py` or unsupported, never guessed.

Values: integers of up to 32, 64 or 128 bits in C integers of that size; f32 and f64 as float and
double; f16 and bf16 as a float that holds exactly that value, rounded after each operation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


class PcodeError(Exception):
    """The pseudocode uses something the grammar does not cover."""


# ---------------------------------------------------------------- tokens and parsing

_TOKEN = re.compile(
    r"\s*(?:(?P<comment>//[^\n]*)"
    r"|(?P<typed>\d+'(?:BF|[UIFB])(?![A-Za-z0-9_]))"
    r"|(?P<sized>\d+'-?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)"
    r"|(?P<num>0x[0-9a-fA-F]+(?:ULL|LL|U|L)?|\d+\.\d+F?|\d+(?:ULL|LL|U|L)?)"
    r"|(?P<id>[A-Za-z_]\w*)"
    r"|(?P<op>\+:|\+=|-=|<<|>>|<>|<=|>=|==|!=|&&|\|\||\*\*|[-+*/&|^~!<>?:;,.(){}\[\]=]))"
)

Type = tuple[str, int]
_MEMBER = re.compile(r"^(bf|fp|[uifb])(\d+)$")


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise PcodeError(f"cannot read {text[at : at + 20]!r}")
        at = match.end()
        kind = match.lastgroup or ""
        if kind != "comment":
            found.append((kind, match[kind]))
    found.append(("end", ""))
    return found


Node = tuple[Any, ...]


class _Parser:
    def __init__(self, text: str) -> None:
        self.t = _tokens(text)
        self.i = 0

    def peek(self, ahead: int = 0) -> str:
        return self.t[min(self.i + ahead, len(self.t) - 1)][1]

    def next(self) -> tuple[str, str]:
        self.i += 1
        return self.t[self.i - 1]

    def accept(self, text: str) -> bool:
        if self.peek() == text and self.t[self.i][0] in ("op", "id"):
            self.i += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise PcodeError(f"expected {text!r}, found {self.peek()!r}")

    def block(self, *ends: str) -> list[Node]:
        found: list[Node] = []
        while True:
            while self.accept(";"):
                pass
            if self.t[self.i][0] == "end":
                if "" in ends:
                    return found
                raise PcodeError("unexpected end")
            if self.peek() in ends:
                return found
            found.append(self.statement())

    def statement(self) -> Node:
        if self.accept("if"):
            arms = []
            cond = self.expr()
            self.expect("then")
            arms.append((cond, self.block("elsif", "else", "endif")))
            other: list[Node] = []
            while True:
                if self.accept("elsif"):
                    cond = self.expr()
                    self.expect("then")
                    arms.append((cond, self.block("elsif", "else", "endif")))
                elif self.accept("else"):
                    other = self.block("endif")
                else:
                    self.expect("endif")
                    return ("if", arms, other)
        if self.accept("for"):
            name = self.next()[1]
            self.expect("in")
            low = self.expr()
            self.expect(":")
            high = self.expr()
            self.expect("do")
            inside = self.block("endfor")
            self.expect("endfor")
            return ("for", name, low, high, inside)
        if self.accept("break"):
            return ("break",)
        if self.accept("return"):
            return ("return", self.expr())
        if self.accept("declare"):
            name = self.next()[1]
            self.expect(":")
            kind, text = self.next()
            if kind != "typed":
                raise PcodeError(f"declare {name}: {text!r}")
            count = 0
            if self.accept("["):
                count = int(self.next()[1])
                self.expect("]")
            return ("declare", name, _typed(text), count)
        target = self.unary()
        for op in ("=", "+=", "-="):
            if self.accept(op):
                if op == "=" and self.accept("lambda"):
                    self.expect("(")
                    params = []
                    while not self.accept(")"):
                        params.append(self.next()[1])
                        self.accept(",")
                    self.expect("(")
                    mark = self.i
                    try:
                        body: Any = [("return", self.expr())]
                        self.accept(";")
                        self.expect(")")
                    except PcodeError:
                        self.i = mark
                        body = self.block(")")
                        self.expect(")")
                    return ("lambda", target[1], params, body)
                right = self.expr()
                targets = [target]
                while op == "=" and self.accept("="):
                    targets.append(right)
                    right = self.expr()
                return ("assign", targets, op, right)
        if target[0] == "call":
            return ("do", target)
        raise PcodeError(f"not a statement near {self.peek()!r}")

    def expr(self) -> Node:
        cond = self.binary(0)
        if self.accept("?"):
            yes = self.expr()
            self.expect(":")
            no = self.expr()
            return ("?", cond, yes, no)
        return cond

    _LEVELS = (
        ("||",),
        ("&&",),
        ("|",),
        ("^",),
        ("&",),
        ("==", "!=", "<>"),
        ("<", ">", "<=", ">="),
        ("<<", ">>"),
        ("+", "-"),
        ("*", "/"),
        ("**",),
    )

    def binary(self, level: int) -> Node:
        if level == len(self._LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.t[self.i][0] == "op" and self.peek() in self._LEVELS[level]:
            op = self.next()[1]
            left = ("bin", op, left, self.binary(level + 1))
        return left

    def unary(self) -> Node:
        if self.t[self.i][0] == "op" and self.peek() in ("-", "~", "!", "+"):
            op = self.next()[1]
            return ("un", op, self.unary())
        return self.postfix(self.primary())

    def primary(self) -> Node:
        kind, text = self.next()
        if kind == "num":
            return _number(text)
        if kind == "sized":
            return _sized(text)
        if kind == "typed":
            self.expect("(")
            inner = self.expr()
            self.expect(")")
            return ("cast", _typed(text), inner)
        if kind == "id":
            if self.peek() == "(":
                self.next()
                args = []
                while not self.accept(")"):
                    args.append(self.expr())
                    self.accept(",")
                return ("call", text, args)
            return ("var", text)
        if text == "(":
            inner = self.expr()
            self.expect(")")
            return inner
        if text == "{":
            parts = [self.expr()]
            while self.accept(","):
                parts.append(self.expr())
            self.expect("}")
            return ("cat", parts)
        raise PcodeError(f"unexpected {text!r}")

    def postfix(self, node: Node) -> Node:
        while True:
            if self.accept("."):
                name = self.next()[1]
                if match := _MEMBER.match(name):
                    node = ("member", node, (match[1], int(match[2])))
                else:
                    node = ("field", node, name)
            elif self.accept("["):
                first = self.expr()
                if self.accept(":"):
                    node = ("slice", node, first, self.expr())
                elif self.accept("+:"):
                    node = ("part", node, first, self.expr())
                else:
                    node = ("index", node, first)
                self.expect("]")
            else:
                return node


def _typed(text: str) -> Type:
    bits, kind = text.split("'")
    return kind.lower(), int(bits)


def _number(text: str) -> Node:
    if "." in text:
        return ("num", float(text.rstrip("F")), ("f", 32 if text.endswith("F") else 64))
    bits = 64 if text.endswith("LL") else 32
    kind = "u" if "U" in text else "i"
    value = int(text.rstrip("UL"), 0)
    if value >= 1 << bits:
        bits = 64
    if kind == "i" and value >= 1 << (bits - 1):
        kind = "u"
    return ("num", value, (kind, bits))


def _sized(text: str) -> Node:
    bits, rest = text.split("'")
    if "." in rest:
        return ("num", float(rest), ("f", int(bits)))
    return (
        "num",
        int(rest.rstrip("U"), 0),
        ("u" if rest.endswith("U") or "x" in rest else "i", int(bits)),
    )


@functools.lru_cache(maxsize=8192)
def parse(text: str) -> tuple[Node, ...]:
    """The statements of one operation. Raises PcodeError."""
    return tuple(_Parser(text).block(""))


# ---------------------------------------------------------------- C generation


@dataclass(frozen=True, slots=True)
class Value:
    """A C expression, its type, and (if cheap) a C expression of its bits."""

    c: str
    type: Type
    bits: str | None = None
    const: int | None = None


def c_type(t: Type) -> str:
    """The C type that holds a value of type `t`."""
    kind, n = t
    if kind == "f" and n == 64:
        return "double"
    if kind == "f" and n in (16, 32):
        return "float"
    if kind == "bf" and n == 16:
        return "float"
    if kind in ("u", "b", "i", "fp", "bf"):
        sign = "i" if kind == "i" else "u"
        for size in (32, 64, 128):
            if n <= size:
                return f"{sign}{size}"
    raise PcodeError(f"no C type for {n}-bit {kind}")


def is_float(t: Type) -> bool:
    return (t[0] == "f" and t[1] in (16, 32, 64)) or t == ("bf", 16)


def _width(t: Type) -> int:
    return 32 if t[1] <= 32 else 64 if t[1] <= 64 else 128


def bits_of(v: Value) -> str:
    """C expression of the bits of `v`, zero-extended."""
    if v.bits is not None:
        return v.bits
    kind, n = v.type
    if v.type == ("f", 16):
        return f"f2h({v.c})"
    if v.type == ("bf", 16):
        return f"f2bf({v.c})"
    if v.type == ("f", 32):
        return f"f2u({v.c})"
    if v.type == ("f", 64):
        return f"d2u({v.c})"
    return mask(v.c, n, signed=kind == "i")


def mask(c: str, n: int, *, signed: bool = False) -> str:
    if n in (32, 64, 128):
        return f"((u{n})({c}))"
    if n < 32:
        return f"((u32)({c})&{(1 << n) - 1:#x}u)"
    if n < 64:
        return f"((u64)({c})&{(1 << n) - 1:#x}ull)"
    return f"((u128)({c})&((((u128)1)<<{n})-1))"


def from_bits(c: str, t: Type, have: int = 32) -> Value:
    """The value of type `t` whose bits are the low bits of the C expression `c` (`have` wide)."""
    kind, n = t
    if t == ("f", 16):
        return Value(f"h2f({c})", t, mask(c, 16) if have > 16 else f"({c})")
    if t == ("bf", 16):
        return Value(f"bf2f({c})", t, mask(c, 16) if have > 16 else f"({c})")
    if t == ("f", 32):
        return Value(f"u2fi({c})", t, f"((u32)({c}))")
    if t == ("f", 64):
        return Value(f"u2d({c})", t, f"((u64)({c}))")
    if kind == "i":
        if n in (32, 64, 128):
            return Value(f"((i{n})({c}))", t)
        if n in (8, 16):
            return Value(f"((i32)(i{n})({c}))", t)
        size = 32 if n < 32 else 64 if n < 64 else 128
        return Value(f"((i{size})((u{size})({c})<<{size - n})>>{size - n})", t)
    if have <= n and n not in (32, 64, 128):
        return Value(f"({c})", t)
    return Value(mask(c, n), t)


def to(v: Value, t: Type) -> Value:
    """Numeric conversion of `v` to `t` (bits are reinterpreted only where both are integers)."""
    if v.type == t:
        return v
    if is_float(t):
        if is_float(v.type):
            if t == ("f", 64):
                return Value(f"((double){v.c})", t)
            if t == ("f", 32):
                return Value(f"((float){v.c})" if v.type == ("f", 64) else v.c, t)
            if t == ("f", 16):
                if v.type == ("f", 64):
                    return Value(f"d2h_f({v.c})", t, f"d2h({v.c})")
                return Value(f"rh({v.c})", t, f"f2h({v.c})")
            if v.type == ("f", 64):
                return Value(f"bf2f(f2bf(d2f_odd({v.c})))", t)
            return Value(f"bf2f(f2bf({v.c}))", t)
        if v.const is not None:
            return Value(f"({c_type(t)}){v.const}", t)
        raise PcodeError(f"integer {v.c} used as {t}")
    if is_float(v.type):
        raise PcodeError(f"float {v.c} used as {t}")
    if t[1] < v.type[1] or t[0] != v.type[0] or _width(t) != _width(v.type):
        if v.const is not None and v.const >= 0 and v.const < 1 << (t[1] - 1):
            suffix = {32: "", 64: "ll", 128: "ll"}[_width(t)]
            return Value(f"{v.const}{'u' if t[0] != 'i' else ''}{suffix}", t, None, v.const)
        if t[0] == "i" and t[1] > v.type[1]:
            return Value(f"(({c_type(t)})({v.c}))", t)
        if t[0] != "i" and t[1] > v.type[1] and v.type[0] != "i":
            return Value(f"(({c_type(t)})({v.c}))", t)
        return from_bits(v.c, t, 999)
    return Value(v.c, t, v.bits, v.const)


_RANK = {("f", 64): 4, ("f", 32): 3, ("f", 16): 2, ("bf", 16): 1}


def _unify(a: Value, b: Value) -> tuple[Value, Value, Type]:
    if is_float(a.type) or is_float(b.type):
        t = max((v.type for v in (a, b) if is_float(v.type)), key=lambda x: _RANK[x])
        return to(a, t), to(b, t), t
    n = max(32, a.type[1], b.type[1])
    n = 32 if n <= 32 else 64 if n <= 64 else 128
    kind = "i" if a.type[0] == b.type[0] == "i" else "u"
    # A plain literal such as 0 takes the other side's sign.
    if a.const is not None and a.type[0] == "i" and b.type[0] != "i":
        kind = "u"
    return _widen(a, kind, n), _widen(b, kind, n), (kind, n)


def _widen(v: Value, kind: str, n: int) -> Value:
    t = (kind, n)
    if v.const is not None:
        suffix = {32: "", 64: "ll", 128: "ll"}[n]
        if v.const < 0:
            return Value(f"(({c_type(t)})({v.const}))", t, None, v.const)
        return Value(f"{v.const:#x}{'u' if kind != 'i' else ''}{suffix}", t, None, v.const)
    if c_type(v.type) == c_type(t):
        return Value(v.c, t)
    return Value(f"(({c_type(t)})({v.c}))", t)


@dataclass
class Context:
    """What the names in an operation's pseudocode stand for, and what it turned out to do.

    `read(name)` gives the value of S0, D0, SCC, … or None for a name it does not know;
    `members` are resolved integer constants such as `OPSEL`. After compilation `writes` holds the
    names assigned to, `reads` those read.
    """

    read: Callable[[str], Value | None]
    dest: dict[str, tuple[str, int]] = field(default_factory=dict)
    constants: dict[str, int] = field(default_factory=dict)
    carry_in: Callable[[], str] | None = None
    writes: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    memory: tuple[str, str] | None = None


class _Gen:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.vars: dict[str, tuple[Type, int]] = {}
        self.loops: set[str] = set()
        self.lambdas: dict[str, tuple[list[str], list[Node]]] = {}
        self.rtz = False
        self.aliases: dict[str, Value] = {}
        self.serial = 0
        self.returns: list[tuple[str, Type | None]] = []
        self.sliced: dict[str, int] = {}

    # ---- expressions

    def expr(self, n: Node) -> Value:
        return getattr(self, f"e_{_NAMES.get(n[0], n[0])}")(n)  # type: ignore[no-any-return]

    def e_num(self, n: Node) -> Value:
        _, value, t = n
        if is_float(t):
            if t == ("f", 64):
                return Value(repr(value), t)
            return Value(f"{value!r}f", t)
        suffix = {32: "", 64: "ll", 128: "ll"}[_width(t)]
        return Value(f"{value}{'u' if t[0] != 'i' else ''}{suffix}", t, None, value)

    def e_var(self, n: Node) -> Value:
        name = n[1]
        if name in self.aliases:
            return self.aliases[name]
        if name in self.loops:
            return Value(name + "_", ("i", 32))
        if name in self.vars:
            t, count = self.vars[name]
            if count:
                raise PcodeError(f"array {name} used whole")
            return Value(name + "_", t)
        if name in self.ctx.constants:
            value = self.ctx.constants[name]
            return Value(f"{value}u", ("u", 32), None, value)
        special = {
            "INF": Value("__builtin_inf()", ("f", 64)),
            "NAN": Value('__builtin_nan("")', ("f", 64)),
            "PI": Value("3.14159265358979323846", ("f", 64)),
            "laneId": Value("l", ("i", 32)),
            "laneID": Value("l", ("i", 32)),
            "UNDERFLOW_F32": Value("0.0f", ("f", 32)),
            "OVERFLOW_F32": Value("__builtin_inff()", ("f", 32)),
            "UNDERFLOW_F64": Value("0.0", ("f", 64)),
            "OVERFLOW_F64": Value("__builtin_inf()", ("f", 64)),
        }
        if name in special:
            return special[name]
        if (v := self.ctx.read(name)) is not None:
            self.ctx.reads.add(name)
            return v
        raise PcodeError(f"unknown name {name}")

    def e_member(self, n: Node) -> Value:
        _, inner, t = n
        if inner[0] == "var" and inner[1] in ("INF", "NAN"):
            return Value(
                {"INF": "__builtin_inf", "NAN": "__builtin_nan"}[inner[1]]
                + ("f(" if t[1] < 64 else "(")
                + ('""' if inner[1] == "NAN" else "")
                + ")",
                t,
            )
        if inner[0] == "index" and inner[1][0] == "var" and inner[1][1] == "MEM":
            return self.memory(t)
        if (c := self.lane_bit(n)) is not None:
            return Value(c, ("u", 1))
        if inner[0] == "member" and inner[1][0] == "var" and is_float(t) and inner[2][0] == "b":
            inner = inner[1]
        v = self.expr(inner)
        if v.type == t:
            return v
        if is_float(t) and is_float(v.type):
            return to(v, t)
        if v.const is not None and not is_float(t):
            return to(v, t)
        return from_bits(
            bits_of(v) if is_float(v.type) else v.c, t, v.type[1] if v.type[0] != "i" else 999
        )

    def memory(self, t: Type) -> Value:
        if self.ctx.memory is None:
            raise PcodeError("memory")
        return from_bits(self.ctx.memory[0], t)

    def lane_bit(self, n: Node) -> str | None:
        """VCC.u64[laneId] (with any member): the lane's bit of the carry-in mask."""
        while n[0] == "member" and n[1][0] == "index":
            n = n[1]
        if n[0] == "index" and n[2] == ("var", "laneId"):
            inner = n[1]
            if (
                inner[0] == "member"
                and inner[1] == ("var", "VCC")
                and self.ctx.carry_in is not None
            ):
                self.ctx.reads.add("VCC")
                return self.ctx.carry_in()
        return None

    def e_field(self, n: Node) -> Value:
        _, inner, name = n
        path = [name]
        while inner[0] == "field":
            path.append(inner[2])
            inner = inner[1]
        if inner[0] == "var":
            key = ".".join([inner[1], *reversed(path)])
            if key in self.ctx.constants:
                value = self.ctx.constants[key]
                return Value(f"{value}u", ("u", 32), None, value)
            if (v := self.ctx.read(key)) is not None:
                self.ctx.reads.add(key)
                return v
        raise PcodeError(f"field {name}")

    def e_index(self, n: Node) -> Value:
        _, inner, at = n
        if inner[0] == "var" and inner[1] == "MEM":
            return self.memory(("b", 32))
        if (c := self.lane_bit(n)) is not None:
            return Value(c, ("u", 1))
        if inner[0] == "var" and inner[1] in self.vars and self.vars[inner[1]][1]:
            t, _ = self.vars[inner[1]]
            return Value(f"{inner[1]}_[{self.expr(at).c}]", t)
        v = self.expr(inner)
        i = self.expr(at)
        if is_float(v.type):
            raise PcodeError("bit of a float")
        return Value(f"((u32)(({v.c})>>({i.c}))&1u)", ("u", 1))

    def span(self, n: Node) -> tuple[str, int, bool]:
        """(C of the low bit, width, reversed) of a slice."""
        _, _, high, low = n
        if n[0] == "part":
            width = self.const(low)
            return self.expr(high).c, width, False
        hi, lo = self.maybe_const(high), self.maybe_const(low)
        if hi is not None and lo is not None:
            return (str(lo), hi - lo + 1, False) if hi >= lo else (str(hi), lo - hi + 1, True)
        if high[0] == "bin" and high[1] == "+" and high[2] == low:
            above = self.maybe_const(high[3])
            if above is not None:
                return f"({self.expr(low).c})", above + 1, False
        raise PcodeError("slice of unknown width")

    def maybe_const(self, n: Node) -> int | None:
        try:
            if n[0] == "bin":
                a, b = self.maybe_const(n[2]), self.maybe_const(n[3])
                if a is None or b is None:
                    return None
                return {"+": a + b, "-": a - b, "*": a * b}.get(n[1])
            return self.expr(n).const
        except PcodeError:
            return None

    def const(self, n: Node) -> int:
        value = self.maybe_const(n)
        if value is None:
            raise PcodeError("not a constant")
        return value

    def e_slice(self, n: Node) -> Value:
        v = self.expr(n[1])
        low, width, backwards = self.span(n)
        raw = bits_of(v) if is_float(v.type) else v.c
        if backwards:
            if width not in (32, 64):
                raise PcodeError("bit reversal of this width")
            return Value(f"brev{width}({raw})", ("u", width))
        if v.type[0] == "i" and not is_float(v.type):
            raw = f"((u{_width(v.type)})({raw}))"
        if low == "0":
            return Value(mask(raw, width), ("b", width))
        return Value(mask(f"({raw})>>{low}", width), ("b", width))

    e_part = e_slice

    def e_cat(self, n: Node) -> Value:
        parts = [self.expr(p) for p in n[1]]
        total = sum(p.type[1] for p in parts)
        t: Type = ("b", total)
        c = ""
        at = total
        pieces = []
        for p in parts:
            at -= p.type[1]
            pieces.append(
                f"(({c_type(t)}){bits_of(p)}<<{at})" if at else f"(({c_type(t)}){bits_of(p)})"
            )
        c = "(" + "|".join(pieces) + ")"
        return Value(c, t)

    def e_cast(self, n: Node) -> Value:
        _, t, inner = n
        v = self.expr(inner)
        if is_float(t):
            if is_float(v.type):
                return to(v, t)
            return from_bits(v.c, t, 999)
        if is_float(v.type):
            raise PcodeError("integer cast of a float")
        if v.const is not None and v.const >= 0:
            return to(v, t)
        if t[1] > v.type[1]:
            if v.type[0] == "i" or t[0] == v.type[0] or t[0] != "i":
                return Value(f"(({c_type(t)})({v.c}))", t)
            return Value(f"(({c_type(t)})({v.c}))", t)
        return from_bits(v.c, t, 999)

    def e_un(self, n: Node) -> Value:
        _, op, inner = n
        v = self.expr(inner)
        if op == "+":
            return v
        if op == "!":
            return Value(f"(u32)(!({v.c}))", ("u", 1))
        if op == "-":
            if is_float(v.type):
                return Value(f"(-{v.c})", v.type)
            t = ("i" if v.type[0] == "i" else v.type[0], max(32, v.type[1]))
            return Value(
                f"(-({c_type(t)})({v.c}))", t, None, -v.const if v.const is not None else None
            )
        if is_float(v.type):
            raise PcodeError("bitwise not of a float")
        t = (v.type[0], max(32, v.type[1]))
        return Value(f"(~({c_type(t)})({v.c}))", t)

    def e_bin(self, n: Node) -> Value:
        _, op, left, right = n
        if op == "*" and right[0] == "bin" and right[1] == "**":
            return self.scaled(left, right)
        if op == "*" and left[0] == "bin" and left[1] == "**":
            return self.scaled(right, left)
        if op == "**":
            return self.scaled(("num", 1.0, self.expr(left).type), n)
        a, b = self.expr(left), self.expr(right)
        if op in ("&&", "||"):
            return Value(f"((u32)(({a.c}){op}({b.c})))", ("u", 1))
        if op in ("<<", ">>"):
            t = (a.type[0], max(32, _width(a.type)))
            a = _widen(a, *t) if not is_float(a.type) else a
            if is_float(a.type) or is_float(b.type):
                raise PcodeError("shift of a float")
            name = ("shl" if op == "<<" else "shr") + c_type(t)
            return Value(f"{name}({a.c},(u32)({b.c}))", t)
        a, b, t = _unify(a, b)
        if op in ("==", "!=", "<", ">", "<=", ">="):
            return Value(f"((u32)({a.c}{op}{b.c}))", ("u", 1))
        if op == "<>":
            if is_float(t):
                return Value(f"((u32)(({a.c}<{b.c})|({a.c}>{b.c})))", ("u", 1))
            return Value(f"((u32)({a.c}!={b.c}))", ("u", 1))
        if op in ("&", "|", "^") and is_float(t):
            raise PcodeError("bitwise operation on floats")
        c = f"({a.c}{op}{b.c})"
        if t == ("f", 16):
            return Value(f"rh({c})", t, f"f2h({c})")
        if t == ("bf", 16):
            return Value(f"bf2f(f2bf({c}))", t, f"f2bf({c})")
        if t == ("f", 32):
            return Value(f"fl32({c})", t)
        if op == "/" and not is_float(t):
            raise PcodeError("integer division")
        return Value(c, t)

    def scaled(self, value: Node, power: Node) -> Value:
        base = power[2]
        if base[0] != "num" or base[1] != 2.0:
            raise PcodeError("power of a base other than 2")
        v, e = self.expr(value), self.expr(power[3])
        if is_float(e.type):
            raise PcodeError("power with a float exponent")
        if v.type == ("f", 64):
            return Value(f"ldexp_d({v.c},(i32)({e.c}))", v.type)
        if v.type == ("f", 32):
            return Value(f"fl32(ldexp_f({v.c},(i32)({e.c})))", v.type)
        return Value(
            f"d2h_f(ldexp_d({v.c},(i32)({e.c})))", v.type, f"d2h(ldexp_d({v.c},(i32)({e.c})))"
        )

    def e_tern(self, n: Node) -> Value:
        cond, a, b = (self.expr(x) for x in n[1:])
        if a.type == b.type:
            t = a.type
        elif not is_float(a.type) and not is_float(b.type) and a.type[1] == b.type[1]:
            t = ("u", a.type[1])
        else:
            a, b, t = _unify(a, b)
        bits = None
        if is_float(t) and a.bits and b.bits:
            bits = f"(({cond.c})?{a.bits}:{b.bits})"
        return Value(f"(({cond.c})?{a.c}:{b.c})", t, bits)

    # ---- functions

    def e_call(self, n: Node) -> Value:
        _, name, args = n
        if name in self.lambdas:
            return self.inline(name, args)
        if match := re.fullmatch(
            r"(bf16|[uif]\d+|fp8|bf8)_to_(bf16|[uif]\d+|fp8|bf8|snorm|unorm)", name
        ):
            return self.convert(match[1], match[2], self.expr(args[0]))
        if name in ("isNAN", "isSignalNAN", "isQuietNAN"):
            # Widening to 64 bits would quieten a signalling NaN on the host.
            inner = args[0]
            if inner[0] == "cast" and inner[1] == ("f", 64):
                inner = inner[2]
            v = self.expr(inner)
            suffix = {("f", 16): "h", ("f", 32): "f", ("f", 64): "d", ("bf", 16): "bf"}[v.type]
            kind = {"isNAN": "isnan", "isSignalNAN": "issnan", "isQuietNAN": "isqnan"}[name]
            return Value(f"{kind}_{suffix}({bits_of(v)})", ("u", 1))
        if name == "cvtToQuietNAN":
            inner = args[0]
            if inner[0] == "cast" and inner[1] == ("f", 64):
                inner = inner[2]
            v = self.expr(inner)
            quiet = {("f", 16): "0x200u", ("f", 32): "0x400000u", ("f", 64): "0x8000000000000ull"}
            return from_bits(f"({bits_of(v)}|{quiet[v.type]})", v.type, v.type[1])
        if name in ("exponent", "sign", "mantissa"):
            v = self.expr(args[0])
            shift, width = {16: (10, 5), 32: (23, 8), 64: (52, 11)}[v.type[1]]
            if name == "exponent":
                return Value(f"((i32)(({bits_of(v)}>>{shift})&{(1 << width) - 1}))", ("i", 32))
            if name == "sign":
                return Value(f"((u32)({bits_of(v)}>>{v.type[1] - 1}))", ("u", 1))
            return Value(f"frexp_{ {16: 'f', 32: 'f', 64: 'd'}[v.type[1]] }({v.c})", v.type)
        if name == "signext":
            v = self.expr(args[0])
            return Value(v.c, ("i", 64 if v.type[1] > 32 else 32))
        if name == "signext_from_bit":
            v, w = self.expr(args[0]), self.expr(args[1])
            size = _width(v.type)
            return Value(f"sext_from{size}({v.c},{w.c})", ("i", size))
        if name == "abs":
            v = self.expr(args[0])
            if not is_float(v.type):
                raise PcodeError("abs of an integer")
            f = "__builtin_fabs" if v.type[1] == 64 else "__builtin_fabsf"
            return Value(f"{f}({v.c})", v.type)
        if name == "fma":
            a, b, c = (self.expr(x) for x in args)
            t = a.type
            if t == ("f", 64):
                return Value(f"__builtin_fma({a.c},{b.c},{c.c})", t)
            if t == ("f", 32):
                return Value(f"fl32(__builtin_fmaf({a.c},{b.c},{c.c}))", t)
            return Value(f"h2f(fma_h({a.c},{b.c},{c.c}))", t, f"fma_h({a.c},{b.c},{c.c})")
        if name in ("floor", "trunc", "sqrt", "fract", "sin", "cos", "log2"):
            v = self.expr(args[0])
            suffix = "d" if v.type[1] == 64 else "f"
            r = f"p_{name}_{suffix}({v.c})"
            if v.type == ("f", 16):
                return Value(f"rh({r})", v.type, f"f2h({r})")
            return Value(r, v.type)
        if name == "pow":
            v = self.expr(args[1])
            r = f"p_exp2_{'d' if v.type[1] == 64 else 'f'}({v.c})"
            if v.type == ("f", 16):
                return Value(f"rh({r})", v.type, f"f2h({r})")
            return Value(r, v.type)
        if name == "ldexp":
            v, e = self.expr(args[0]), self.expr(args[1])
            return Value(f"ldexp_{'d' if v.type[1] == 64 else 'f'}({v.c},{e.c})", v.type)
        if name == "isEven":
            return Value(f"p_iseven({self.expr(args[0]).c})", ("u", 1))
        if name in ("bitCount", "countbits"):
            return Value(f"((u32)__builtin_popcountll({self.expr(args[0]).c}))", ("u", 32))
        if match := re.fullmatch(
            r"v_(min|max|minimum|maximum|minnum|maxnum)(3?)_(num_)?([uif])(16|32|64)", name
        ):
            t = (match[4], int(match[5]))
            parts = [to(self.expr(a), t) if is_float(t) else self.expr(a) for a in args]
            suffix = f"{match[4]}{match[5]}"
            f = f"p_{match[1]}_{suffix}"
            if (
                match[1] in ("min", "max")
                and match[4] == "f"
                and (self.ctx.constants.get("WAVE_MODE.IEEE"))
            ):
                f = f"p_i{match[1]}_{suffix}"
            text = f"{f}({parts[0].c},{parts[1].c})"
            for p in parts[2:]:
                text = f"{f}({text},{p.c})"
            return Value(text, t)
        if name in ("v_sad_u8", "v_msad_u8"):
            a, b, c = (self.expr(x) for x in args)
            return Value(
                f"p_{name[2:]}((u32){bits_of(a)},(u32){bits_of(b)},(u32)({c.c}))", ("u", 32)
            )
        raise PcodeError(f"function {name}")

    def convert(self, source: str, target: str, v: Value) -> Value:
        def as_type(text: str) -> Type:
            m = _MEMBER.match(text)
            if m is None:
                raise PcodeError(text)
            return m[1], int(m[2])

        if target in ("snorm", "unorm"):
            return Value(f"p_{target}({v.c})", ("i" if target == "snorm" else "u", 16))
        s, t = as_type(source), as_type(target)
        if s[0] in ("fp", "bf") and s[1] == 8:
            return Value(f"{source}_to_f(({bits_of(v)}))", t)
        if t[0] in ("fp", "bf") and t[1] == 8:
            return Value(f"f_to_{target}({v.c})", t)
        if is_float(s) and is_float(t):
            if t == ("f", 16) and self.rtz:
                return Value(f"h2f(f2h_rtz({v.c}))", t, f"f2h_rtz({v.c})")
            return to(v, t)
        if is_float(t):
            if t == ("f", 64):
                return Value(f"((double)({v.c}))", t)
            if t == ("f", 16):
                return Value(f"rh((float)({v.c}))", t, f"f2h((float)({v.c}))")
            return Value(f"((float)({v.c}))", t)
        if is_float(s):
            kind = "d" if s[1] == 64 else "f"
            return Value(f"cvt_{kind}_{target}({v.c})", t)
        if t[1] < s[1]:
            return Value(f"sat_{source}_{target}({v.c})", t)
        return Value(f"(({c_type(t)})({v.c}))", t)

    def inline(self, name: str, args: Sequence[Node]) -> Value:
        params, body = self.lambdas[name]
        inner = _Gen(self.ctx)
        inner.serial = self.serial = self.serial + 1
        inner.lambdas = {k: v for k, v in self.lambdas.items() if k != name}
        lines = []
        for p, a in zip(params, args, strict=True):
            v = self.expr(a)
            t = v.type
            inner.vars[p] = (t, 0)
            value = f"{c_type(t)} {p}_ = {v.c};"
            lines.append(value)
        result = f"r{self.serial}"
        inner.returns = [(result, None)]
        code = inner.block(body)
        declared = inner.declarations(skip=set(params))
        t2 = inner.returns[-1][1]
        if t2 is None:
            raise PcodeError(f"{name} returns nothing")
        joined = " ".join([*lines, *declared, f"{c_type(t2)} {result};", *code, f"{result};"])
        return Value(f"({{{joined}}})", t2)

    # ---- statements

    def declarations(self, skip: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
        out = []
        for name, (t, count) in self.vars.items():
            if name in skip:
                continue
            out.append(f"{c_type(t)} {name}_[{count}];" if count else f"{c_type(t)} {name}_ = 0;")
        return out

    def block(self, body: Sequence[Node]) -> list[str]:
        out: list[str] = []
        for s in body:
            out.extend(self.statement(s))
        return out

    def statement(self, s: Node) -> list[str]:
        kind = s[0]
        if kind == "assign":
            return self.assign(s)
        if kind == "declare":
            _, name, t, count = s
            self.vars[name] = (t, count)
            return []
        if kind == "lambda":
            self.lambdas[s[1]] = (s[2], s[3])
            return []
        if kind == "if":
            out = []
            for i, (cond, body) in enumerate(s[1]):
                test = self.expr(cond)
                if test.const is not None and len(s[1]) == 1:
                    return self.block(body if test.const else s[2])
                out.append(f"{'} else ' if i else ''}if ({test.c}) {{")
                out.extend(self.block(body))
            if s[2]:
                out.append("} else {")
                out.extend(self.block(s[2]))
            out.append("}")
            return out
        if kind == "for":
            _, name, low, high, body = s
            self.loops.add(name)
            a, b = self.const(low), self.const(high)
            out = [f"for (i32 {name}_ = {a}; {name}_ <= {b}; {name}_++) {{"]
            out.extend(self.block(body))
            out.append("}")
            self.vars.pop(name, None)
            return out
        if kind == "break":
            return ["break;"]
        if kind == "return":
            v = self.expr(s[1])
            name, t = self.returns[-1]
            if t is None:
                t = (v.type[0], max(32, v.type[1])) if not is_float(v.type) else v.type
                self.returns[-1] = (name, (v.type[0], v.type[1]))
            return [f"{name} = {v.c};"]
        if kind == "do" and s[1][1] == "nop":
            return []
        raise PcodeError(f"statement {kind}")

    def assign(self, s: Node) -> list[str]:
        _, targets, op, right = s
        if targets[0] == ("var", "ROUND_MODE"):
            self.rtz = right == ("var", "ROUND_TOWARD_ZERO")
            return []
        if targets[0] == ("var", "prev_mode"):
            return []
        if right[0] == "call" and right[1] == "CalcDsAddr":
            return []
        v = self.expr(right)
        out = []
        for target in reversed(targets):
            out.extend(self.store(target, op, v))
        return out

    def store(self, target: Node, op: str, v: Value) -> list[str]:
        if op != "=":
            here = self.expr(target)
            a, b, joint = _unify(here, v)
            c = f"({a.c}{op[0]}{b.c})"
            if joint == ("f", 32):
                c = f"fl32({c})"
            v = Value(c, joint) if joint != ("f", 16) else Value(f"rh({c})", joint, f"f2h({c})")
        # {D1.u1, D0.u64} = …
        if target[0] == "cat":
            total = sum(p[2][1] for p in target[1])
            self.serial += 1
            name = f"cat{self.serial}"
            out = [f"{c_type(('u', total))} {name} = {v.c};"]
            at = total
            for p in target[1]:
                at -= p[2][1]
                out.extend(self.store(p, "=", from_bits(f"({name}>>{at})", p[2], 999)))
            return out
        base, t, low, width = self.place(target)
        if base in ("VCC", "EXEC", "D0") and low == "lane":
            self.ctx.writes.add("EXEC_LANE" if base == "EXEC" else "CARRY")
            return [f"{'cout' if base != 'EXEC' else 'xout'} = {v.c};"]
        if base == "MEM":
            if self.ctx.memory is None:
                raise PcodeError("memory")
            tt = t or v.type
            bits = bits_of(to(v, tt) if tt[0] != "b" else v)
            return [f"{self.ctx.memory[1]} = {bits};"]
        if t is not None and is_float(t):
            if not is_float(v.type):
                raise PcodeError("integer into float")
            v = to(v, t)
        elif t is not None and t[0] not in ("b",) and is_float(v.type):
            raise PcodeError("float into integer")
        if base in self.ctx.dest:
            self.ctx.writes.add(base)
            name, size = self.ctx.dest[base]
            if low is None:
                bits = bits_of(
                    v
                    if t is None
                    or is_float(v.type)
                    or (t[1] >= 32 and v.type[1] <= t[1] and t[1] in (32, 64) and v.type[0] != "i")
                    else (from_bits(v.c, t, 999) if not is_float(t) else v)
                )
                return [f"{name} = {bits};"]
            return [self.insert(name, size, low, width, v)]
        if base in self.vars and self.vars[base][1]:
            t = self.vars[base][0]
            return [f"{base}_[{low}] = {to(v, t).c if is_float(t) else v.c};"]
        if low is None:
            if base not in self.vars:
                tt = t if t is not None and (t[1] >= 32 or not is_float(v.type)) else v.type
                if not is_float(tt):
                    tt = ("i" if tt[0] == "i" else "u", max(32, tt[1]))
                self.vars[base] = (tt, 0)
            want = self.vars[base][0]
            if is_float(want):
                return [f"{base}_ = {to(v, want).c};"]
            if is_float(v.type):
                return [f"{base}_ = {bits_of(v)};"]
            return [f"{base}_ = {v.c};"]
        if base not in self.vars:
            self.vars[base] = (("u", self.sliced.get(base, 64)), 0)
        return [self.insert(base + "_", _width(self.vars[base][0]), low, width, v)]

    def insert(self, name: str, size: int, low: str, width: int, v: Value) -> str:
        bits = bits_of(v)
        u = f"u{32 if size <= 32 else 64 if size <= 64 else 128}"
        if width == size:
            return f"{name} = {bits};"
        ones = f"(({u}){(1 << width) - 1:#x}ull)"
        return f"{name} = ({name} & ~({ones}<<{low})) | ((({u}){bits} & {ones})<<{low});"

    def place(self, n: Node) -> tuple[str, Type | None, str | None, int]:
        """(variable, type, low bit or None, width) of an assignment's left side."""
        t: Type | None = None
        if n[0] == "member":
            t = n[2]
            n = n[1]
        if n[0] == "var":
            return n[1], t, None, 0
        if n[0] == "member" and n[1][0] == "var":
            return n[1][1], t, None, 0
        if n[0] == "index":
            inner = n[1]
            if inner[0] == "var" and inner[1] == "MEM":
                return "MEM", t, None, 0
            if inner[0] == "member":
                inner = inner[1]
            if inner[0] == "var":
                if n[2] == ("var", "laneId"):
                    return inner[1], t, "lane", 1
                return inner[1], t, f"({self.expr(n[2]).c})", 1
            if (
                inner[0] == "index"
                and inner[1] == ("var", "VGPR")
                and inner[2] == ("var", "laneId")
            ):
                return "D0", t, None, 0
        if n[0] in ("slice", "part"):
            low, width, backwards = self.span(n)
            inner = n[1]
            if inner[0] == "member":
                inner = inner[1]
            if inner[0] == "index" and inner[1][0] == "index" and inner[1][1] == ("var", "VGPR"):
                inner = ("var", "D0")
            if inner[0] == "var":
                if backwards:
                    raise PcodeError("reversed store")
                return inner[1], t, low, width
        raise PcodeError(f"cannot assign to {n[0]}")


_NAMES = {"?": "tern"}


def _slice_widths(body: Sequence[Node], found: dict[str, int], order: set[str]) -> None:
    """Variables first written by a slice get the width of their highest written bit."""
    for s in body:
        if s[0] == "assign":
            for target in s[1]:
                n = target
                while n[0] in ("member", "index", "slice", "part"):
                    if n[0] == "slice" and n[1][0] in ("var",) and n[2][0] == "num":
                        name = n[1][1]
                        found[name] = max(found.get(name, 32), int(n[2][1]) + 1)
                    n = n[1]
        elif s[0] == "if":
            for _, inner in s[1]:
                _slice_widths(inner, found, order)
            _slice_widths(s[2], found, order)
        elif s[0] == "for":
            _slice_widths(s[4], found, order)


def compile_pcode(text: str, ctx: Context) -> list[str]:
    """C statements with the meaning of `text`. Raises PcodeError where the grammar ends."""
    body = parse(text)
    gen = _Gen(ctx)
    _slice_widths(body, gen.sliced, set())
    try:
        code = gen.block(body)
    except (KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
        raise PcodeError(f"{type(error).__name__}: {error}") from error
    return [*gen.declarations(), *code]
