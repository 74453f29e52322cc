"""CMake files: commands and their arguments with byte spans (tree-sitter)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import tree_sitter_cmake
from tree_sitter import Language, Node, Parser

from hipport.parse.cuda import walk
from hipport.source import Span


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument; `text` is without quotes, `span` is that of `text`, `quoted` says which."""

    text: str
    span: Span
    whole: Span
    quoted: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One command invocation; `name` is in lower case, `span` runs to the closing parenthesis."""

    name: str
    span: Span
    name_span: Span
    arguments: tuple[Argument, ...]

    def after(self, keyword: str) -> tuple[Argument, ...]:
        """The arguments behind a keyword."""
        for i, argument in enumerate(self.arguments):
            if argument.text == keyword and not argument.quoted:
                return self.arguments[i + 1 :]
        return ()


@lru_cache(maxsize=1)
def _language() -> Language:
    return Language(tree_sitter_cmake.language())


def _argument(data: bytes, node: Node) -> Argument:
    whole = Span(node.start_byte, node.end_byte)
    text = data[whole.start : whole.end]
    if text.startswith(b'"') and text.endswith(b'"') and len(text) > 1:
        inner = Span(whole.start + 1, whole.end - 1)
        return Argument(
            data[inner.start : inner.end].decode("utf-8", "replace"), inner, whole, True
        )
    return Argument(text.decode("utf-8", "replace"), whole, whole, False)


_COMMANDS = frozenset({"normal_command", "if_command", "elseif_command", "else_command",
                       "foreach_command", "while_command", "function_command", "macro_command",
                       "block_command"})  # fmt: skip


def commands(data: bytes) -> tuple[list[Command], list[Span]]:
    """All commands in order, and the regions that could not be parsed."""
    tree = Parser(_language()).parse(data)
    found: list[Command] = []
    errors: list[Span] = []
    for node in walk(tree.root_node):
        if node.is_error:
            errors.append(Span(node.start_byte, node.end_byte))
        if node.type not in _COMMANDS:
            continue
        name = node.children[0] if node.children else None
        listed = next((c for c in node.children if c.type == "argument_list"), None)
        if name is None:
            continue
        arguments = tuple(
            _argument(data, c)
            for c in (listed.named_children if listed is not None else ())
            if c.type == "argument"
        )
        found.append(
            Command(
                data[name.start_byte : name.end_byte].decode("utf-8", "replace").lower(),
                Span(node.start_byte, node.end_byte),
                Span(name.start_byte, name.end_byte),
                arguments,
            )
        )
    return found, errors
