"""Guards in Python that turn features off, or on, on ROCm."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.findings import Finding
from hipport.parse.python import PyFile
from hipport.parse.unit import Unit
from hipport.source import Span


def _decides(node: Node) -> bool:
    """Whether a value takes part in a decision or comparison."""
    parent: Node | None = node.parent
    while parent is not None:
        if parent.type in ("comparison_operator", "if_statement", "conditional_expression",
                           "boolean_operator", "not_operator", "assert_statement",
                           "while_statement", "elif_clause"):  # fmt: skip
            return True
        if parent.type in ("block", "module", "function_definition", "argument_list"):
            return False
        parent = parent.parent
    return False


def guard_findings(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding]:
    """``torch.version.cuda`` and capability tests."""
    for node in file.nodes.get("attribute", ()):
        text = file.text(node)
        if text.endswith("torch.version.cuda") and _decides(node):
            yield context.finding("torch-version-cuda", unit, Span(node.start_byte, node.end_byte))
    for node in file.nodes.get("call", ()):
        name = file.text(node.child_by_field_name("function"))
        if name.endswith("get_device_capability"):
            yield context.finding(
                "torch-capability",
                unit,
                Span(node.start_byte, node.end_byte),
                name=name,
            )
        elif name in ("cuda.shfl_sync", "cuda.ballot_sync", "cuda.syncwarp", "cuda.laneid"):
            yield context.finding(
                "numba-cuda", unit, Span(node.start_byte, node.end_byte), name=name
            )
