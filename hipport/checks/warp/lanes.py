"""Which expressions are lanes, warps, masks, in one function; what a mask argument means."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.scopes import enclosing_function
from hipport.parse.calls import TokenCall, find_calls
from hipport.parse.tokens import Kind, directive_name
from hipport.parse.unit import Unit
from hipport.parse.values import evaluate
from hipport.source import Span

FULL = 0xFFFFFFFF
_CALL_WORDS = frozenset(
    {b"return", b"else", b"do", b"case", b"throw", b"co_return", b"goto", b"and", b"or", b"not"}
)
_WARP_NAME = re.compile(rb"warp(?!size|_size|_threads|s_)", re.I)
_LANE_NAME = re.compile(rb"lane", re.I)
_THREAD = re.compile(rb"threadIdx|thread_rank|laneid|lane_id")


def span(node: Node) -> Span:
    """A node's bytes."""
    return Span(node.start_byte, node.end_byte)


def builtin_calls(unit: Unit, names: frozenset[bytes]) -> Iterator[TokenCall]:
    """Calls of builtins: neither members, nor definitions or macros of the same name."""
    tokens = unit.code_tokens
    for call in find_calls(unit, names):
        before = tokens[call.index - 1] if call.index else None
        if before is not None:
            if before.text in (b".", b"->", b"::"):
                continue
            if before.kind is Kind.DIRECTIVE and directive_name(before) == b"define":
                continue
            if (
                before.kind is Kind.IDENT
                and before.text not in _CALL_WORDS
                and not (before.text.isupper())
            ):
                continue
            if (before.text in (b"*", b"&", b">") or before.kind is Kind.IDENT) and _declares(
                unit, call
            ):
                continue
        yield call


def _declares(unit: Unit, call: TokenCall) -> bool:
    """Whether a call-like text is a function's declaration, by the tree."""
    node = node_at(unit, call.name.start, call.name.end)
    while node is not None and node.type not in ("function_declarator", "call_expression"):
        if node.type in ("compound_statement", "translation_unit"):
            return False
        node = node.parent
    return node is not None and node.type == "function_declarator"


def node_at(unit: Unit, start: int, end: int) -> Node | None:
    """The smallest named node around a range."""
    return unit.tree.root_node.named_descendant_for_byte_range(start, end)


def call_node(unit: Unit, call: TokenCall) -> Node | None:
    """The tree's node of a call found by tokens, where the tree has it."""
    node = node_at(unit, call.name.start, call.name.end)
    while node is not None and node.type != "call_expression":
        if node.type in ("compound_statement", "translation_unit", "preproc_arg"):
            return None
        node = node.parent
    return node


def value(text: bytes, unit: Unit, context: Context) -> int | None:
    """The integer that a mask or width stands for, functional casts looked through."""
    text = text.strip()
    match = re.fullmatch(
        rb"(?:unsigned|uint32_t|int|u?int|static_cast\s*<[^<>]*>)\s*\((.*)\)", text
    )
    if match is not None:
        text = match.group(1)
    if text in (b"UINT_MAX", b"UINT32_MAX"):
        return FULL
    return evaluate(text, unit.path, context.project)


def is_full_mask(text: bytes, unit: Unit, context: Context) -> bool:
    """Whether a mask names all 32 lanes."""
    number = value(text, unit, context)
    return number is not None and (number & FULL) == FULL and number in (-1, FULL)


def is_wide_mask(text: bytes, unit: Unit, context: Context) -> bool:
    """Whether a mask is a 64-bit value (code for HIP already)."""
    stripped = text.replace(b" ", b"").lower()
    if re.fullmatch(rb"~0u?llu?|0xf{16}(?:u?l*)?|~0ul", stripped):
        return True
    if stripped.startswith((b"(unsignedlonglong)", b"(uint64_t)", b"uint64_t(")):
        return True
    number = value(text, unit, context)
    return number is not None and number > FULL


def is_active_mask(text: bytes) -> bool:
    """Whether a mask is the set of active lanes at the call."""
    return re.fullmatch(rb"\s*__activemask\s*\(\s*\)\s*", text) is not None


def is_hip(unit: Unit, context: Context) -> bool:
    """Whether a file is HIP already: it sees HIP's headers and none of CUDA's."""
    seen = context.project.system_includes(unit.path) | {
        t.text[1:-1].strip() for t in unit.tokens if t.kind is Kind.HEADER
    }
    if any(name.startswith((b"cuda", b"cub/", b"cooperative_groups", b"device_")) for name in seen):
        return False
    return any(name.startswith((b"hip/", b"hipcub", b"hip_")) for name in seen)


_SOURCE = re.compile(rb"__(?:ballot|ballot_sync|activemask|match_any_sync|match_any)\s*\(")
_CONSUMED = re.compile(rb"__(?:popc|ffs|clz)\w*\s*\(|[=!]=|(?<![<>])[<>](?![<>])|&&|\|\||\?|!\s*__")


def ballot_wrappers(unit: Unit, context: Context) -> frozenset[bytes]:
    """Macros and functions of the project whose value is a lane mask."""
    found: set[bytes] = set()
    known = context.project
    for path in known.closure(unit.path):
        facts = known.files.get(path)
        if facts is None:
            continue
        for macro in facts.macros:
            if (
                macro.params is not None
                and _SOURCE.search(macro.body)
                and not _CONSUMED.search(macro.body)
            ):
                found.add(macro.name)
        for function in facts.functions:
            if function.ballot:
                found.add(function.name)
    return frozenset(found)


class Function:
    """Names of one function that carry lanes, warps and masks."""

    def __init__(self, unit: Unit, context: Context, node: Node) -> None:
        self.unit = unit
        self.context = context
        self.node = node
        self.text = unit.text(node)
        self.wrappers = ballot_wrappers(unit, context)
        self.defs: dict[bytes, list[bytes]] = {}
        for match in re.finditer(
            rb"\b([A-Za-z_]\w*)\s*(?<![=!<>+*/%&|^-])=(?!=)\s*([^;{}]*?)\s*(?=[;{}]|,\s*\*?[A-Za-z_]\w*\s*=)",
            self.text,
        ):
            self.defs.setdefault(match.group(1), []).append(match.group(2))

    def _width_text(self) -> bytes:
        return rb"(?:32u?|0x20u?|warpSize|\w*(?:WARP|Warp|warp)\w*|WS)"

    def is_lane(self, name: bytes) -> bool:
        """Whether a variable is a lane number."""
        if _LANE_NAME.search(name):
            return True
        pattern = (
            rb"&\s*(?:31u?|0x1fu?|\(?\s*" + self._width_text() + rb"\s*-\s*1u?\s*\)?)|%\s*"
            + self._width_text() + rb"|__lane_id|laneid|lane_id|thread_rank\s*\(\s*\)"
        )  # fmt: skip
        return any(
            re.search(pattern, d, re.I) and self._of_thread(d) for d in self.defs.get(name, ())
        )

    def _of_thread(self, text: bytes) -> bool:
        if _THREAD.search(text):
            return True
        return any(self.depends_on_thread(n) for n in set(re.findall(rb"[A-Za-z_]\w*", text)))

    def is_warp(self, name: bytes) -> bool:
        """Whether a variable is a warp number."""
        if _WARP_NAME.search(name) and name.upper() != name:
            return True
        pattern = rb"/\s*" + self._width_text() + rb"|>>\s*(?:5u?|\w*(?:LOG|log)\w*)\b"
        return any(re.search(pattern, d) and self._of_thread(d) for d in self.defs.get(name, ()))

    def depends_on_thread(self, name: bytes, depth: int = 0) -> bool:
        """Whether a variable differs between the threads of a warp, as far as its text tells."""
        if depth > 4:
            return False
        for text in self.defs.get(name, ()):
            if re.search(rb"threadIdx\s*\.\s*x|thread_rank|lane_id|laneid", text):
                if re.search(rb"threadIdx\s*\.\s*x\s*(?:/\s*" + self._width_text()
                             + rb"|>>\s*5)", text) or self._warp_uniform(text):  # fmt: skip
                    continue
                return True
            for other in set(re.findall(rb"[A-Za-z_]\w*", text)):
                if (
                    other != name
                    and other in self.defs
                    and not self.is_warp(other)
                    and (self.depends_on_thread(other, depth + 1))
                ):
                    return True
        return False

    def _warp_uniform(self, text: bytes) -> bool:
        return re.search(rb"\)\s*(?:/\s*" + self._width_text() + rb"|>>\s*5)", text) is not None

    def masks(self) -> frozenset[bytes]:
        """Variables that hold ballots, active masks or matches."""
        found: set[bytes] = set()
        pattern = re.compile(
            rb"__(?:ballot|activemask|match_any|match_all|ballot_sync|match_any_sync)\b"
            + b"".join(rb"|\b" + re.escape(w) + rb"\s*\(" for w in sorted(self.wrappers))
        )
        for _ in range(3):
            before = len(found)
            words = [rb"\b" + re.escape(n) + rb"\b" for n in sorted(found)]
            derived = re.compile(b"|".join(words)) if words else None
            for name, texts in self.defs.items():
                for text in texts:
                    if re.search(rb"__(?:popc|ffs|clz|shfl|any|all)\w*\s*\(", text):
                        continue
                    own = pattern.search(text)
                    spread = (
                        derived is not None
                        and derived.search(text)
                        and not re.search(rb"\w\s*\([^()]*$|[=!]=\s*0", text)
                    )
                    if own or spread:
                        found.add(name)
            if len(found) == before:
                break
        return frozenset(found)


class Functions:
    """Functions of a unit by node, made once."""

    def __init__(self, unit: Unit, context: Context) -> None:
        self.unit = unit
        self.context = context
        self._known: dict[int, Function] = {}

    def around(self, node: Node | None) -> Function | None:
        """The function around a node."""
        function = enclosing_function(node) if node is not None else None
        if function is None:
            return None
        known = self._known.get(function.id)
        if known is None:
            known = self._known[function.id] = Function(self.unit, self.context, function)
        return known
