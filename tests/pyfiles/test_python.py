from __future__ import annotations

from pathlib import Path

import pytest

from hipport.checks import Context
from hipport.convert.other import plan_other
from hipport.parse.facts import ProjectFacts
from hipport.project.kinds import Kind
from hipport.report.model import FilePlan
from hipport.rules import api, hazards
from hipport.source import SourceFile


def plan(text: str) -> FilePlan:
    context = Context(api.load(), hazards.load(), ProjectFacts())
    return plan_other(SourceFile(Path("a.py"), text.encode()), Kind.PYTHON, context)


def converted(text: str) -> str:
    output = (plan(text).output or text.encode()).decode()
    assert plan(output).output is None, "a second conversion changes more"
    compile(output, "a.py", "exec")
    return output


def test_a_kernel_in_a_raw_string() -> None:
    text = 'K = r"""\n#include <cuda_runtime.h>\n__global__ void k(int* p) { __trap(); }\n"""\n'
    result = plan(text)
    assert "#include <hip/hip_runtime.h>" in converted(text)
    assert "__builtin_trap();" in converted(text)
    trap = next(f for f in result.findings if f.slug == "trap-builtin")
    assert (trap.line, trap.column) == (3, 29)


def test_a_kernel_in_a_string_with_escapes() -> None:
    text = 'K = "__global__ void k(int* p) {\\n  __trap();\\n}\\n// \\"x\\" {}\\n"\n'
    assert "{\\n  __builtin_trap();\\n}" in converted(text)


def test_strings_without_kernels_stay() -> None:
    for text in ('x = "cudaMalloc failed"\n', 'doc = """call __global__ functions"""\n'):
        assert plan(text).output is None


def test_a_formatted_kernel_is_reported() -> None:
    text = 'K = f"""__global__ void k(int* p) {{ p[0] = {N}; f(); }}"""\n'
    result = plan(text)
    assert result.output is None
    assert [f.slug for f in result.findings if f.needs_person] == ["kernel-string"]


SETUP = """import os
from torch.utils.cpp_extension import CUDAExtension, CUDA_HOME
if CUDA_HOME is None:
    raise SystemExit
ext = CUDAExtension("x", ["x.cu"], extra_compile_args={
    "nvcc": ["-O3", "-Xptxas", "-v", "-lineinfo"]})
os.environ["TORCH_CUDA_ARCH_LIST"] = "8.0"
"""


def test_extension_flags_are_split() -> None:
    text = converted(SETUP)
    assert "import torch\nfrom torch.utils.cpp_extension" in text
    assert (
        '(["-O3", "-gline-tables-only"] if torch.version.hip else '
        '["-O3", "-Xptxas", "-v", "-lineinfo"])'
    ) in text
    lines = {f.slug: f.line for f in plan(SETUP).findings}
    assert lines["torch-extension-flags"] == 6
    assert lines["torch-arch-list"] == 7
    assert lines["torch-cuda-home"] == 3


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = torch.cuda.is_available()\n",
        "dist.init_process_group(backend='nccl')\n",
        "print(torch.version.cuda)\n",
        'ext = dict(nvcc=["-O3"])\n',
        "with torch.cuda.amp.autocast(): pass\n",
    ],
)
def test_torch_names_stay(text: str) -> None:
    assert plan(text).output is None
    assert not plan(text).findings


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("if torch.version.cuda is not None: pass\n", "torch-version-cuda"),
        ("cap = torch.cuda.get_device_capability()\n", "torch-capability"),
    ],
)
def test_guards(text: str, slug: str) -> None:
    assert [f.slug for f in plan(text).findings] == [slug]
