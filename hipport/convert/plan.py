"""One file's plan: what changes, what is found, what the new bytes are."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from hipport.checks import registry
from hipport.checks.context import Context
from hipport.convert import includes
from hipport.convert.names import OwnUse, header_changes, name_changes, namespace_changes
from hipport.findings import Action, Finding, Severity
from hipport.parse.unit import Unit
from hipport.report.model import FilePlan, FileStatus
from hipport.source import Change, EditSet, Safety, SourceFile, Span

_HINTS = re.compile(
    rb"cuda|CUDA|\bcu[A-Z]|\bCU[A-Z_]|nccl|NCCL|nvtx|nvrtc|nvml|NVML|cupti|CUPTI|thrust|cub\b"
    rb"|__global__|__device__|__host__|__shared__|__constant__|__launch_bounds__|__shfl|__ballot"
    rb"|__syncwarp|warp|WARP|Warp|__half|nv_bfloat|__nv_|hip"
)
_RISKY = re.compile(
    rb"__(?:shfl|ballot|any|all|activemask|match|reduce|syncwarp|popc|ffs|clz)\w*|\basm\b"
    rb"|tiled_partition|coalesced_threads|warpSize|__launch_bounds__|__CUDA_ARCH__"
)
_UTF = {
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\x00\x00",
    "utf-32-be": b"\x00\x00\xfe\xff",
}


def relevant(data: bytes) -> bool:
    """Whether a file may name CUDA or HIP at all; where not, nothing else is looked at."""
    return _HINTS.search(data) is not None


def plan_file(source: SourceFile, context: Context) -> FilePlan:
    """Plan one file. Never raises for any content; what is not understood is a finding."""
    if source.ascii_compatible:
        return _plan(source, context)
    mark = _UTF[source.encoding]
    try:
        recoded = source.data[len(mark) :].decode(source.encoding).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        return replace(
            _base(source),
            status=FileStatus.UNREADABLE,
            note=f"not valid {source.encoding.upper()} ({error.reason}); save it as UTF-8",
        )
    plan = _plan(SourceFile(source.path, recoded), context)
    output = None if plan.output is None else mark + plan.output.decode().encode(source.encoding)
    return replace(plan, output=output, digest=_digest(source.data), size=len(source.data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _base(source: SourceFile) -> FilePlan:
    return FilePlan(
        path=source.path.as_posix(),
        status=FileStatus.UNTOUCHED,
        size=len(source.data),
        lines=source.data.count(b"\n") + (not source.data.endswith(b"\n") and bool(source.data)),
        digest=_digest(source.data),
    )


def _plan(source: SourceFile, context: Context) -> FilePlan:
    base = _base(source)
    if not relevant(source.data):
        return base
    unit = Unit(source)
    findings = _without_shadows(registry.run(unit, context))
    changes: list[Change] = []
    own: list[OwnUse] = []
    for item in name_changes(unit, context):
        if isinstance(item, OwnUse):
            own.append(item)
        else:
            changes.append(item)
    changes.extend(namespace_changes(unit, context))
    changes.extend(header_changes(unit, context))
    findings.extend(_own_name_notes(own, unit, context))

    chosen = {id(f.change): f.change for f in findings if _applied(f, context)}
    edits = EditSet(len(source.data))
    lost = {id(c) for c in edits.extend([*(c for c in chosen.values() if c), *changes])}
    findings = [_demoted(f) if id(f.change) in lost else f for f in findings]
    accepted = [c for c in [*chosen.values(), *changes] if c and id(c) not in lost]
    needs = _needs(accepted, unit)
    labels = Counter(c.label or "other" for c in accepted)
    if needs:
        lines = [_include_line(unit.path, need) for need in needs]
        if edits.add(Change(includes.insertions(unit, lines))):
            labels["headers"] += len(lines)
    findings.extend(_parse_notes(unit, context))
    output = edits.apply(source.data) if len(edits) else None
    if output == source.data:
        output = None
    return replace(
        base,
        status=FileStatus.CONVERTED if output is not None else FileStatus.UNTOUCHED,
        edits=tuple(edits.ordered()) if output is not None else (),
        output=output,
        findings=tuple(sorted(set(findings), key=_by_place)),
        edits_by_label=tuple(sorted(labels.items())) if output is not None else (),
        error_bytes=sum(len(s) for s in unit.error_spans),
        error_lines=tuple(unit.line(s.start) for s in unit.error_spans),
        needs=tuple(n for n in needs if n.startswith('"')),
    )


def _without_shadows(findings: Iterable[Finding]) -> list[Finding]:
    """Drop "no counterpart" where a check of its own says more about the same name."""
    listed = list(findings)
    explained = {f.span.start for f in listed if f.slug != "no-hip-equivalent"}
    return [f for f in listed if f.slug != "no-hip-equivalent" or f.span.start not in explained]


def _by_place(finding: Finding) -> tuple[int, int, str]:
    return finding.line, finding.column, finding.code


def _applied(finding: Finding, context: Context) -> bool:
    if finding.change is None:
        return False
    if finding.change.safety is Safety.AUTO:
        return True
    wanted = context.options.assist
    return finding.slug in wanted or finding.code in wanted or "all" in wanted


def _demoted(finding: Finding) -> Finding:
    return replace(
        finding,
        action=Action.FLAG,
        change=None,
        hint=(finding.hint + " " if finding.hint else "")
        + "Another rewrite claims the same text; this one was left out.",
    )


def _needs(changes: Iterable[Change], unit: Unit) -> list[str]:
    """Headers that accepted changes want and the file does not include yet, in order."""
    present = {name.decode("utf-8", "replace") for name in includes.included(unit)}
    found: dict[str, None] = {}
    for change in changes:
        for need in change.needs:
            name = need.strip('<>"')
            tail = name.rsplit("/", 1)[-1]
            if name not in present and not (
                need.startswith('"') and any(p.rsplit("/", 1)[-1] == tail for p in present)
            ):
                found[need] = None
    return sorted(found, key=lambda need: need.startswith('"'))


def _include_line(path: str, need: str) -> bytes:
    if need.startswith('"'):
        return f'#include "{includes.relative(path, need.strip(chr(34)))}"'.encode()
    return f"#include {need}".encode()


def _own_name_notes(own: list[OwnUse], unit: Unit, context: Context) -> Iterable[Finding]:
    if "own-name" not in context.hazards:
        return
    first: dict[bytes, OwnUse] = {}
    for use in own:
        first.setdefault(use.own.name, use)
    for name, use in first.items():
        yield context.finding(
            "own-name",
            unit,
            Span(use.token.start, use.token.end),
            name=name.decode("utf-8", "replace"),
        )


def _parse_notes(unit: Unit, context: Context) -> Iterable[Finding]:
    """One finding a region that the parser could not read; above ``info`` where it may matter."""
    if "unparsed" not in context.hazards:
        return
    for region in unit.error_spans:
        risky = _RISKY.search(unit.data, region.start, region.end)
        yield context.finding(
            "unparsed",
            unit,
            region,
            severity=Severity.WARNING if risky else Severity.INFO,
            size=len(region),
            what=(
                f"it names {risky.group().decode()}, which hazard checks look for"
                if risky
                else "names in it were converted; it holds nothing that checks look for"
            ),
        )
