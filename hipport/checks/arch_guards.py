"""Conditions on architecture and version macros that HIP does not define."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hipport.checks.context import Context
from hipport.checks.registry import check
from hipport.findings import Action, Finding, Severity
from hipport.parse.conditions import HIP_ENV, UNDEFINED, Branch, Chain, Condition, Env, chains
from hipport.parse.tokens import Kind, directive_name
from hipport.parse.unit import Unit
from hipport.source import Change, Edit, Safety, Span

_ARCH = b"__CUDA_ARCH__"
_VERSIONS: dict[bytes, int] = {
    b"CUDA_VERSION": 12080, b"CUDART_VERSION": 12080, b"__CUDACC_VER_MAJOR__": 12,
    b"__CUDACC_VER_MINOR__": 8, b"__CUDACC_VER_BUILD__": 93, b"__CUDA_API_VERSION": 12080,
    b"__CUDA_API_VER_MAJOR__": 12, b"CUBLAS_VERSION": 120804, b"CUBLAS_VER_MAJOR": 12,
    b"CUSPARSE_VERSION": 12508, b"CUSPARSE_VER_MAJOR": 12, b"CUSOLVER_VERSION": 11703,
    b"CUFFT_VERSION": 11303, b"CURAND_VERSION": 10309, b"CUDNN_VERSION": 90800,
    b"CUDNN_MAJOR": 9, b"__NVCC_VER_MAJOR__": 12,
}  # fmt: skip
_KNOWS_HIP = frozenset(HIP_ENV) | {b"__HIP_DEVICE_COMPILE__"}
_ARCHITECTURES = (700, 800, 900, 1000)


def _env(base: dict[bytes, int | str]) -> Env:
    hip = {b"__CUDACC__": 1, b"__NVCC__": 1}
    return {**hip, **base}


def _knows_hip(chain: Chain) -> bool:
    """Whether some condition of the chain deals with HIP: then the code has its own answer."""
    return any(
        b.condition is not None and not b.condition.names().isdisjoint(_KNOWS_HIP)
        for b in chain.branches
    )


def _meaning(branch: Branch, unit: Unit) -> str:
    """A few words of what the branch holds, for messages."""
    text = unit.data[branch.body.start : branch.body.end]
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and not stripped.startswith((b"//", b"/*", b"*")):
            return stripped[:60].decode("utf-8", "replace")
    return "nothing"


def _wrap(condition: Condition, before: bytes, after: bytes) -> tuple[Edit, ...]:
    """Turn the condition into an ``#if`` with text around it."""
    first, last = condition.tokens[0], condition.tokens[-1]
    region = Span(first.start, last.end)
    word = condition.word
    if word in (b"ifdef", b"ifndef"):
        no = b"!" if word == b"ifndef" else b""
        new = before + no + b"defined(" + first.text + b")" + after
        return (Edit.replace(condition.head.start, first.end, b"#if " + new),)
    return Edit.wrap(region, before, after)


def _in_both_sides(unit: Unit, at: int) -> bool:
    """Whether an offset lies in a function that is compiled for host and device."""
    for node in unit.nodes.get("function_definition", ()):
        if node.start_byte <= at < node.end_byte:
            body = node.child_by_field_name("body")
            head = unit.data[node.start_byte : body.start_byte if body else node.end_byte]
            if b"__host__" in head and b"__device__" in head:
                return True
            return re.search(rb"\b\w*(?:HOST_DEVICE|HOSTDEVICE|HD)\w*\b", head) is not None
    return False


@check("cuda-arch-guard", "host-branch-on-device")
def cuda_arch_guard(unit: Unit, context: Context) -> Iterator[Finding]:
    """``__CUDA_ARCH__`` is undefined for HIP: tests of it choose the host's or the oldest path."""
    if _ARCH not in unit.identifiers:
        return
    for chain in chains(unit):
        for branch in chain.branches:
            condition = branch.condition
            if condition is None or _ARCH not in condition.names() or _knows_hip(chain):
                continue
            yield from _arch(unit, context, branch, condition)


def _arch(unit: Unit, context: Context, branch: Branch, condition: Condition) -> Iterator[Finding]:
    amd = condition.value(_env({_ARCH: UNDEFINED}))
    modern = [condition.value(_env({_ARCH: arch})) for arch in _ARCHITECTURES]
    intended = modern[1] if len(set(modern[:3])) != 1 else modern[0]
    span = Span(condition.head.start, condition.end)
    if amd is not None and amd == intended and len(set(modern)) == 1:
        return
    plain = condition.word in (b"ifdef", b"ifndef") or (
        not any(
            t.kind is Kind.NUMBER or t.text in (b"<", b">", b"<=", b">=", b"==", b"!=")
            for t in condition.tokens
        )
        and _only_defined(condition)
    )
    positive = bool(intended) if intended is not None else not amd
    before, after = (
        (b"", b" || defined(__HIP_DEVICE_COMPILE__)")
        if positive
        else (b"", b" && !defined(__HIP_DEVICE_COMPILE__)")
    )
    if condition.word in (b"if", b"elif") and len(condition.tokens) > 1 and not _closed(condition):
        before, after = b"(" + before, b")" + after
    usable = plain and amd is not None and not (positive and _as_value(unit, branch))
    safety = Safety.AUTO if usable else Safety.ASSIST
    change = Change(_wrap(condition, before, after), safety, 10, label="cuda-arch-guard")
    lives = "is compiled" if amd else "vanishes" if amd == 0 else "depends on other macros"
    yield context.finding(
        "cuda-arch-guard",
        unit,
        span,
        change=change,
        what=f"the branch '{_meaning(branch, unit)}' {lives}",
    )
    if plain and _in_both_sides(unit, span.start):
        yield context.finding(
            "host-branch-on-device",
            unit,
            span,
            action=Action.AUTO,
            severity=Severity.INFO,
        )


_DIRECTIVE = re.compile(
    rb"^[ \t]*#(?:[^\n\\]|\\\r?\n|\\.)*|//[^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL
)


def _as_value(unit: Unit, branch: Branch) -> bool:
    """Whether the branch computes with the macro, which HIP leaves undefined."""
    body = unit.data[branch.body.start : branch.body.end]
    return _ARCH in body and _ARCH in _DIRECTIVE.sub(b"", body)


def _only_defined(condition: Condition) -> bool:
    """Whether every mention of the macro is under ``defined``."""
    tokens = condition.tokens
    for i, token in enumerate(tokens):
        if token.text == _ARCH:
            before = tokens[max(0, i - 2) : i]
            if not any(t.text == b"defined" for t in before):
                return False
    return True


def _closed(condition: Condition) -> bool:
    """Whether the condition needs no parentheses to be joined with another by an operator."""
    texts = [t.text for t in condition.tokens]
    if texts[:1] == [b"!"]:
        texts = texts[1:]
    return texts in (
        [b"defined", b"(", _ARCH, b")"],
        [b"defined", _ARCH],
        [_ARCH],
    )


@check("cuda-version-guard")
def cuda_version_guard(unit: Unit, context: Context) -> Iterator[Finding]:
    """Version macros of CUDA and its libraries are undefined, which ``#if`` reads as 0."""
    named = unit.identifiers & _VERSIONS.keys()
    if not named:
        return
    now: Env = _env({**_VERSIONS, _ARCH: 900})
    gone: Env = _env({**dict.fromkeys(_VERSIONS, UNDEFINED), _ARCH: 900})
    for chain in chains(unit):
        for i, branch in enumerate(chain.branches):
            condition = branch.condition
            if condition is None or condition.names().isdisjoint(named) or _knows_hip(chain):
                continue
            cuda, amd = condition.value(now), condition.value(gone)
            older = condition.value(_env({**dict.fromkeys(_VERSIONS, 8), _ARCH: 900}))
            if cuda is not None and cuda == amd and older == cuda:
                continue
            if (
                cuda is not None
                and cuda == amd
                and not any(t.text in (b"<", b"<=") for t in condition.tokens)
            ):
                continue
            if (
                cuda is not None
                and cuda == amd
                and b"defined" not in {t.text for t in condition.tokens}
            ):
                continue
            if i == 0 and condition.word == b"ifndef" and _defines(unit, branch, condition):
                continue
            positive = bool(cuda) if cuda is not None else True
            before, after = (
                (b"", b" || defined(__HIP_PLATFORM_AMD__)")
                if positive
                else (b"", b" && !defined(__HIP_PLATFORM_AMD__)")
            )
            if condition.word in (b"if", b"elif"):
                before, after = b"(", b")" + after
            lives = "is compiled" if amd else "vanishes" if amd == 0 else "depends on other macros"
            macro = sorted(condition.names() & named)[0].decode()
            change = None
            if condition.tokens:
                change = Change(
                    _wrap(condition, before, after), Safety.ASSIST, 10, label="cuda-version-guard"
                )
            yield context.finding(
                "cuda-version-guard",
                unit,
                Span(condition.head.start, condition.end),
                change=change,
                macro=macro,
                what=f"the branch '{_meaning(branch, unit)}' {lives}",
            )


def _defines(unit: Unit, branch: Branch, condition: Condition) -> bool:
    body = unit.data[branch.body.start : branch.body.end]
    name = re.escape(condition.tokens[0].text) if condition.tokens else b"$^"
    return re.search(rb"#[ \t]*define[ \t]+" + name + rb"\b", body) is not None


@check("version-alias")
def version_alias(unit: Unit, context: Context) -> Iterator[Finding]:
    """``#define CUDA_VERSION HIP_VERSION``: passes every gate for the newest CUDA."""
    tokens = unit.code_tokens
    for i, token in enumerate(tokens[:-2]):
        if token.kind is not Kind.DIRECTIVE or directive_name(token) != b"define":
            continue
        name, value = tokens[i + 1], tokens[i + 2]
        if value.text == b"(" and i + 3 < len(tokens):
            value = tokens[i + 3]
        if name.text in _VERSIONS and value.text in (
            b"HIP_VERSION",
            b"HIPRT_VERSION",
            b"ROCM_VERSION",
            b"HIPCC_VERSION",
        ):
            yield context.finding(
                "version-alias",
                unit,
                Span(name.start, value.end),
                macro=name.text.decode(),
                value=value.text.decode(),
            )
