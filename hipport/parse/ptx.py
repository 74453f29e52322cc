"""Inline assembly: the asm statement, its operands, and PTX instructions in its template."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hipport.parse.calls import matching
from hipport.parse.tokens import Kind, Token
from hipport.parse.unit import Unit
from hipport.source import Span

_ASM = frozenset({b"asm", b"__asm__", b"__asm"})
_QUALIFIERS = frozenset({b"volatile", b"__volatile__", b"__volatile", b"inline", b"goto"})


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of an asm statement: constraint (``=r``, ``+f``, ``n`` …) and C expression."""

    constraint: str
    expression: str
    name: str = ""

    @property
    def is_output(self) -> bool:
        """Whether the statement writes it."""
        return self.constraint[:1] in "=+"

    @property
    def letter(self) -> str:
        """The register class: ``r l f d h n q`` and so on."""
        return self.constraint.lstrip("=+&%")


@dataclass(frozen=True, slots=True)
class AsmStatement:
    """One asm statement; `span` runs from ``asm`` to the closing parenthesis.

    `template` is None where it is not made of literals alone.
    """

    span: Span
    template: str | None
    operands: tuple[Operand, ...]
    has_operand_lists: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction: guard predicate (``p``, ``!p``), dotted opcode, operands as written."""

    opcode: str
    operands: tuple[str, ...]
    guard: str = ""

    @property
    def base(self) -> str:
        """The opcode without its suffixes."""
        return self.opcode.split(".")[0]


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: declared registers by name with their types, and instructions."""

    registers: tuple[tuple[str, str], ...]
    instructions: tuple[Instruction, ...]
    labels: tuple[str, ...]


def statements(unit: Unit) -> Iterator[AsmStatement]:
    """All asm statements of a file, by tokens: also in macro bodies."""
    if unit.identifiers.isdisjoint(_ASM):
        return
    tokens = unit.code_tokens
    for i, token in enumerate(tokens):
        if token.kind is not Kind.IDENT or token.text not in _ASM:
            continue
        at = i + 1
        while at < len(tokens) and tokens[at].text in _QUALIFIERS:
            at += 1
        if at >= len(tokens) or tokens[at].text != b"(":
            continue
        close = matching(tokens, at)
        if close is not None:
            yield _statement(unit, tokens, i, at, close)


def _statement(
    unit: Unit, tokens: list[Token], first: int, opening: int, close: int
) -> AsmStatement:
    sections: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[opening + 1 : close]:
        if token.kind is Kind.PUNCT and token.text in (b"(", b"[", b"{"):
            depth += 1
        elif token.kind is Kind.PUNCT and token.text in (b")", b"]", b"}"):
            depth -= 1
        if depth == 0 and token.text in (b":", b"::"):
            sections.extend([] for _ in token.text)
            continue
        sections[-1].append(token)
    literal = [t for t in sections[0] if t.text != b"\\"]
    pure = all(t.kind is Kind.STRING for t in literal) and bool(literal)
    template = "".join(_unquote(t.text) for t in literal) if pure else None
    operands: list[Operand] = []
    for section in sections[1:3]:
        operands.extend(_operands(unit, section))
    return AsmStatement(
        Span(tokens[first].start, tokens[close].end), template, tuple(operands), len(sections) > 1
    )


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "'": "'", "0": "\0"}


def _unquote(text: bytes) -> str:
    decoded = text.decode("utf-8", "replace")
    raw = re.fullmatch(r'(?:u8|[uUL])?R"([^()\\\s]*)\((.*)\)\1"', decoded, re.S)
    if raw is not None:
        return raw.group(2)
    inner = decoded[decoded.index('"') + 1 :].removesuffix('"')
    inner = re.sub(r"\\\r?\n", "", inner)
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group(1)), inner)


def _operands(unit: Unit, tokens: list[Token]) -> Iterator[Operand]:
    at = 0
    while at < len(tokens):
        name = ""
        if tokens[at].text == b"[" and at + 2 < len(tokens):
            name = tokens[at + 1].text.decode("utf-8", "replace")
            at += 3
        if at + 1 >= len(tokens) or tokens[at].kind is not Kind.STRING:
            at += 1
            continue
        constraint = _unquote(tokens[at].text)
        if tokens[at + 1].text != b"(":
            at += 1
            continue
        close = matching(tokens, at + 1)
        if close is None:
            return
        inside = unit.data[tokens[at + 1].end : tokens[close].start]
        yield Operand(constraint, inside.decode("utf-8", "replace").strip(), name)
        at = close + 2


_LINE_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_REGISTER = re.compile(r"^\.reg\s*\.(\w+)\s+(.+)$", re.S)
_LABEL = re.compile(r"^([A-Za-z_$%][\w$%]*)\s*:\s*(.*)$", re.S)
_GUARD = re.compile(r"^@(!?)\s*([%\w$]+)\s+(.*)$", re.S)


def parse(text: str, has_operand_lists: bool) -> Template:
    """Parse a template. ``%%`` stands for ``%`` where the statement has operand lists."""
    if has_operand_lists:
        text = re.sub(r"%%(?!=)", "\x01", text)
        text = re.sub(r"%(?=[a-z])(\w+)", "\x01\\1", text) if "\x01" not in text else text
    else:
        text = re.sub(r"%+(?=[A-Za-z_])", "\x01", text)
    registers: list[tuple[str, str]] = []
    instructions: list[Instruction] = []
    labels: list[str] = []
    text = _LINE_COMMENT.sub(" ", text)
    for piece in _split(text):
        part = piece.strip()
        label = _LABEL.match(part)
        while label is not None and not part.startswith("."):
            labels.append(label.group(1))
            part = label.group(2).strip()
            label = _LABEL.match(part)
        if not part:
            continue
        register = _REGISTER.match(part)
        if register is not None:
            kind = register.group(1)
            for name in register.group(2).split(","):
                counted = re.fullmatch(r"(.+)<(\d+)>", name.strip())
                if counted is not None:
                    registers.extend((f"{counted[1]}{i}", kind) for i in range(int(counted[2])))
                else:
                    registers.append((name.strip(), kind))
            continue
        guard = _GUARD.match(part)
        predicate = ""
        if guard is not None:
            predicate, part = guard.group(1) + guard.group(2), guard.group(3).strip()
        opcode, _, rest = part.partition(" ") if " " in part else (part, "", "")
        opcode, _, more = opcode.partition("\t")
        instructions.append(
            Instruction(opcode.strip(), tuple(_arguments((more + " " + rest).strip())), predicate)
        )
    return Template(tuple(registers), tuple(instructions), tuple(labels))


def _split(text: str) -> Iterator[str]:
    """Instructions: at semicolons; braces of scopes fall away, braces of vectors stay."""
    for piece in re.split(r";|\n(?=\s*[}{]\s*$)", text):
        part = piece.strip()
        while part[:1] in ("{", "}"):
            if part[0] == "{" and re.match(r"\{[^{};]*\}\s*,", part):
                break
            part = part[1:].strip()
        if part.endswith(("}", "{")) and part.count("{") != part.count("}"):
            part = part[:-1].strip()
        if part:
            yield part


def _arguments(text: str) -> Iterator[str]:
    depth, current = 0, ""
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            yield current.strip()
            current = ""
        else:
            current += character
    if current.strip():
        yield current.strip()
