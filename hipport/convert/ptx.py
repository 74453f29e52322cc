"""PTX templates to HIP statements."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from hipport.parse.ptx import AsmStatement, Instruction, Operand, Template, parse
from hipport.rules.ptx import PtxRule, load

_TYPES = {
    "r": "unsigned int", "l": "unsigned long long", "f": "float", "d": "double",
    "h": "unsigned short", "q": "unsigned __int128",
}  # fmt: skip
_PTX_TYPES = {
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char", "u16": "unsigned short",
    "s16": "short", "b16": "unsigned short", "u32": "unsigned int", "s32": "int",
    "b32": "unsigned int", "u64": "unsigned long long", "s64": "long long",
    "b64": "unsigned long long", "f32": "float", "f64": "double", "pred": "bool",
}  # fmt: skip
_SCOPE = {
    "cta": "__HIP_MEMORY_SCOPE_WORKGROUP", "gpu": "__HIP_MEMORY_SCOPE_AGENT",
    "sys": "__HIP_MEMORY_SCOPE_SYSTEM",
}  # fmt: skip
_ORDER = {"acquire": "__ATOMIC_ACQUIRE", "relaxed": "__ATOMIC_RELAXED",
          "release": "__ATOMIC_RELEASE"}  # fmt: skip
_COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=",
    "hi": ">", "hs": ">=",
}  # fmt: skip
_BITS = {
    ("float", "unsigned int"): "__float_as_uint", ("float", "int"): "__float_as_int",
    ("unsigned int", "float"): "__uint_as_float", ("double", "long long"): "__double_as_longlong",
    ("double", "unsigned long long"): "__double_as_longlong",
    ("unsigned long long", "double"): "__longlong_as_double",
}  # fmt: skip
_SPECIAL = "\x01"
_OWN = "hipport_"
"""How temporaries begin: nothing in the operands' expressions may have such a name."""


@dataclass(frozen=True, slots=True)
class Translation:
    """What became of a template.

    `text` is the HIP code (None where something could not be translated), `classes` maps slugs to
    the instructions that fall into them, `failed` names those left over.
    """

    text: str | None
    classes: tuple[tuple[str, tuple[str, ...]], ...]
    failed: tuple[str, ...]
    needs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Value:
    """An operand in an expression; ``{a:u32}`` casts it where its type is another one.

    `kind` is the type of the register that holds it. Of a C expression that merely goes into such
    a register the sign is not known (`exact` is false), so a cast is always written.
    """

    def __init__(self, text: str, kind: str, *, exact: bool = True) -> None:
        self.text = text
        self.kind = kind
        self.exact = exact

    @property
    def floats(self) -> bool:
        """Whether the register is a floating-point one."""
        return self.kind in ("float", "double")

    @property
    def atom(self) -> str:
        """The text, in parentheses where it is more than a word or call."""
        if re.fullmatch(r"-?[\w.]+|[\w.:]+\([^()]*\)|\w[\w.]*(?:\[[^\[\]]*\])*", self.text):
            return self.text
        return f"({self.text})"

    def __format__(self, spec: str) -> str:
        wanted = _PTX_TYPES.get(spec)
        if wanted is None or (wanted == self.kind and (self.exact or self.floats)):
            return self.atom
        return self.bits(wanted) or f"static_cast<{wanted}>({self.text})"

    def bits(self, wanted: str) -> str | None:
        """The same bits as another type, where one is floating-point and the other is not."""
        function = _BITS.get((self.kind, wanted))
        return f"{function}({self.text})" if function is not None else None


@dataclass
class _Translator:
    template: Template
    operands: tuple[Operand, ...]
    use_temporaries: bool
    needs: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    classes: dict[str, list[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.registers = {
            name: (_safe(name), _PTX_TYPES.get(kind, "unsigned int"))
            for name, kind in self.template.registers
        }

    def value(self, text: str) -> _Value | None:
        """The C expression of a source operand."""
        negated = text.startswith("!")
        text = text[1:].strip() if negated else text
        found = self._plain(text)
        if found is not None and negated:
            return _Value(f"!{found.atom}", "bool")
        return found

    def _plain(self, text: str) -> _Value | None:
        place = re.fullmatch(r"%(\d+)|%\[(\w+)\]", text)
        if place is not None:
            operand = self._operand(place)
            if operand is None:
                return None
            index, item = operand
            kind = _TYPES.get(item.letter, "int")
            if item.letter in ("n", "i"):
                return _Value(item.expression, "int")
            if self.use_temporaries:
                return _Value(f"{_OWN}p{index}", kind)
            if _is_literal(item.expression) is not None:
                return _Value(item.expression, "int")
            return _Value(item.expression, kind, exact=False)
        known = self.registers.get(text)
        if known is not None:
            return _Value(*known)
        if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", text):
            return _Value(_literal(text), "int")
        if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", text):
            return _Value(f"__uint_as_float(0x{text[2:]}u)", "float")
        if re.fullmatch(r"-?\d+\.\d+(?:[eE][-+]?\d+)?", text):
            return _Value(text + "f", "float")
        return None

    def _operand(self, place: re.Match[str]) -> tuple[int, Operand] | None:
        if place.group(1) is not None:
            index = int(place.group(1))
            return (index, self.operands[index]) if index < len(self.operands) else None
        for index, item in enumerate(self.operands):
            if item.name == place.group(2):
                return index, item
        return None

    def target(self, text: str) -> _Value | None:
        """The variable that a destination operand writes."""
        if text == "_":
            return None
        found = self._plain(text)
        return found if found is not None and not text[:1].isdigit() else None

    def address(self, text: str) -> str | None:
        """The C expression of ``[a]`` or ``[a+16]``, as an address."""
        match = re.fullmatch(r"\[\s*([^\[\]+]+?)\s*(?:\+\s*(-?\w+))?\s*\]", text)
        if match is None:
            return None
        base = self.value(match.group(1))
        if base is None or base.kind != "unsigned long long":
            return None
        offset = match.group(2)
        if not offset or offset == "0":
            return base.text
        return f"reinterpret_cast<char*>({base.text}) + {offset}"

    def translate(self, instruction: Instruction) -> str | None:
        """One statement without its semicolon; None where there is no rule."""
        shown = instruction.opcode
        lop = self._lop3(instruction)
        special = self._special(instruction)
        for rule in load():
            if not rule.match.fullmatch(instruction.opcode):
                continue
            if (rule.register is not None) != (special is not None and not rule.flag_only):
                continue
            if lop is None and rule.flag_only:
                slug = "ptx-special-register" if special is not None else rule.slug
                self._class(slug, shown)
                return None
            text = lop if lop is not None else self._apply(rule, instruction, special)
            if text is None:
                continue
            self._class("ptx-bitfield" if lop is not None else rule.slug, shown)
            if rule.needs:
                self.needs.add(rule.needs)
            if rule.note:
                self.notes.append(f"{shown}: {rule.note}")
            return text
        if lop is not None:
            self._class("ptx-bitfield", shown)
            return lop
        carried = self._predicate(instruction) or self._pack(instruction)
        if carried is not None:
            self._class("inline-ptx", shown)
            return carried
        self._class("ptx-special-register" if special is not None else "inline-ptx", shown)
        return None

    def _class(self, slug: str, shown: str) -> None:
        self.classes.setdefault(slug, []).append(shown)

    def _special(self, instruction: Instruction) -> str | None:
        for operand in instruction.operands[1:]:
            if operand.startswith(_SPECIAL):
                return operand[1:]
        return None

    def _apply(self, rule: PtxRule, instruction: Instruction, special: str | None) -> str | None:
        operands = list(instruction.operands)
        dest: _Value | None = None
        if rule.has_dest:
            if not operands:
                return None
            dest = self.target(operands.pop(0))
            if dest is None:
                return None
        named = dict(rule.match.fullmatch(instruction.opcode).groupdict())  # type: ignore[union-attr]
        if rule.register is not None:
            match = rule.register.fullmatch(special or "")
            if match is None:
                return None
            named.update(match.groupdict())
            return self._assign(dest, rule.expr.format(**named))
        if rule.access:
            return self._memory(rule, dest, operands, named)
        if len(operands) != rule.args:
            return None
        values = [self.value(o) for o in operands]
        if any(v is None for v in values) or not _holds(rule.when, operands, values):
            return None
        present = [v for v in values if v is not None]
        if instruction.opcode.startswith("mov.") and dest is not None:
            return self._move(dest, present[0])
        if not _agree(instruction.opcode, dest, present):
            return None
        fields = dict(zip("abcd", values, strict=False))
        if rule.stmt:
            return rule.stmt.format(**fields, **named)
        return self._assign(dest, rule.expr.format(**fields, **named))

    def _assign(self, dest: _Value | None, expression: str) -> str | None:
        if dest is None:
            return None
        whole = re.fullmatch(r"\((.*)\)", expression)
        if whole is not None and _balanced(whole.group(1)):
            expression = whole.group(1)
        return f"{dest.text} = {expression}"

    def _move(self, dest: _Value, value: _Value) -> str | None:
        """``mov`` copies bits: between register classes it is no conversion."""
        if value.kind == "int" or dest.floats == value.floats:
            return self._assign(dest, value.atom)
        whole = "unsigned long long" if dest.kind == "long long" else dest.kind
        text = value.bits("unsigned int" if whole == "int" else whole)
        return self._assign(dest, text) if text is not None else None

    def _memory(
        self, rule: PtxRule, dest: _Value | None, operands: list[str], named: dict[str, str]
    ) -> str | None:
        if rule.access == "sleep":
            value = self.value(operands[0]) if operands else None
            number = _is_literal(value.text) if value is not None else None
            if number is None:
                return None
            return f"__builtin_amdgcn_s_sleep({min(127, max(1, round(number / 32)))})"
        if len(operands) != rule.args:
            return None
        address = self.address(operands[0])
        if address is None:
            return None
        if rule.access == "prefetch":
            return f"__builtin_prefetch(reinterpret_cast<const void*>({address}))"
        kind = _PTX_TYPES[named["t"]]
        action, _, how = rule.access.partition(":")
        register = dest if action == "load" else self.value(operands[1])
        if register is not None and action != "atomic" and register.kind != "int":
            # Memory is accessed as what the register is: bits are copied, not converted.
            wide = named["t"].endswith("64")
            if register.floats:
                if register.kind != ("double" if wide else "float") or named["t"][-2:] not in (
                    "32",
                    "64",
                ):
                    return None
                kind = register.kind
            elif kind in ("float", "double"):
                kind = "unsigned long long" if wide else "unsigned int"
        scope = _SCOPE.get(named.get("scope") or "sys", _SCOPE["sys"])
        if action == "load":
            pointer = f"reinterpret_cast<const {kind}*>({address})"
            if how == "plain":
                return self._assign(dest, f"*{pointer}")
            if how == "nontemporal":
                return self._assign(dest, f"__builtin_nontemporal_load({pointer})")
            pointer = f"reinterpret_cast<{kind}*>({address})"
            return self._assign(dest, f"__hip_atomic_load({pointer}, {_ORDER[how]}, {scope})")
        value = self.value(operands[1])
        if value is None:
            return None
        pointer = f"reinterpret_cast<{kind}*>({address})"
        if action == "atomic":
            return f"{how}({pointer}, {value:{named['t']}})"
        if how == "plain":
            return f"*{pointer} = {value.text}"
        typed = value.text if value.kind == kind else f"static_cast<{kind}>({value.text})"
        if how == "nontemporal":
            return f"__builtin_nontemporal_store({typed}, {pointer})"
        return f"__hip_atomic_store({pointer}, {typed}, {_ORDER[how]}, {scope})"

    def _lop3(self, instruction: Instruction) -> str | None:
        if instruction.opcode != "lop3.b32" or len(instruction.operands) != 5:
            return None
        dest = self.target(instruction.operands[0])
        values = [self.value(o) for o in instruction.operands[1:4]]
        table = self.value(instruction.operands[4])
        number = _is_literal(table.text) if table is not None else None
        if dest is None or number is None or not 0 <= number < 256:
            return None
        atoms = [f"{v:u32}" if v.kind == "int" else v.atom for v in values if v is not None]
        return f"{dest.text} = {lop3_expression(number, *atoms)}" if len(atoms) == 3 else None

    def _predicate(self, instruction: Instruction) -> str | None:
        compare = re.fullmatch(r"setp\.(\w+)\.([usfb](?:32|64))", instruction.opcode)
        if compare is not None and len(instruction.operands) == 3:
            operator = _COMPARE.get(compare.group(1))
            dest = self.target(instruction.operands[0])
            left, right = (self.value(o) for o in instruction.operands[1:])
            if operator is None or dest is None or left is None or right is None:
                return None
            kind = compare.group(2)
            return f"{dest.text} = {left:{kind}} {operator} {right:{kind}}"
        if re.fullmatch(r"selp\.[usfb](?:32|64)", instruction.opcode) and (
            len(instruction.operands) == 4
        ):
            dest = self.target(instruction.operands[0])
            first, second, condition = (self.value(o) for o in instruction.operands[1:])
            if dest is None or first is None or second is None or condition is None:
                return None
            if any(v.kind != "int" and v.floats != dest.floats for v in (first, second)):
                return None
            return f"{dest.text} = {condition.atom} ? {first.atom} : {second.atom}"
        vote = re.fullmatch(r"vote(?:\.sync)?\.ballot\.b32", instruction.opcode)
        if vote is not None and len(instruction.operands) in (2, 3):
            dest = self.target(instruction.operands[0])
            condition = self.value(instruction.operands[1])
            if dest is None or condition is None:
                return None
            text = f"static_cast<unsigned int>(__ballot({condition.text}) >> (__lane_id() & 32))"
            if len(instruction.operands) == 3:
                mask = self.value(instruction.operands[2])
                if mask is None:
                    return None
                if _is_literal(mask.text) not in (-1, 0xFFFFFFFF):
                    text += f" & {mask:u32}"
            return f"{dest.text} = {text}"
        return None

    def _pack(self, instruction: Instruction) -> str | None:
        if instruction.opcode not in ("mov.b64", "mov.b32") or len(instruction.operands) != 2:
            return None
        wide = instruction.opcode == "mov.b64"
        bits, half = ("32", "unsigned int") if wide else ("16", "unsigned short")
        whole = "unsigned long long" if wide else "unsigned int"
        first, second = instruction.operands
        pair = re.fullmatch(r"\{\s*([^,]+?)\s*,\s*([^,]+?)\s*\}", second)
        if pair is not None:
            dest = self.target(first)
            low, high = self.value(pair.group(1)), self.value(pair.group(2))
            if dest is None or low is None or high is None or "float" in (low.kind, high.kind):
                return None
            return (
                f"{dest.text} = static_cast<{whole}>({high:u32}) << {bits} | {low:u32}"
                if wide
                else f"{dest.text} = static_cast<{whole}>({high.atom}) << {bits} | {low.atom}"
            )
        pair = re.fullmatch(r"\{\s*([^,]+?)\s*,\s*([^,]+?)\s*\}", first)
        if pair is None:
            return None
        low, high = self.target(pair.group(1)), self.target(pair.group(2))
        value = self.value(second)
        if low is None or high is None or value is None or "float" in (low.kind, high.kind):
            return None
        return (
            f"{low.text} = static_cast<{half}>({value.text}), "
            f"{high.text} = static_cast<{half}>({value.atom} >> {bits})"
        )


def _agree(opcode: str, dest: _Value | None, values: list[_Value]) -> bool:
    """Whether operands are in registers of the class that the opcode computes in.

    PTX registers are bits: ``add.f32`` on ``.b32`` registers adds floats, which plain ``+`` on
    integers does not.
    """
    types = [t for t in re.findall(r"\.([usbf]\d+)(?=\.|$)", opcode) if t in _PTX_TYPES]
    if not types:
        return True
    if opcode.startswith("cvt.") and len(types) < 2:
        return True
    if dest is not None and dest.floats != types[0].startswith("f"):
        return False
    return all(v.kind in ("int", "bool") or v.floats == types[-1].startswith("f") for v in values)


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _safe(name: str) -> str:
    word = re.sub(r"\W", "_", name.lstrip("%"))
    return f"{_OWN}r_{word}"


def _literal(text: str) -> str:
    return text.removesuffix("U") + ("u" if text.endswith("U") else "")


def _is_literal(text: str) -> int | None:
    match = re.fullmatch(r"\s*(-?(?:0[xX][0-9a-fA-F]+|\d+))[uUlL]*\s*", text)
    return int(match.group(1), 0) if match is not None else None


def _holds(when: str, operands: list[str], values: list[_Value | None]) -> bool:
    """Whether a rule's condition on its operands is met."""
    numbers = [_is_literal(v.text) if v is not None else None for v in values]
    if not when:
        return True
    if when == "field":
        place, length = numbers[1], numbers[2]
        return (
            place is not None
            and length is not None
            and (0 <= place <= 31 and 1 <= length <= 31 and place + length <= 32)
        )
    if when == "plain-selector":
        return numbers[2] is not None and not numbers[2] & 0x8888
    if when == "full-segment":
        return numbers[2] in (31, 0x1F)
    if when == "zero-segment":
        return numbers[2] == 0
    if when == "barrier-zero":
        return numbers[0] == 0
    if when == "literal":
        return numbers[0] is not None
    return False


_A, _B, _C = 0xF0, 0xCC, 0xAA


@lru_cache(maxsize=1)
def _lop3_forms() -> dict[int, tuple[str, int]]:
    """A short expression for each of the 256 functions of three inputs, and its precedence.

    Precedence: 0 an atom or negation, 1 ``&``, 2 ``^``, 3 ``|``. Found by building larger
    expressions of smaller ones until all tables are reached.
    """
    levels: list[dict[int, tuple[str, int]]] = [{_A: ("{a}", 0), _B: ("{b}", 0), _C: ("{c}", 0)}]
    known = dict(levels[0])
    known[0], known[255] = ("0u", 0), ("~0u", 0)
    rank = {"&": 1, "^": 2, "|": 3}
    cost = 1
    while len(known) < 256 and cost < 12:
        fresh: dict[int, tuple[str, int]] = {}
        for table, (text, precedence) in levels[cost - 1].items():
            inverse = ~table & 255
            if inverse not in known and inverse not in fresh:
                fresh[inverse] = ("~" + (text if precedence == 0 else f"({text})"), 0)
        for left_cost in range(cost):
            right_cost = cost - 1 - left_cost
            if right_cost > left_cost:
                continue
            for t1, (x1, p1) in levels[left_cost].items():
                for t2, (x2, p2) in levels[right_cost].items():
                    for operator, result in (("&", t1 & t2), ("|", t1 | t2), ("^", t1 ^ t2)):
                        if result in known or result in fresh:
                            continue
                        one = x1 if p1 in (0, rank[operator]) else f"({x1})"
                        two = x2 if p2 in (0, rank[operator]) else f"({x2})"
                        fresh[result] = (f"{one} {operator} {two}", rank[operator])
        levels.append(fresh)
        known.update(fresh)
        cost += 1
    return known


def lop3_expression(table: int, a: str, b: str, c: str) -> str:
    """The Boolean expression of a ``lop3`` table over three operands (PTX ISA, lop3)."""
    return _lop3_forms()[table][0].format(a=a, b=b, c=c)


def _carry(template: Template, translator: _Translator) -> list[str] | None:
    """Statements for a template that is one closed chain of 32-bit carries; None otherwise."""
    lines = [f"unsigned long long {_OWN}wide = 0", f"unsigned int {_OWN}carry = 0"]
    started = False
    for instruction in template.instructions:
        match = re.fullmatch(
            r"(add|sub|mad\.lo|mad\.hi|addc|subc|madc\.lo|madc\.hi)(\.cc)?\.[us]32",
            instruction.opcode,
        )
        if match is None or instruction.guard:
            return None
        base, sets = match.group(1), match.group(2) is not None
        reads = base.startswith(("addc", "subc", "madc"))
        if reads and not started:
            return None
        started = started or sets
        dest = translator.target(instruction.operands[0])
        values = [translator.value(o) for o in instruction.operands[1:]]
        if dest is None or any(v is None for v in values):
            return None
        parts = [f"{v:u32}" for v in values if v is not None]
        carry = f" + {_OWN}carry" if reads else ""
        if base.startswith("mad") and len(parts) == 3:
            product = (
                f"static_cast<unsigned long long>({parts[0]} * {parts[1]})"
                if "lo" in base
                else f"static_cast<unsigned long long>(__umulhi({parts[0]}, {parts[1]}))"
            )
            lines.append(f"{_OWN}wide = {product} + {parts[2]}{carry}")
        elif len(parts) == 2:
            operator = "-" if base.startswith("sub") else "+"
            borrow = carry.replace("+", "-") if operator == "-" else carry
            lines.append(
                f"{_OWN}wide = static_cast<unsigned long long>({parts[0]}) "
                f"{operator} {parts[1]}{borrow}"
            )
        else:
            return None
        if sets:
            lines.append(f"{_OWN}carry = static_cast<unsigned int>({_OWN}wide >> 32) & 1")
        lines.append(f"{dest.text} = static_cast<unsigned int>({_OWN}wide)")
    if not template.instructions or ".cc" in template.instructions[-1].opcode:
        return None
    return lines


def translate(statement: AsmStatement) -> Translation:
    """Translate one asm statement of PTX."""
    if statement.template is None:
        return Translation(None, (("inline-ptx", ("a template built by macros",)),), ("?",))
    template = parse(statement.template, statement.has_operand_lists)
    instructions = template.instructions
    if statement.template.count("{") != statement.template.count("}"):
        # A scope that the next statement goes on with: registers live in both.
        names = tuple(i.opcode for i in instructions) or ("{",)
        return Translation(None, (("inline-ptx", names),), names)
    if any(_OWN in operand.expression for operand in statement.operands):
        names = tuple(i.opcode for i in instructions)
        return Translation(None, (("inline-ptx", names),), names)
    single = len(instructions) == 1 and not template.registers and not instructions[0].guard
    translator = _Translator(template, statement.operands, not single)
    lines: list[str] = []
    chained = any(
        re.search(r"(?:addc|subc|madc|\.cc)", i.opcode.split(".")[0] + "." + i.opcode)
        for i in instructions
    )
    chain = _carry(template, translator) if chained else None
    if chain is not None:
        lines = chain
        translator._class("ptx-carry-chain", instructions[0].opcode)
    else:
        for instruction in instructions:
            text = None if template.labels else translator.translate(instruction)
            if template.labels:
                translator._class("inline-ptx", instruction.opcode)
            if text is None:
                translator.failed.append(instruction.opcode)
                continue
            if instruction.guard:
                condition = translator.value(instruction.guard)
                if condition is None:
                    translator.failed.append(instruction.opcode)
                    continue
                text = f"if ({condition.text}) {text}"
            lines.append(text)
    classes = tuple((slug, tuple(names)) for slug, names in translator.classes.items())
    if translator.failed:
        return Translation(None, classes, tuple(translator.failed))
    text = lines[0] if single and len(lines) == 1 else _block(statement, template, lines)
    return Translation(text, classes, (), tuple(sorted(translator.needs)), tuple(translator.notes))


def _block(statement: AsmStatement, template: Template, lines: list[str]) -> str:
    """A braced block: inputs are read first and outputs written last, as asm does."""
    parts = []
    for index, item in enumerate(statement.operands):
        kind = _TYPES.get(item.letter)
        if kind is None:
            continue
        if item.constraint.startswith("="):
            parts.append(f"{kind} {_OWN}p{index}")
        elif item.constraint.startswith("+"):
            parts.append(f"{kind} {_OWN}p{index} = {item.expression}")
        else:
            # An address may be a pointer, which converts to a number by a C cast alone.
            cast = f"({kind})" if item.letter == "l" else ""
            value = f"({item.expression})" if cast else item.expression
            parts.append(f"const {kind} {_OWN}p{index} = {cast}{value}")
    parts.extend(
        f"{_PTX_TYPES.get(kind, 'unsigned int')} {_safe(name)}" for name, kind in template.registers
    )
    parts.extend(lines)
    parts.extend(
        f"{item.expression} = {_OWN}p{index}"
        for index, item in enumerate(statement.operands)
        if item.is_output and item.letter in _TYPES
    )
    # One statement, so that an `if` around the asm keeps its `else`.
    return "do { " + " ".join(part + ";" for part in parts) + " } while (false)"
