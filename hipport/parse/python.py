"""Python files: string literals, calls and names with byte spans (tree-sitter)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import tree_sitter_python
from tree_sitter import Language, Node, Parser

from hipport.parse.cuda import walk
from hipport.source import Span


@lru_cache(maxsize=1)
def _language() -> Language:
    return Language(tree_sitter_python.language())


_ESCAPES = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"\\": b"\\", b'"': b'"', b"'": b"'", b"0": b"\0",
    b"\n": b"",
}  # fmt: skip


@dataclass(frozen=True)
class PyString:
    """A string literal: its content, and for each content byte the offset in the file.

    `offsets` has one more entry than `content` has bytes. `formatted` says that it is an f-string.
    """

    span: Span
    content: bytes
    offsets: tuple[int, ...]
    formatted: bool
    raw: bool


class PyFile:
    """One parsed Python file."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.root = Parser(_language()).parse(data).root_node

    @cached_property
    def nodes(self) -> dict[str, list[Node]]:
        """All nodes by type, in document order."""
        found: dict[str, list[Node]] = {}
        for node in walk(self.root):
            found.setdefault(node.type, []).append(node)
        return found

    def text(self, node: Node | None) -> str:
        """A node's text."""
        if node is None:
            return ""
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    @cached_property
    def strings(self) -> list[PyString]:
        """All string literals, parts of implicit concatenations one by one."""
        return [self._string(node) for node in self.nodes.get("string", ())]

    def _string(self, node: Node) -> PyString:
        start = node.children[0] if node.children else node
        prefix = self.data[start.start_byte : start.end_byte].lower()
        raw = b"r" in prefix
        inside = Span(start.end_byte, node.children[-1].start_byte if node.children else 0)
        content = bytearray()
        offsets: list[int] = []
        at = inside.start
        while at < inside.end:
            byte = self.data[at : at + 1]
            if byte == b"\\" and not raw and at + 1 < inside.end:
                escape = self.data[at + 1 : at + 2]
                plain = _ESCAPES.get(escape)
                if plain is not None:
                    content += plain
                    offsets.extend([at] * len(plain))
                    at += 2
                    continue
            content += byte
            offsets.append(at)
            at += 1
        offsets.append(inside.end)
        return PyString(
            Span(node.start_byte, node.end_byte),
            bytes(content),
            tuple(offsets),
            b"f" in prefix,
            raw,
        )
