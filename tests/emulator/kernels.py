"""The kernel fixtures for tests: specifications, references, renamed and converted sources."""

from __future__ import annotations

import functools
import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from hipport.api import Options, check_paths
from hipport.data import rules_dir
from hipport.emulator.devcompile import compile_device
from hipport.report.model import FilePlan
from hipport.verify.backends import Outcome
from hipport.verify.backends.emulator import EmulatorBackend
from hipport.verify.numerics import compare_outputs
from hipport.verify.spec import KernelSpec, load_specs

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "fixtures" / "kernels"
TARGETS = ("gfx90a", "gfx942", "gfx1100")
WAVE = {"gfx90a": 64, "gfx942": 64, "gfx1100": 32}
SPECS = tuple(spec for file in sorted(FOLDER.glob("*.toml")) for spec in load_specs(file))
# Sources whose kernels cooperate within a warp: renaming alone does not port them.
WAVEFRONT = ("wavefront", "lane_value", "lookalikes", "cooperative")
Arrays = Mapping[str, np.ndarray[Any, Any]]

# What a rename with sed does: headers, nothing else (kernels call no runtime functions).
_HEADERS = {
    b"<cuda_runtime.h>": b"<hip/hip_runtime.h>",
    b"<cuda_fp16.h>": b"<hip/hip_fp16.h>",
    b"<cooperative_groups.h>": b"<hip/hip_cooperative_groups.h>",
}


@functools.lru_cache(maxsize=1)
def _references() -> ModuleType:
    where = importlib.util.spec_from_file_location("kernel_reference", FOLDER / "reference.py")
    assert where is not None
    assert where.loader is not None
    module = importlib.util.module_from_spec(where)
    where.loader.exec_module(module)
    return module


_EXPECTED: dict[tuple[str, int], Arrays] = {}


def expected(spec: KernelSpec, seed: int = 0) -> Arrays:
    """What the NumPy reference computes."""
    key = spec.name, seed
    if key not in _EXPECTED:
        _EXPECTED[key] = _compute(spec, seed)
    return _EXPECTED[key]


def _compute(spec: KernelSpec, seed: int) -> Arrays:
    arrays = spec.data(seed)
    with np.errstate(all="ignore"):
        getattr(_references(), spec.reference or spec.name)(**arrays, **spec.scalars)
    return {b.name: arrays[b.name] for b in spec.outputs}


@functools.lru_cache(maxsize=64)
def _recorded_file(stem: str) -> dict[str, Any]:
    with np.load(FOLDER / "nvidia" / f"{stem}.npz", allow_pickle=False) as stored:
        return dict(stored)


def recorded(spec: KernelSpec, seed: int = 0) -> Arrays:
    """What an NVIDIA H200 computed."""
    stored = _recorded_file(spec.source.stem)
    out = {}
    for buffer in spec.outputs:
        raw = stored[f"{spec.name}/{seed}/{buffer.name}"]
        out[buffer.name] = raw.view(buffer.dtype).reshape(buffer.shape)
    return out


def about(spec: KernelSpec) -> dict[str, Any]:
    """How the source's references were recorded."""
    return dict(json.loads(str(_recorded_file(spec.source.stem)["about"])))


@functools.lru_cache(maxsize=64)
def renamed(source: Path) -> bytes:
    """The source, merely renamed."""
    text = source.read_bytes()
    for old, new in _HEADERS.items():
        text = text.replace(old, new)
    return _with_header(text, "renamed.h")


def _with_header(text: bytes, name: str) -> bytes:
    end = text.index(b"\n", text.rindex(b"#include")) + 1
    return text[:end] + f'#include "{FOLDER / name}"\n'.encode() + text[end:]


@functools.lru_cache(maxsize=1)
def _plans() -> dict[str, FilePlan]:
    report = check_paths([FOLDER], Options(jobs=1))
    return {Path(plan.path).name: plan for plan in report.files if plan.path.endswith(".cu")}


def findings(spec: KernelSpec) -> set[str]:
    """Slugs of what is reported inside the kernel, from its head to the next one's."""
    lines = spec.source.read_text().splitlines()
    heads = [i for i, line in enumerate(lines, 1) if "__global__" in line]
    name = re.compile(rf"\b{re.escape(re.split('[<:]', spec.kernel)[0])}\b")
    start = next(i for i in heads if name.search(lines[i - 1]))
    end = min((i for i in heads if i > start), default=len(lines) + 1)
    return {f.slug for f in _plans()[spec.source.name].findings if start <= f.line < end}


def converted(source: Path) -> bytes:
    """The source as `hipport convert` writes it by default.

    The header added to it repairs a mismatch of Debian's packages, no part of any port."""
    output = _plans()[source.name].output
    assert output is not None
    text = re.sub(rb'"[./]*(hipport_\w+\.h)"', rb'"\1"', output)
    return _with_header(text, "old_headers.h")


def _compile(source: bytes, target: str, options: tuple[str, ...]) -> bytes:
    compat = f"-I{rules_dir() / 'compat'}"
    return compile_device(source.decode(), target, ("-O2", "-w", compat, *options))


@functools.lru_cache(maxsize=8)
def backend(target: str) -> EmulatorBackend:
    """The emulator for one target; compiled sources are shared between tests."""
    return EmulatorBackend(target, _compile)


def run(spec: KernelSpec, source: bytes, target: str, seed: int = 0) -> Outcome:
    """Launch one fixture."""
    return backend(target).run(source, spec, spec.data(seed))


def differences(spec: KernelSpec, actual: Arrays, wanted: Arrays) -> list[str]:
    """One line for each output that is not what it should be."""
    return [c.line() for c in compare_outputs(spec, actual, wanted) if not c.verdict.good]
