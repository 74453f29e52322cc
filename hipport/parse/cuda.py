"""tree-sitter's view of CUDA and C++ sources."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser, Tree

from hipport.source import Span


@lru_cache(maxsize=1)
def _language() -> Language:
    return Language(tree_sitter_cuda.language())


def parse(data: bytes) -> Tree:
    """Parse C, C++ or CUDA; the grammar is a superset of all three. Never fails: see `errors`."""
    return Parser(_language()).parse(data)


def walk(node: Node) -> Iterator[Node]:
    """All nodes below and including `node`, in document order, without recursion."""
    cursor = node.walk()
    while True:
        current = cursor.node
        if current is not None:
            yield current
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def errors(tree: Tree) -> list[Span]:
    """The regions that the grammar could not make sense of, outermost first, disjoint."""
    found: list[Span] = []
    if not tree.root_node.has_error:
        return found
    cursor = tree.root_node.walk()
    while True:
        node = cursor.node
        descend = False
        if node is not None:
            if node.is_error or node.is_missing:
                found.append(Span(node.start_byte, node.end_byte))
            else:
                descend = node.has_error
        if descend and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found


def span(node: Node) -> Span:
    """A node's bytes."""
    return Span(node.start_byte, node.end_byte)


def text(node: Node | None) -> bytes:
    """A node's text, empty for no node."""
    return (node.text or b"") if node is not None else b""
