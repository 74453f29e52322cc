"""Cross-lane builtins: shuffles, ballots, votes, active masks, barriers, matches, reductions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.warp import guards
from hipport.checks.warp.lanes import (
    Functions,
    ballot_wrappers,
    builtin_calls,
    call_node,
    is_active_mask,
    is_full_mask,
    is_hip,
    is_wide_mask,
    value,
)
from hipport.findings import Action, Finding, Severity
from hipport.parse.calls import TokenCall
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Span

HEADER = '"hipport_warp.h"'
_SHUFFLES = {
    b"__shfl_sync": b"__shfl", b"__shfl_up_sync": b"__shfl_up",
    b"__shfl_down_sync": b"__shfl_down", b"__shfl_xor_sync": b"__shfl_xor",
}  # fmt: skip
_OLD_SHUFFLES = frozenset(_SHUFFLES.values())
_VOTES = {b"__any_sync": "any", b"__all_sync": "all", b"__any": "any", b"__all": "all"}
_MATCHES = frozenset({b"__match_any_sync", b"__match_all_sync"})
_REDUCTIONS = frozenset(
    {b"__reduce_add_sync", b"__reduce_min_sync", b"__reduce_max_sync", b"__reduce_and_sync",
     b"__reduce_or_sync", b"__reduce_xor_sync"}
)  # fmt: skip
_BITWISE = frozenset({b"__reduce_and_sync", b"__reduce_or_sync", b"__reduce_xor_sync"})
SYNC_NAMES = (
    frozenset(_SHUFFLES) | frozenset({b"__any_sync", b"__all_sync", b"__ballot_sync"})
    | _MATCHES | _REDUCTIONS
)  # fmt: skip
_NARROW_BEFORE, _NARROW_AFTER = b"(unsigned)(", b" >> (__lane_id() & 32))"


def _name_span(call: TokenCall) -> Span:
    return Span(call.name.start, call.name.end)


def _drop_first(call: TokenCall) -> Edit:
    """Delete the mask and its comma."""
    second = call.arguments[1].start if len(call.arguments) > 1 else call.close
    return Edit.replace(call.arguments[0].start, second, b"")


class _Rewriter:
    def __init__(self, unit: Unit, context: Context) -> None:
        self.unit = unit
        self.context = context
        self.functions = Functions(unit, context)
        self.hip = is_hip(unit, context)
        self.dropped: list[Span] = []

    def text(self, at: Span) -> bytes:
        return self.unit.source.text(at)

    def finding(self, slug: str, call: TokenCall, **fields: object) -> Finding:
        name = call.name.text.decode()
        merged: dict[str, object] = {"name": name, **fields}
        return self.context.finding(
            slug,
            self.unit,
            _name_span(call),
            **merged,  # type: ignore[arg-type]
        )

    # -- masks --------------------------------------------------------------------------------

    def mask_findings(
        self, call: TokenCall, change: Change | None
    ) -> Iterator[tuple[Finding, bool]]:
        """Findings on the mask argument; the flag says whether `change` was used up."""
        mask = self.text(call.arguments[0])
        if is_wide_mask(mask, self.unit, self.context):
            yield self.finding("wave64-hardcoded", call, what="a mask of 64 lanes"), False
            return
        if not is_active_mask(mask):
            yield (
                self.finding(
                    "sync-mask-width",
                    call,
                    change=change,
                    action=Action.AUTO,
                    mask=mask.decode("utf-8", "replace"),
                ),
                change is not None,
            )
        number = value(mask, self.unit, self.context)
        partial = number is not None and not is_full_mask(mask, self.unit, self.context)
        if partial and number is not None and number & 0xFFFFFFFF:
            yield (
                self.finding("partial-mask", call, mask=mask.decode("utf-8", "replace")),
                False,
            )
        if call.arguments:
            yield self.finding("sync-builtin-missing", call, action=Action.AUTO,
                               severity=Severity.INFO), False  # fmt: skip

    def exited(self, call: TokenCall, node: Node | None) -> Iterator[Finding]:
        """Lanes that left the function before a call that names them all."""
        if node is None:
            return
        mask = self.text(call.arguments[0]) if call.arguments else b""
        if not is_full_mask(mask, self.unit, self.context):
            return
        function = self.functions.around(node)
        leave = guards.early_exit(self.unit, function, node) if function is not None else None
        if leave is not None:
            yield self.finding("exited-lanes", call, line=self.unit.line(leave.start_byte))
            yield self.context.finding(
                "exited-lanes",
                self.unit,
                Span(leave.start_byte, leave.end_byte),
                severity=Severity.INFO,
                name=call.name.text.decode(),
                line=self.unit.line(leave.start_byte),
            )

    # -- one call -------------------------------------------------------------------------------

    def shuffle(self, call: TokenCall) -> Iterator[Finding]:
        sync = call.name.text in _SHUFFLES
        least = 3 if sync else 2
        if len(call.arguments) < least or len(call.arguments) > least + 1:
            return
        node = call_node(self.unit, call)
        has_width = len(call.arguments) == least + 1
        if has_width:
            width = value(self.text(call.arguments[-1]), self.unit, self.context)
            if width == 64:
                yield self.finding("wave64-hardcoded", call, what="a shuffle over 64 lanes")
                return
        crosses = not has_width and guards.crosses(
            self.unit, self.functions.around(node), call, node, sync, self.context
        )
        edits: list[Edit] = []
        if sync:
            self.dropped.append(call.arguments[0])
            edits += [
                Edit.replace(call.name.start, call.name.end, _SHUFFLES[call.name.text]),
                _drop_first(call),
            ]
        if not has_width and (sync or crosses):
            edits.append(Edit.insert(call.close, b", 32"))
        elif has_width and b"warpSize" in self.text(call.arguments[-1]):
            pass
        if not edits:
            return
        if not sync and self.hip:
            return
        change: Change | None = Change(tuple(edits), priority=10, label="wavefront")
        if sync:
            for found, used in self.mask_findings(call, change):
                change = None if used else change
                yield found
            yield from self.exited(call, node)
        if crosses:
            yield self.finding("shuffle-no-width", call, change=change, action=Action.AUTO)
            change = None
        if change is not None:
            yield self.finding(
                "sync-mask-width" if sync else "shuffle-no-width",
                call,
                change=change,
                action=Action.AUTO,
                severity=Severity.INFO,
                mask="active lanes",
            )

    def ballot(self, call: TokenCall) -> Iterator[Finding]:
        sync = call.name.text == b"__ballot_sync"
        if len(call.arguments) != (2 if sync else 1):
            return
        if not sync and (self._is_narrowed(call) or (self.hip and not self._kept_in_32_bits(call))):
            return
        node = call_node(self.unit, call)
        change: Change | None = self._ballot_change(call, sync)
        if sync:
            for found, used in self.mask_findings(call, None):
                yield found
                _ = used
            yield from self.exited(call, node)
        quiet = self._in_macro(call) or self._unevaluated(node)
        yield self.finding(
            "vote-scope" if self._only_tested(node) else "ballot-width",
            call,
            change=change,
            action=Action.AUTO,
            severity=Severity.INFO if quiet else None,
        )
        yield from self._bit_operations(call, node)

    def _only_tested(self, node: Node | None) -> bool:
        """Whether a ballot only says whether any lane votes."""
        parent = node.parent if node is not None else None
        if parent is None:
            return False
        if parent.type in ("condition_clause", "parenthesized_expression"):
            outer = parent.parent
            return parent.type == "condition_clause" or (
                outer is not None and outer.type in ("if_statement", "while_statement")
            )
        if parent.type == "unary_expression":
            return self.unit.text(parent.child_by_field_name("operator")) == b"!"
        if parent.type == "binary_expression":
            operator = self.unit.text(parent.child_by_field_name("operator"))
            if operator in (b"&&", b"||"):
                return True
            return operator in (b"!=", b"==") and self.unit.text(
                parent.child_by_field_name("right")
            ) in (b"0", b"0u", b"0U")
        return False

    def _in_macro(self, call: TokenCall) -> bool:
        """Whether a call stands in a macro's body: its uses are reported instead."""
        start = self.unit.data.rfind(b"\n", 0, call.name.start) + 1
        while start > 1 and self.unit.data[start - 2 : start - 1] == b"\\":
            start = self.unit.data.rfind(b"\n", 0, start - 1) + 1
        return re.match(rb"[ \t]*#[ \t]*define\b", self.unit.data[start : start + 40]) is not None

    def _unevaluated(self, node: Node | None) -> bool:
        parent = node.parent if node is not None else None
        while parent is not None and parent.type not in ("compound_statement", "translation_unit"):
            if parent.type in ("decltype", "sizeof_expression"):
                return True
            parent = parent.parent
        return False

    def wrapped(self, wrappers: frozenset[bytes]) -> Iterator[Finding]:
        """Uses of macros and functions that give a ballot: repaired where they are defined."""
        for call in builtin_calls(self.unit, wrappers):
            node = call_node(self.unit, call)
            if node is None:
                continue
            yield self.finding("ballot-width", call, action=Action.AUTO)
            yield from self._bit_operations(call, node)

    def _is_narrowed(self, call: TokenCall) -> bool:
        tail = self.unit.data[call.close + 1 : call.close + 40]
        return re.match(rb"\s*\)?\s*>>\s*\(\s*__lane_id\(\)", tail) is not None

    def _kept_in_32_bits(self, call: TokenCall) -> bool:
        node = call_node(self.unit, call)
        parent = node.parent if node is not None else None
        if parent is None or parent.type != "init_declarator" or parent.parent is None:
            return False
        kind = self.unit.text(parent.parent.child_by_field_name("type"))
        return kind in (b"int", b"unsigned", b"unsigned int", b"uint32_t", b"uint")

    def _ballot_change(self, call: TokenCall, sync: bool) -> Change:
        whole = Span(call.name.start, call.close + 1)
        if sync:
            mask = self.text(call.arguments[0])
            if not (is_full_mask(mask, self.unit, self.context) or is_active_mask(mask)):
                return self._helper(call)
            self.dropped.append(call.arguments[0])
        edits = [*Edit.wrap(whole, _NARROW_BEFORE, _NARROW_AFTER)]
        if sync:
            edits += [
                Edit.replace(call.name.start, call.name.end, b"__ballot"), _drop_first(call)
            ]  # fmt: skip
        return Change(tuple(edits), priority=10, label="wavefront")

    def _helper(self, call: TokenCall) -> Change:
        """The function of the generated header that takes the same arguments."""
        new = b"hipport" + call.name.text[1:]
        return Change(
            (Edit.replace(call.name.start, call.name.end, new),),
            priority=10,
            needs=(HEADER,),
            label="wavefront",
        )

    def _bit_operations(self, call: TokenCall, node: Node | None) -> Iterator[Finding]:
        """``__popc(__ballot(...))``: the operation itself would see 64 bits."""
        parent = node.parent if node is not None else None
        while parent is not None and parent.type in ("argument_list", "parenthesized_expression"):
            parent = parent.parent
        if parent is None or parent.type != "call_expression":
            return
        function = self.unit.text(parent.child_by_field_name("function"))
        if function in (b"__popc", b"__ffs", b"__clz", b"__brev", b"__fns"):
            yield self.context.finding(
                "popc-ffs-clz-width",
                self.unit,
                Span(parent.start_byte, parent.end_byte),
                action=Action.AUTO,
                name=function.decode(),
            )

    def vote(self, call: TokenCall) -> Iterator[Finding]:
        sync = call.name.text.endswith(b"_sync")
        if len(call.arguments) != (2 if sync else 1) or (not sync and self.hip):
            return
        node = call_node(self.unit, call)
        change: Change | None
        mask = self.text(call.arguments[0]) if sync else b""
        full = not sync or is_full_mask(mask, self.unit, self.context) or is_active_mask(mask)
        if full:
            if sync:
                self.dropped.append(call.arguments[0])
            predicate = call.arguments[-1]
            whole = Span(call.name.start, call.close + 1)
            negate = _VOTES[call.name.text] == "all"
            edits = [
                *Edit.wrap(whole, b"(" + _NARROW_BEFORE,
                           _NARROW_AFTER + (b" == 0)" if negate else b" != 0)")),
                Edit.replace(call.name.start, call.name.end, b"__ballot"),
            ]  # fmt: skip
            if sync:
                edits.append(_drop_first(call))
            if negate:
                edits += Edit.wrap(predicate, b"!(", b")")
            change = Change(tuple(edits), priority=10, label="wavefront")
        else:
            change = self._helper(call)
        if sync:
            for found, _ in self.mask_findings(call, None):
                yield found
            yield from self.exited(call, node)
        yield self.finding("vote-scope", call, change=change, action=Action.AUTO)

    def active(self, call: TokenCall) -> Iterator[Finding]:
        if any(s.start <= call.name.start < s.end for s in self.dropped):
            return
        if self.hip and not self._kept_in_32_bits(call):
            return
        change = Change(
            (
                Edit.replace(
                    call.name.start,
                    call.close + 1,
                    b"(unsigned)(__ballot(1) >> (__lane_id() & 32))",
                ),
            ),
            priority=10,
            label="wavefront",
        )
        yield self.finding("ballot-width", call, change=change, action=Action.AUTO)
        yield from self._bit_operations(call, call_node(self.unit, call))

    def syncwarp(self, call: TokenCall) -> Iterator[Finding]:
        if call.arguments:
            mask = self.text(call.arguments[0])
            for found, _ in self.mask_findings(call, None):
                yield found
            if (
                value(mask, self.unit, self.context) is None
                and not is_active_mask(mask)
                and (self._computed_mask(call, mask))
            ):
                yield self.finding("partial-mask", call, mask=mask.decode("utf-8", "replace"))
        edits = [Edit.replace(call.name.start, call.name.end, b"hipport_syncwarp")]
        if call.arguments:
            self.dropped.append(call.arguments[0])
            edits.append(Edit.replace(call.arguments[0].start, call.close, b""))
        change = Change(tuple(edits), priority=10, needs=(HEADER,), label="wavefront")
        yield self.finding("syncwarp", call, change=change, action=Action.AUTO)

    def _computed_mask(self, call: TokenCall, mask: bytes) -> bool:
        """Whether a mask is made by shifting, not taken from a ballot."""
        function = self.functions.around(call_node(self.unit, call))
        if function is None:
            return False
        texts = [mask, *function.defs.get(mask.strip(), ())]
        return any(b"<<" in t and not re.search(rb"__(?:ballot|activemask|match)", t)
                   for t in texts)  # fmt: skip

    def through_header(self, call: TokenCall) -> Iterator[Finding]:
        name = call.name.text
        slug = "match-sync" if name in _MATCHES else "reduce-sync"
        if len(call.arguments) < 2:
            return
        for found, _ in self.mask_findings(call, None):
            yield found
        yield from self.exited(call, call_node(self.unit, call))
        change = self._helper(call)
        if name in _BITWISE:
            broken = (7, 0) <= self.context.rocm <= (7, 2)
            yield self.finding(
                "reduce-sync-bitwise",
                call,
                action=Action.AUTO,
                severity=None if broken else Severity.INFO,
            )
        if name == b"__match_any_sync":
            yield self.finding("ballot-width", call, action=Action.AUTO)
        yield self.finding(slug, call, change=change, action=Action.AUTO)


@check(
    "sync-mask-width", "shuffle-no-width", "ballot-width", "vote-scope", "syncwarp", "match-sync",
    "reduce-sync", "reduce-sync-bitwise", "partial-mask", "exited-lanes", "sync-builtin-missing",
    "popc-ffs-clz-width", "wave64-hardcoded",
)  # fmt: skip
def builtins(unit: Unit, context: Context) -> Iterator[Finding]:
    """Every cross-lane builtin of a file, in an order that lets masks vanish with their call."""
    if not any(n.startswith(b"__") for n in unit.identifiers) and not ballot_wrappers(
        unit, context
    ):
        return
    rewriter = _Rewriter(unit, context)
    for call in builtin_calls(unit, frozenset(_SHUFFLES) | _OLD_SHUFFLES):
        yield from rewriter.shuffle(call)
    for call in builtin_calls(unit, frozenset({b"__ballot_sync", b"__ballot"})):
        yield from rewriter.ballot(call)
    for call in builtin_calls(unit, frozenset(_VOTES)):
        yield from rewriter.vote(call)
    for call in builtin_calls(unit, frozenset({b"__syncwarp"})):
        yield from rewriter.syncwarp(call)
    for call in builtin_calls(unit, _MATCHES | _REDUCTIONS):
        yield from rewriter.through_header(call)
    for call in builtin_calls(unit, frozenset({b"__activemask"})):
        yield from rewriter.active(call)
    wrappers = frozenset(
        name for name in ballot_wrappers(unit, context) if context.project.macros(unit.path, name)
    )
    if wrappers:
        yield from rewriter.wrapped(wrappers)
