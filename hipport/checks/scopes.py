"""On which side code runs: host, device, or both."""

from __future__ import annotations

import re

from tree_sitter import Node

from hipport.parse.unit import Unit

_BOTH = re.compile(rb"\b\w*(?:HOST_DEVICE|HOSTDEVICE|DEVICE_HOST|HD_FUNC|HDINLINE|_HD)\b|\bHD\b")
_DEVICE_WORD = re.compile(rb"__device__|__global__|\b\w*(?:DEVICE|KERNEL|GLOBAL)\w*\b")


def enclosing_function(node: Node) -> Node | None:
    """The function definition around a node (lambdas are passed through)."""
    current: Node | None = node
    while current is not None and current.type != "function_definition":
        current = current.parent
    return current


def head(unit: Unit, function: Node) -> bytes:
    """The text of a function definition in front of its body, templates included."""
    body = function.child_by_field_name("body")
    outer = function.parent
    start = (
        outer.start_byte
        if outer is not None and outer.type == "template_declaration"
        else function.start_byte
    )
    return unit.data[start : body.start_byte if body is not None else function.end_byte]


def sides(unit: Unit, node: Node) -> frozenset[str]:
    """``{"host"}``, ``{"device"}`` or both, for the function around a node.

    Device lambdas count by their own attribute; code outside functions is host code.
    """
    current: Node | None = node
    while current is not None and current.type != "function_definition":
        if current.type == "lambda_expression":
            body = current.child_by_field_name("body")
            text = unit.data[current.start_byte : body.start_byte if body else current.end_byte]
            if b"__device__" in text:
                return frozenset({"host", "device"} if b"__host__" in text else {"device"})
        current = current.parent
    if current is None:
        return frozenset({"host"})
    text = head(unit, current)
    if b"__global__" in text:
        return frozenset({"device"})
    device, host = b"__device__" in text, b"__host__" in text
    if _BOTH.search(text) or (device and host):
        return frozenset({"host", "device"})
    if device or _DEVICE_WORD.search(text):
        return frozenset({"device"})
    return frozenset({"host"})


def on_device(unit: Unit, node: Node) -> bool:
    """Whether the code may run on the device."""
    return "device" in sides(unit, node)


def on_host(unit: Unit, node: Node) -> bool:
    """Whether the code may run on the host."""
    return "host" in sides(unit, node)
