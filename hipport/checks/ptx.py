"""Inline PTX: translated where every instruction has a rule, else named."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.checks.scopes import on_device
from hipport.convert.ptx import Translation, translate
from hipport.findings import Action, Finding
from hipport.parse.ptx import AsmStatement, statements
from hipport.parse.unit import Unit
from hipport.source import Change, Edit

SLUGS = (
    "inline-ptx", "ptx-special-register", "ptx-bitfield", "ptx-carry-chain", "ptx-load-hint",
    "ptx-barrier", "tensor-core-mma", "async-copy",
)  # fmt: skip
_PTX_WORD = re.compile(
    r"(?:^|[;{\n\t ])(?:@!?%?\w+\s+)?[a-z][a-z0-9_]*\.(?:[a-z0-9_:]+\.)*"
    r"(?:[usbf](?:8|16|32|64)|pred|b128|sync|cta|gl|gpu|sys|L[12]|aligned|async|all|f16x2|bf16x2"
    r"|global|shared|arrive|red|x[124]|m\d+n\d+k\d+|wait|commit_group|wait_group|wait_all|inc|dec)\b"
    r"|%+(?:laneid|lanemask_\w+|warpid|smid|clock|globaltimer|tid|ntid|ctaid|nctaid)\b"
    r"|(?:^|[;\s])(?:trap|brkpt|exit)\s*;|(?:^|[;\s])(?:fence|membar|discard|prefetch|griddepcontrol)\.\w",
    re.M,
)
_AMD = re.compile(
    r"(?:^|\n|;|\t)\s*(?:[vs]_\w+|ds_\w+|global_\w+|flat_\w+|buffer_\w+|scratch_\w+)\b"
)


def _is_ptx(unit: Unit, statement: AsmStatement) -> bool:
    if statement.template is None:
        return _in_device_code(unit, statement)
    text = statement.template
    if not text.strip() or _AMD.search(text):
        return False
    return _PTX_WORD.search(text) is not None


def _in_device_code(unit: Unit, statement: AsmStatement) -> bool:
    node = unit.tree.root_node.descendant_for_byte_range(
        statement.span.start, statement.span.start + 1
    )
    return node is not None and on_device(unit, node)


@check(*SLUGS)
def inline_ptx(unit: Unit, context: Context) -> Iterator[Finding]:
    """Every asm statement that holds PTX; host assembly and empty barriers are left alone."""
    for statement in statements(unit):
        if _is_ptx(unit, statement):
            yield from _findings(unit, context, statement, translate(statement))


def _findings(
    unit: Unit, context: Context, statement: AsmStatement, result: Translation
) -> Iterator[Finding]:
    change = None
    if result.text is not None:
        span = statement.span
        change = Change(
            (Edit.replace(span.start, span.end, result.text.encode()),),
            priority=10,
            needs=tuple(f'"{name}"' for name in result.needs),
            label="inline-ptx",
        )
    failed = set(result.failed)
    carried = False
    for slug, names in result.classes:
        left = [n for n in names if n in failed]
        if change is not None:
            what = f"'{names[0]}' becomes HIP"
        elif left:
            what = f"'{left[0]}' has no translation"
        else:
            what = f"'{names[0]}' stands beside instructions without translation"
        yield context.finding(
            slug,
            unit,
            statement.span,
            change=change if not carried else None,
            action=Action.AUTO if change is not None else Action.FLAG,
            hint="; ".join(result.notes),
            what=what.replace("\x01", "%"),
            name=names[0],
        )
        carried = True
