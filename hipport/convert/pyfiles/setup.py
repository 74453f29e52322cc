"""setup.py of PyTorch extensions: nvcc flags, architecture lists, the toolkit's home."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.convert.buildfiles.nvcc_flags import translate
from hipport.findings import Finding
from hipport.parse.python import PyFile
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Safety, Span


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


def setup_changes(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding]:
    """Findings on extension builds; torch's own names stay."""
    yield from _flags(unit, context, file)
    yield from _arch_list(unit, context, file)
    yield from _home(unit, context, file)


def _flags(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding]:
    """Lists of strings under a key ``nvcc``, or in a variable named for it."""
    for pair in file.nodes.get("pair", ()):
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        if file.text(key).strip("\"'") == "nvcc" and value is not None and value.type == "list":
            yield from _list(unit, context, file, value)
    for assignment in file.nodes.get("assignment", ()):
        left, right = (assignment.child_by_field_name(n) for n in ("left", "right"))
        if right is not None and right.type == "list" and "nvcc" in file.text(left).lower():
            yield from _list(unit, context, file, right)
    for keyword in file.nodes.get("keyword_argument", ()):
        key, value = (keyword.child_by_field_name(n) for n in ("name", "value"))
        if file.text(key) == "extra_cuda_cflags" and value is not None and value.type == "list":
            yield from _list(unit, context, file, value)


def _list(unit: Unit, context: Context, file: PyFile, node: Node) -> Iterator[Finding]:
    items = [c for c in node.named_children if c.type == "string"]
    words = [file.text(c).strip("rfbu").strip("\"'") for c in items]
    bad = [item for item in translate(words) if item.changed]
    if not bad:
        return
    edits: list[Edit] = []
    for item in bad:
        first = items[item.first]
        last = items[item.first + item.count - 1]
        quote = file.text(first)[-1]
        if item.words:
            new = ", ".join(f"{quote}{word}{quote}" for word in item.words)
            edits.append(Edit.replace(first.start_byte, last.end_byte, new.encode()))
            continue
        start, end = first.start_byte, last.end_byte
        after = unit.data[end:]
        gap = len(after) - len(after.lstrip(b" \t\r\n"))
        if after.lstrip(b" \t\r\n").startswith(b","):
            end += gap + 1
            rest = unit.data[end:]
            end += len(rest) - len(rest.lstrip(b" \t\r\n"))
        edits.append(Edit.replace(start, end, b""))
    new_list = _edited(unit.data, node, edits)
    condition = Change(
        (
            Edit.replace(
                node.start_byte,
                node.end_byte,
                b"("
                + new_list
                + b" if torch.version.hip else "
                + unit.data[node.start_byte : node.end_byte]
                + b")",
            ),
            *_import_torch(unit, file),
        ),
        Safety.AUTO,
        10,
        label="torch-extension-flags",
    )
    if _is_split(unit, node):
        return
    names = ", ".join(item.text for item in bad[:4])
    yield context.finding(
        "torch-extension-flags", unit, _span(items[bad[0].first]), change=condition, names=names
    )


def _is_split(unit: Unit, node: Node) -> bool:
    """Whether a list stands in a choice on ROCm already."""
    parent = node.parent
    while parent is not None:
        if parent.type in ("conditional_expression", "if_statement"):
            text = unit.data[parent.start_byte : parent.end_byte]
            if b"version.hip" in text or b"ROCM" in text or b"rocm" in text:
                return True
        parent = parent.parent
    return False


def _edited(data: bytes, node: Node, edits: list[Edit]) -> bytes:
    out, at = b"", node.start_byte
    for edit in sorted(edits, key=lambda e: e.span.start):
        out += data[at : edit.span.start] + edit.text
        at = edit.span.end
    return out + data[at : node.end_byte]


def _import_torch(unit: Unit, file: PyFile) -> Iterator[Edit]:
    """``import torch`` in front of the first import of torch's parts, where it is missing."""
    for node in file.nodes.get("import_statement", ()):
        if any(file.text(c).split(" ")[0] == "torch" for c in node.named_children):
            return
    for node in file.nodes.get("import_from_statement", ()):
        module = file.text(node.child_by_field_name("module_name"))
        if module.split(".")[0] == "torch":
            yield Edit.insert(
                unit.source.line_span(unit.line(node.start_byte)).start,
                b"import torch" + unit.source.newline,
            )
            return


def _arch_list(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding]:
    for text in file.strings:
        if text.content == b"TORCH_CUDA_ARCH_LIST":
            yield context.finding("torch-arch-list", unit, text.span)


def _home(unit: Unit, context: Context, file: PyFile) -> Iterator[Finding]:
    for node in file.nodes.get("identifier", ()):
        if file.text(node) != "CUDA_HOME" or node.parent is None:
            continue
        if node.parent.type in ("dotted_name", "aliased_import", "import_from_statement"):
            continue
        yield context.finding("torch-cuda-home", unit, _span(node))
        return
