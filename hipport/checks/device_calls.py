"""Device builtins and runtime behaviour: traps, asserts, clocks, error codes, priorities."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import enclosing_function, on_device
from hipport.findings import Action, Finding, Severity
from hipport.parse.calls import find_calls
from hipport.parse.tokens import Token
from hipport.parse.unit import Unit, arguments
from hipport.source import Change, Edit, Span


def _span(node: Node) -> Span:
    return Span(node.start_byte, node.end_byte)


_DEFINE = re.compile(rb"#[ \t]*define[ \t]+$")


def _is_defined_here(unit: Unit, at: int) -> bool:
    """Whether the name at an offset is the one that a ``#define`` gives a meaning."""
    return _DEFINE.search(unit.data, max(0, at - 40), at) is not None


_TRAPS = {b"__trap": b"__builtin_trap", b"__brkpt": b"__builtin_debugtrap"}


@check("trap-builtin")
def trap_builtin(unit: Unit, context: Context) -> Iterator[Finding]:
    """``__trap``, ``__brkpt`` and ``__prof_trigger`` are not declared in HIP."""
    for call in find_calls(unit, (*_TRAPS, b"__prof_trigger")):
        if _is_defined_here(unit, call.name.start):
            continue
        instead = _TRAPS.get(call.name.text)
        span = Span(call.name.start, call.name.end)
        change = None
        if instead is not None:
            change = Change(
                (Edit.replace(span.start, span.end, instead),), priority=10, label="trap-builtin"
            )
        yield context.finding(
            "trap-builtin",
            unit,
            span,
            change=change,
            action=None if change is not None else Action.FLAG,
            name=call.name.text.decode(),
            instead=instead.decode() if instead is not None else "nothing",
        )


_FATAL_CODES = frozenset(
    b"cudaErrorAssert cudaErrorLaunchFailure cudaErrorIllegalAddress cudaErrorIllegalInstruction "
    b"cudaErrorMisalignedAddress cudaErrorInvalidPc cudaErrorInvalidAddressSpace "
    b"cudaErrorHardwareStackError cudaErrorLaunchTimeout CUDA_ERROR_ASSERT "
    b"CUDA_ERROR_LAUNCH_FAILED CUDA_ERROR_ILLEGAL_ADDRESS".split()
)
_CHANGED_CODES = frozenset(
    b"cudaErrorInvalidConfiguration cudaErrorLaunchOutOfResources cudaErrorInvalidValue "
    b"cudaErrorInvalidDeviceFunction cudaErrorNoKernelImageForDevice "
    b"cudaErrorCooperativeLaunchTooLarge cudaErrorInvalidResourceHandle "
    b"cudaErrorContextIsDestroyed cudaErrorStreamCaptureUnsupported".split()
)
_ERROR_NAME = re.compile(rb"\b(?:e|err|error|ret|status|result|rc|st|code)\w*$|Error$|Status$")


@check("error-semantics")
def error_semantics(unit: Unit, context: Context) -> Iterator[Finding]:
    """Decisions on particular error codes, by name or number."""
    lines: set[int] = set()
    for node in unit.nodes.get("binary_expression", ()):
        operator = unit.text(node.child_by_field_name("operator"))
        if operator not in (b"==", b"!="):
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            continue
        texts = {unit.text(left), unit.text(right)}
        named = texts & (_FATAL_CODES | _CHANGED_CODES)
        number = _numeric_code(unit, left, right)
        if not named and number is None:
            continue
        line = unit.line(node.start_byte)
        if line in lines:
            continue
        lines.add(line)
        code = sorted(named)[0].decode() if named else str(number)
        if named & _FATAL_CODES:
            what = "a fault on the device may end the process instead of being returned"
        elif named:
            what = "HIP returns another code in some versions"
        else:
            what = "compare with the named constant"
        yield context.finding(
            "error-semantics",
            unit,
            _span(node),
            severity=None if named & _FATAL_CODES or not named else Severity.INFO,
            code=code,
            what=what,
        )
    for node in unit.nodes.get("case_statement", ()):
        value = node.child_by_field_name("value")
        name = unit.text(value)
        if name in _FATAL_CODES:
            yield context.finding(
                "error-semantics",
                unit,
                _span(value) if value is not None else _span(node),
                code=name.decode(),
                what="a fault on the device may end the process instead of being returned",
            )


def _numeric_code(unit: Unit, left: Node, right: Node) -> int | None:
    """A literal other than 0 that is compared with a variable of CUDA's error type."""
    number, other = (left, right) if left.type == "number_literal" else (right, left)
    if number.type != "number_literal":
        return None
    text = unit.text(number)
    if not text.isdigit() or int(text) < 2:
        return None
    name = re.sub(rb"^\(\s*int\s*\)\s*", b"", unit.text(other))
    name = re.sub(rb"^(?:static_cast|int)\s*(?:<\s*int\s*>)?\s*\((.*)\)$", rb"\1", name)
    if not re.fullmatch(rb"[A-Za-z_]\w*", name):
        return None
    function = enclosing_function(left)
    around = unit.text(function) if function is not None else unit.data
    declared = re.search(
        rb"\b(?:cudaError_t|hipError_t|CUresult)\s+(?:const\s+)?" + re.escape(name) + rb"\b",
        around,
    )
    return int(text) if declared is not None else None


@check("device-assert")
def device_assert(unit: Unit, context: Context) -> Iterator[Finding]:
    """``assert`` and ``abort`` in device code end the process on ROCm."""
    recovers = not unit.identifiers.isdisjoint(_FATAL_CODES)
    for call in unit.calls(b"assert", b"abort"):
        if on_device(unit, call):
            yield context.finding(
                "device-assert",
                unit,
                _span(call),
                severity=None if recovers else Severity.INFO,
                call=unit.text(call.child_by_field_name("function")).decode(),
            )


_CLOCKS = (b"clock64", b"clock")
_NANOSECONDS_PER_UNIT = 32
"""One unit of s_sleep is about 64 engine clocks; at 2 GHz that is 32 ns."""


@check("nanosleep-clock")
def nanosleep_clock(unit: Unit, context: Context) -> Iterator[Finding]:
    """Delays by ``__nanosleep`` and by counting engine clocks."""
    lines: set[int] = set()
    sleeps = list(find_calls(unit, (b"__nanosleep",)))
    for call in sleeps:
        lines.add(unit.line(call.name.start))
        text = unit.source.text(call.arguments[0]) if call.arguments else b""
        digits = text.rstrip(b"uUlL")
        change = None
        if digits.isdigit():
            units = min(127, max(1, round(int(digits) / _NANOSECONDS_PER_UNIT)))
            change = Change(
                (
                    Edit.replace(call.name.start, call.name.end, b"__builtin_amdgcn_s_sleep"),
                    Edit.replace(
                        call.arguments[0].start, call.arguments[0].end, str(units).encode()
                    ),
                ),
                priority=10,
                label="nanosleep-clock",
            )
        yield context.finding(
            "nanosleep-clock",
            unit,
            Span(call.name.start, call.name.end),
            change=change,
            action=None if change is not None else Action.FLAG,
            what="__nanosleep is not declared in HIP; s_sleep takes a literal number of "
            "64-clock units",
        )
    for node in unit.calls(*_CLOCKS):
        line = unit.line(node.start_byte)
        if line in lines or not on_device(unit, node) or arguments(node):
            continue
        lines.add(line)
        yield context.finding(
            "nanosleep-clock",
            unit,
            _span(node),
            what="the clock counter runs at a rate that varies and is unreliable on RDNA3; "
            "wall_clock64() has a fixed rate to be queried",
        )


@check("stream-priority")
def stream_priority(unit: Unit, context: Context) -> Iterator[Finding]:
    """Arithmetic on the priority range, and the queried lowest priority in use."""
    names = (
        b"cudaDeviceGetStreamPriorityRange", b"cuCtxGetStreamPriorityRange",
        b"hipDeviceGetStreamPriorityRange",
    )  # fmt: skip
    least: set[bytes] = set()
    greatest: set[bytes] = set()
    for call in find_calls(unit, names):
        for place, group in ((0, least), (1, greatest)):
            if place < len(call.arguments):
                text = unit.source.text(call.arguments[place]).lstrip(b"&").strip()
                if re.fullmatch(rb"[A-Za-z_]\w*", text):
                    group.add(text)
    least -= {b"nullptr", b"NULL"}
    greatest -= {b"nullptr", b"NULL"}
    if not least and not greatest:
        return
    lines: set[int] = set()
    for node in unit.nodes.get("identifier", ()):
        name = unit.text(node)
        if name not in least and name not in greatest:
            continue
        what = _priority_use(unit, node, name in least)
        line = unit.line(node.start_byte)
        if what and line not in lines:
            lines.add(line)
            yield context.finding("stream-priority", unit, _span(node), what=what)


def _priority_use(unit: Unit, node: Node, lowest: bool) -> str:
    parent = node.parent
    if parent is None:
        return ""
    if parent.type == "binary_expression":
        operator = unit.text(parent.child_by_field_name("operator"))
        if operator in (b"+", b"-", b"*", b"/", b"%"):
            return "arithmetic on the range, which is 1 to -1 in HIP and 0 to -5 in CUDA"
        if operator in (b"==", b"!=", b"<", b">", b"<=", b">="):
            return "a test of the range, which is 1 to -1 in HIP and 0 to -5 in CUDA"
    if parent.type == "argument_list" and parent.parent is not None and lowest:
        name = unit.text(parent.parent.child_by_field_name("function"))
        if b"WithPriority" in name or (b"Priority" in name and b"Range" not in name):
            return "the queried lowest priority is below normal in HIP; pass 0 for CUDA's default"
    return ""


_IN_CAPTURE = frozenset(
    {b"cudaMemcpy", b"cudaMalloc", b"cudaFree", b"cudaEventQuery", b"cudaStreamQuery",
     b"cudaMallocManaged", b"cudaDeviceSynchronize", b"cudaStreamSynchronize", b"cudaMemset",
     b"cudaMemcpyToSymbol"}
)  # fmt: skip


@check("graph-capture")
def capture(unit: Unit, context: Context) -> Iterator[Finding]:
    """Calls between the begin and the end of a capture that HIP 7 refuses."""
    if b"cudaStreamBeginCapture" not in unit.identifiers:
        return
    begin: Token | None = None
    for token in unit.code_tokens:
        if token.text == b"cudaStreamBeginCapture":
            begin = token
        elif token.text == b"cudaStreamEndCapture":
            begin = None
        elif begin is not None and token.text in _IN_CAPTURE:
            for place in (begin, token):
                yield context.finding(
                    "graph-capture", unit, Span(place.start, place.end), name=token.text.decode()
                )
