"""One parsed source file: lazily lexed and parsed, shared by all checks."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from tree_sitter import Node, Tree

from hipport.parse import cuda
from hipport.parse.tokens import Kind, Token, tokenize
from hipport.source import SourceFile, Span

CUDA_SUFFIXES = frozenset({".cu", ".cuh"})


class Unit:
    """A source file with its tokens and tree, each made at first use."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source

    @property
    def path(self) -> str:
        """The path to show, POSIX style."""
        return self.source.path.as_posix()

    @property
    def data(self) -> bytes:
        """The bytes."""
        return self.source.data

    @property
    def is_cuda(self) -> bool:
        """Whether nvcc takes the file as CUDA by its name."""
        return self.source.path.suffix in CUDA_SUFFIXES

    @cached_property
    def tokens(self) -> list[Token]:
        """All tokens, comments included."""
        return tokenize(self.source.data)

    @cached_property
    def code_tokens(self) -> list[Token]:
        """All tokens but comments."""
        return [t for t in self.tokens if t.kind is not Kind.COMMENT]

    @cached_property
    def _code_starts(self) -> list[int]:
        return [t.start for t in self.code_tokens]

    def token_index(self, offset: int) -> int:
        """Index in `code_tokens` of the token that holds or precedes an offset (-1: none)."""
        return bisect_right(self._code_starts, offset) - 1

    @cached_property
    def identifiers(self) -> frozenset[bytes]:
        """Every identifier that occurs outside comments and literals."""
        return frozenset(t.text for t in self.tokens if t.kind is Kind.IDENT)

    @cached_property
    def tree(self) -> Tree:
        """tree-sitter's tree."""
        return cuda.parse(self.source.data)

    @cached_property
    def nodes(self) -> dict[str, list[Node]]:
        """All nodes of the tree by type, in document order."""
        by_type: dict[str, list[Node]] = {}
        for node in cuda.walk(self.tree.root_node):
            by_type.setdefault(node.type, []).append(node)
        return by_type

    @cached_property
    def error_spans(self) -> list[Span]:
        """Regions that the parser could not understand."""
        return cuda.errors(self.tree)

    def text(self, node: Node | None) -> bytes:
        """A node's text."""
        return self.source.data[node.start_byte : node.end_byte] if node is not None else b""

    def line(self, offset: int) -> int:
        """1-based line of an offset."""
        return self.source.line_col(offset)[0]

    def calls(self, *names: bytes) -> list[Node]:
        """`call_expression` nodes whose callee is one of `names` (template arguments ignored)."""
        wanted = frozenset(names)
        return [
            node for node in self.nodes.get("call_expression", ()) if callee(self, node) in wanted
        ]


def callee(unit: Unit, call: Node) -> bytes:
    """The plain name that a call names: ``f`` in ``f(x)``, ``f<T>(x)``, ``::f(x)``; else empty."""
    function = call.child_by_field_name("function")
    if function is None:
        return b""
    if function.type == "template_function":
        function = function.child_by_field_name("name") or function
    if function.type == "qualified_identifier" and unit.text(function).startswith(b"::"):
        function = function.child_by_field_name("name") or function
        if function.type == "template_function":
            function = function.child_by_field_name("name") or function
    return unit.text(function) if function.type == "identifier" else b""


def arguments(call: Node) -> list[Node]:
    """A call's argument nodes, comments left out."""
    listed = call.child_by_field_name("arguments")
    if listed is None:
        return []
    return [child for child in listed.named_children if child.type != "comment"]
