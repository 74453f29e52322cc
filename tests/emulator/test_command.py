"""`hipport run`."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from hipport.emulator.command import parse_argument, parse_extent, run
from hipport.errors import UsageError

SAXPY = """#include <cuda_runtime.h>
__global__ void saxpy(float a, const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
"""


@pytest.fixture
def saxpy(tmp_path):
    path = tmp_path / "saxpy.cu"
    path.write_text(SAXPY)
    return str(path)


def call(*words):
    return CliRunner().invoke(run, [*words])


def test_cuda_source_is_converted_compiled_and_run(saxpy, tmp_path, target):
    saved = tmp_path / "out.npz"
    result = call(
        saxpy, "--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "2", "--arg",
        "f32[1000]=range", "--arg", "f32[1000]=1", "--arg", "1000", "--target", target, "--save",
        str(saved),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "float32[1000]" in result.output
    with np.load(saved) as found:
        (y,) = found.values()
    np.testing.assert_array_equal(y, 2 * np.arange(1000, dtype=np.float32) + 1)


def test_a_fault_names_the_users_file_and_sets_the_status(saxpy):
    result = call(
        saxpy, "--kernel", "saxpy", "--grid", "4", "--block", "256", "--arg", "2", "--arg",
        "f32[1000]", "--arg", "f32[1000]", "--arg", "1001",
    )  # fmt: skip
    assert result.exit_code == 1
    assert "out-of-bounds" in result.output
    assert "saxpy.cu:4" in result.output


def test_unknown_kernel(saxpy):
    result = call(saxpy, "--kernel", "nope", "--grid", "1", "--block", "1")
    assert isinstance(result.exception, UsageError)
    assert "saxpy(float, float const*, float*, int)" in str(result.exception)


def test_arguments():
    assert parse_argument("12") == 12
    assert parse_argument("2.5") == 2.5
    assert parse_argument("null") is None
    value = parse_argument("u16:7")
    assert (value, value.dtype) == (7, np.uint16)
    np.testing.assert_array_equal(parse_argument("i32[2x3]=range"), np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(parse_argument("f64[5]=1,2"), [1, 2, 1, 2, 1])
    assert parse_argument("f32[4]=rand").dtype == np.float32


@pytest.mark.parametrize(
    "text", ["f32", "x9:1", "f32[3]=what", "hello", "u8:300", "f32=absent.npy"]
)
def test_bad_arguments_are_one_line(text):
    with pytest.raises(UsageError) as caught:
        parse_argument(text)
    assert "\n" not in str(caught.value)


def test_extents():
    assert parse_extent("16,4", "--block") == (16, 4)
    with pytest.raises(UsageError):
        parse_extent("0", "--grid")
