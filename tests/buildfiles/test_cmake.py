from __future__ import annotations

from pathlib import Path

import pytest

from hipport.api import Options
from hipport.checks import Context
from hipport.convert.other import plan_other
from hipport.parse.facts import ProjectFacts
from hipport.project.kinds import Kind
from hipport.report.model import FilePlan
from hipport.rules import api, hazards
from hipport.source import SourceFile


def plan(text: str, options: Options | None = None) -> FilePlan:
    context = Context(api.load(), hazards.load(), ProjectFacts(), options or Options())
    return plan_other(SourceFile(Path("CMakeLists.txt"), text.encode()), Kind.CMAKE, context)


def converted(text: str, options: Options | None = None) -> str:
    result = plan(text, options)
    output = (result.output or text.encode()).decode()
    again = plan(output, options)
    assert again.output is None, "a second conversion changes more"
    return output


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("project(x LANGUAGES CXX CUDA)\n", "project(x LANGUAGES CXX HIP)\n"),
        ("enable_language( CUDA ) # CUDA\n", "enable_language( HIP ) # CUDA\n"),
        ("find_package(CUDAToolkit 11.8 REQUIRED)\n", "find_package(hip REQUIRED)\n"),
        (
            "find_package(CUDA QUIET COMPONENTS a b REQUIRED)\n",
            "find_package(hip QUIET REQUIRED)\n",
        ),
        (
            "set(CMAKE_CUDA_STANDARD 17)\n"
            "set(CMAKE_CUDA_FLAGS \"${CMAKE_CUDA_FLAGS} -lineinfo\")\n",
            "set(CMAKE_HIP_STANDARD 17)\n"
            "set(CMAKE_HIP_FLAGS \"${CMAKE_HIP_FLAGS} -gline-tables-only\")\n",
        ),
        (
            "set(CMAKE_CUDA_ARCHITECTURES \"80;90\" CACHE STRING \"\")\n",
            "set(CMAKE_HIP_ARCHITECTURES \"gfx90a;gfx942;gfx1100\" CACHE STRING \"\")\n",
        ),
        (
            "target_compile_options(t PRIVATE\n  $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v\n"
            "  --expt-relaxed-constexpr -O3>\n  -Wall)\n",
            "target_compile_options(t PRIVATE\n  $<$<COMPILE_LANGUAGE:HIP>:\n   -O3>\n  -Wall)\n",
        ),
        ("target_compile_features(t PUBLIC cuda_std_17)\n",
         "target_compile_features(t PUBLIC hip_std_17)\n"),
        ("set_target_properties(t PROPERTIES CUDA_STANDARD 14 FOLDER x)\n",
         "set_target_properties(t PROPERTIES HIP_STANDARD 14 FOLDER x)\n"),
        ("cuda_add_library(t a.cpp)\n", "add_library(t a.cpp)\n"),
        (
            "add_library(t a.cu\n  b.cpp)\n",
            "add_library(t a.cu\n  b.cpp)\n"
            "set_source_files_properties(a.cu PROPERTIES LANGUAGE HIP)\n",
        ),
        (
            "  file(GLOB SRC src/*.cu src/*.cpp)\n",
            "  file(GLOB SRC src/*.cu src/*.cpp)\n  set(SRC_HIP ${SRC})\n"
            '  list(FILTER SRC_HIP INCLUDE REGEX "\\\\.cu$")\n'
            "  set_source_files_properties(${SRC_HIP} PROPERTIES LANGUAGE HIP)\n",
        ),
    ],
)  # fmt: skip
def test_rewritten(before: str, after: str) -> None:
    assert converted(before).replace("  \n", "\n") == after.replace("  \n", "\n")


def test_libraries_are_found_and_linked() -> None:
    text = converted(
        "cmake_minimum_required(VERSION 3.18)\nproject(x CUDA)\nfind_package(CUDAToolkit)\n"
        "target_link_libraries(x CUDA::cudart CUDA::cublas CUDA::cufft)\n"
    )
    assert "cmake_minimum_required(VERSION 3.21)" in text
    assert (
        "find_package(hip)\nfind_package(hipblas REQUIRED)\nfind_package(hipfft REQUIRED)" in text
    )
    assert "target_link_libraries(x hip::host roc::hipblas hip::hipfft)" in text


def test_separable_compilation_becomes_options() -> None:
    text = converted("set_target_properties(t PROPERTIES CUDA_SEPARABLE_COMPILATION ON)\n")
    assert "CUDA_SEPARABLE" not in text
    assert "target_compile_options(t PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)" in text
    assert "target_link_options(t PRIVATE -fgpu-rdc --hip-link)" in text


def test_the_targets_asked_for() -> None:
    text = converted("set(CMAKE_CUDA_ARCHITECTURES 80)\n", Options(targets=("gfx1201",)))
    assert text == "set(CMAKE_HIP_ARCHITECTURES gfx1201)\n"


@pytest.mark.parametrize(
    "text",
    [
        "# project(x LANGUAGES CUDA)\n",
        'message(STATUS "CUDA is CUDA::cudart")\n',
        'option(USE_CUDA "" ON)\nif(USE_CUDA)\nendif()\n',
        "add_executable(a main.cpp)\n",
    ],
)
def test_left_alone(text: str) -> None:
    assert plan(text).output is None
    assert not plan(text).findings


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("cuda_select_nvcc_arch_flags(F Auto)\n", "cmake-old-module"),
        ("target_link_libraries(x CUDA::nppc)\n", "cmake-cuda-target"),
        ("set(CMAKE_CUDA_FLAGS --maxrregcount=64)\n", "register-budget"),
        ("set(CMAKE_CUDA_FLAGS --use_fast_math)\n", "fast-math-flag"),
    ],
)
def test_reported(text: str, slug: str) -> None:
    assert slug in {f.slug for f in plan(text).findings}
