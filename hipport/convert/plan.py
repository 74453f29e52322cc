"""One file's plan: what changes, what is found, what the new bytes are."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import replace

from hipport.checks import registry
from hipport.checks.context import Context
from hipport.convert import includes
from hipport.convert.embedded import cpp_strings
from hipport.convert.names import OwnUse, header_changes, name_changes, namespace_changes
from hipport.findings import Action, Finding, Severity
from hipport.parse.tokens import Kind
from hipport.parse.unit import Unit
from hipport.report.model import FilePlan, FileStatus
from hipport.source import Change, EditSet, Safety, SourceFile, Span

_HINTS = re.compile(
    rb"cuda|CUDA|\bcu[A-Z]|\bCU[A-Z_]|nccl|NCCL|nvtx|nvrtc|nvml|NVML|cupti|CUPTI|thrust|\bcub\b"
    rb"|cudnn|CUDNN|__global__|__device__|__host__|__shared__|__constant__|__launch_bounds__"
    rb"|__shfl|__ballot|__syncwarp|warpSize|__half|half2|nv_bfloat|__nv_|\basm\b|curand|cufft|<<<"
    rb"|cutlass|cute::|__HIP|tiled_partition|coalesced_threads"
)
_CODE_HINTS = frozenset(
    b"__global__ __device__ __host__ __shared__ __constant__ __launch_bounds__ __syncwarp warpSize "
    b"threadIdx blockIdx blockDim __CUDACC__ __NVCC__ __CUDA_ARCH__ CUDA_VERSION CUDART_VERSION "
    b"tiled_partition coalesced_threads __activemask __syncthreads __managed__ thrust cub cutlass "
    b"cute nvcuda __HIP_PLATFORM_HCC__ __HIP_PLATFORM_NVCC__ __HIPCC__ __HIP_PLATFORM_AMD__".split()
)
_PREFIXES = (b"cuda", b"CUDA", b"cudnn", b"nvml", b"nccl", b"cupti", b"__shfl", b"__ballot",
             b"hip", b"nvtx", b"__nv_", b"__half")  # fmt: skip
_WORD = re.compile(rb"[A-Za-z_]\w*")
_RISKY = re.compile(
    rb"__(?:shfl|ballot|any|all|activemask|match|reduce|syncwarp|popc|ffs|clz)\w*|\basm\b"
    rb"|tiled_partition|coalesced_threads|warpSize|__launch_bounds__|__CUDA_ARCH__"
)
_PTX = re.compile(rb"%%?(?:laneid|tid|ctaid|lanemask)|\\.[usbf](?:16|32|64)\\b|bar\\.sync|membar")
_UTF = {
    "utf-16-le": b"\xff\xfe",
    "utf-16-be": b"\xfe\xff",
    "utf-32-le": b"\xff\xfe\x00\x00",
    "utf-32-be": b"\x00\x00\xfe\xff",
}


def relevant(unit: Unit, context: Context) -> bool:
    """Whether a file names CUDA or HIP in its code; where not, nothing else is looked at."""
    if unit.is_cuda:
        return True
    if _HINTS.search(unit.data) is None:
        return False
    api = context.api
    words = set(_WORD.findall(unit.data))
    if not _names_cuda(words, context) and not (b"asm" in words and _PTX.search(unit.data)):
        return False
    # The words may stand in comments and strings alone: lexing tells.
    if _names_cuda(unit.identifiers, context) or b"asm" in unit.identifiers:
        return True
    return any(t.kind is Kind.HEADER and t.text[1:-1].strip() in api.headers for t in unit.tokens)


def _names_cuda(words: Set[bytes], context: Context) -> bool:
    api = context.api
    return (
        not words.isdisjoint(_CODE_HINTS)
        or not words.isdisjoint(api.renames)
        or not words.isdisjoint(api.unmapped)
        or not words.isdisjoint(api.namespaces)
        or any(word.startswith(_PREFIXES) for word in words)
    )


def plan_file(source: SourceFile, context: Context) -> FilePlan:
    """Plan one file. Never raises for any content; what is not understood is a finding."""
    if source.ascii_compatible:
        return _plan(source, context)
    mark = _UTF[source.encoding]
    try:
        recoded = source.data[len(mark) :].decode(source.encoding).encode()
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        return replace(
            base_plan(source),
            status=FileStatus.UNREADABLE,
            note=f"not valid {source.encoding.upper()} ({error.reason}); save it as UTF-8",
        )
    plan = _plan(SourceFile(source.path, recoded), context)
    output = None if plan.output is None else mark + plan.output.decode().encode(source.encoding)
    return replace(plan, output=output, digest=_digest(source.data), size=len(source.data))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def base_plan(source: SourceFile) -> FilePlan:
    return FilePlan(
        path=source.path.as_posix(),
        status=FileStatus.UNTOUCHED,
        size=len(source.data),
        lines=source.data.count(b"\n") + (not source.data.endswith(b"\n") and bool(source.data)),
        digest=_digest(source.data),
    )


def _plan(source: SourceFile, context: Context) -> FilePlan:
    base = base_plan(source)
    unit = Unit(source)
    if not relevant(unit, context):
        return base
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
    for inner in cpp_strings(unit, context):
        if isinstance(inner, Finding):
            findings.append(inner)
        else:
            changes.append(inner)
    findings.extend(_own_name_notes(own, unit, context))

    edits, findings, accepted = compose(len(source.data), context, findings, changes)
    needs = _needs(accepted, unit)
    labels = Counter(c.label or "other" for c in accepted)
    if needs:
        lines = [_include_line(unit.path, need) for need in needs]
        if edits.add(Change(includes.insertions(unit, lines))):
            labels["headers"] += len(lines)
    if unit.is_cuda or findings or len(edits):
        findings.extend(_parse_notes(unit, context))
    output = edits.apply(source.data) if len(edits) else None
    if output == source.data:
        output = None
    return replace(
        base,
        status=FileStatus.CONVERTED if output is not None else FileStatus.UNTOUCHED,
        edits=tuple(edits.ordered()) if output is not None else (),
        output=output,
        findings=tuple(sorted(set(findings), key=by_place)),
        edits_by_label=tuple(sorted(labels.items())) if output is not None else (),
        error_bytes=sum(len(s) for s in unit.error_spans),
        error_lines=tuple(unit.line(s.start) for s in unit.error_spans),
        needs=tuple(n for n in needs if n.startswith('"')),
    )


def compose(
    size: int, context: Context, findings: list[Finding], changes: list[Change]
) -> tuple[EditSet, list[Finding], list[Change]]:
    """Choose what is applied: the edits, the findings (losers demoted), the accepted changes."""
    chosen = {id(f.change): f.change for f in findings if _applied(f, context)}
    wanted = [*(c for c in chosen.values() if c is not None), *changes]
    edits = EditSet(size)
    lost = {id(c) for c in edits.extend(wanted)}

    def outcome(finding: Finding) -> Finding:
        if id(finding.change) in lost:
            return _demoted(finding)
        # An assisted rewrite that was asked for leaves nothing to a person.
        applied = id(finding.change) in chosen and finding.action is Action.ASSIST
        return replace(finding, action=Action.AUTO) if applied else finding

    kept = [outcome(finding) for finding in findings]
    return edits, kept, [c for c in wanted if id(c) not in lost]


def _without_shadows(findings: Iterable[Finding]) -> list[Finding]:
    """Quieten "no counterpart" where a check of its own says more about the same name.

    It is dropped where that check rewrites the name, and information beside one that explains it.
    """
    listed = list(findings)
    explained: dict[int, bool] = {}
    for finding in listed:
        if finding.slug != "no-hip-equivalent" and finding.severity is not Severity.INFO:
            rewritten = finding.action is Action.AUTO
            start = finding.span.start
            explained[start] = explained.get(start, False) or rewritten
    kept: list[Finding] = []
    for finding in listed:
        if finding.slug == "no-hip-equivalent" and finding.span.start in explained:
            if explained[finding.span.start]:
                continue
            finding = replace(finding, severity=Severity.INFO)
        kept.append(finding)
    return kept


def by_place(finding: Finding) -> tuple[int, int, str]:
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
    """One note a file on names that look like CUDA's and are the code base's own."""
    if not own:
        return
    names = list(dict.fromkeys(use.own.name.decode("utf-8", "replace") for use in own))
    listed = ", ".join(f"'{n}'" for n in names[:4]) + (", ..." if len(names) > 4 else "")
    yield context.finding(
        "own-name",
        unit,
        Span(own[0].token.start, own[0].token.end),
        names=listed,
        count=len(own),
    )


def _parse_notes(unit: Unit, context: Context) -> Iterable[Finding]:
    """A warning for each unread region that may matter, and one note a file for the others."""
    quiet: list[Span] = []
    for region in unit.error_spans:
        risky = _RISKY.search(unit.data, region.start, region.end)
        if risky is None:
            quiet.append(region)
            continue
        yield context.finding(
            "unparsed",
            unit,
            region,
            size=len(region),
            what=f"it names {risky.group().decode()}, which hazard checks look for",
        )
    if quiet:
        more = f" ({len(quiet)} regions in the file)" if len(quiet) > 1 else ""
        yield context.finding(
            "unparsed",
            unit,
            quiet[0],
            severity=Severity.INFO,
            size=sum(len(s) for s in quiet),
            what=f"names were converted; nothing that checks look for stands there{more}",
        )
