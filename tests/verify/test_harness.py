"""The generated launch program: its files, and that both vendors' compilers take it."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from hipport.verify import harness
from hipport.verify.spec import load_specs

SOURCE = """#include <hip/hip_runtime.h>
struct Pair { float a; int b; };
__constant__ float factor[2];
template <class T> __global__ void scale(const T* x, T* y, Pair p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * factor[0] + p.a;
}
#ifndef HIPPORT_HARNESS
int main() { return 7; }
#endif
"""
SPEC = """
[[kernel]]
name = "scale"
kernel = "scale<float>"
source = "k.hip"
grid = 2
block = 32
args = [
  { name = "x", dtype = "float32", shape = 50, init = "normal" },
  { name = "y", dtype = "float32", shape = 50, role = "out" },
  { name = "p", fields = [["a", "float32"], ["b", "int32"]], value = [1.5, 2] },
  { name = "n", dtype = "int32", value = 50 },
]
symbols = [{ name = "factor", dtype = "float32", shape = 2, init = "ones", role = "inout" }]
"""


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "k.toml").write_text(SPEC)
    (tmp_path / "k.hip").write_text(SOURCE)
    return load_specs(tmp_path / "k.toml")[0]


def test_input_holds_launch_arguments_and_symbols(spec):
    data = spec.data()
    raw = harness.encode_input(spec, data)
    assert raw[:4] == harness.MAGIC
    at, blocks = 8, []
    for _ in range(struct.unpack_from("<I", raw, 4)[0]):
        (size,) = struct.unpack_from("<Q", raw, at)
        blocks.append(raw[at + 8 : at + 8 + size])
        at += 8 + size
    assert at == len(raw)
    assert struct.unpack("<7I", blocks[0]) == (2, 1, 1, 32, 1, 1, 0)
    assert b"".join(blocks[1::2]) == b"bosso"
    assert blocks[2] == data["x"].tobytes()
    assert blocks[6] == struct.pack("<fi", 1.5, 2)
    assert blocks[10] == np.ones(2, np.float32).tobytes()


def encode(*blocks: bytes) -> bytes:
    head = harness.MAGIC + struct.pack("<I", len(blocks))
    return head + b"".join(struct.pack("<Q", len(b)) + b for b in blocks)


def test_outputs_of_every_run_are_read(spec):
    y, f = np.arange(50, dtype=np.float32), np.array([3, 4], np.float32)
    raw = encode(y.tobytes(), f.tobytes(), (-y).tobytes(), f.tobytes())
    first, second = harness.decode_output(spec, raw, repeat=2)
    np.testing.assert_array_equal(first["y"], y)
    np.testing.assert_array_equal(second["y"], -y)
    np.testing.assert_array_equal(second["factor"], f)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: b"", "not an output file"),
        (lambda raw: b"XXXX" + raw[4:], "not an output file"),
        (lambda raw: raw[:-1], "8 bytes, expected 8|factor"),
        (lambda raw: encode(b"1234"), "1 buffers, expected 2"),
        (lambda raw: encode(b"1234", b"12345678"), "y: 4 bytes, expected 200"),
    ],
)
def test_damaged_outputs_are_refused(spec, change, message):
    raw = encode(bytes(200), bytes(8))
    with pytest.raises(ValueError, match=message):
        harness.decode_output(spec, change(raw))


def test_program_builds_for_amd_and_says_what_is_missing(spec, tmp_path):
    """Without a GPU the built program must refuse in one line, with the status for it."""
    text = tmp_path / "harness.hip"
    text.write_text(harness.generate(spec.source, [spec]))
    program = tmp_path / "harness"
    command = ["hipcc", "--offload-arch=gfx90a", "-O1", "-w", "-o", str(program), str(text)]
    assert shutil.which("hipcc"), "the Debian package hipcc is needed"
    # hipcc drives nvcc where it finds one, unless told otherwise.
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    usage = subprocess.run([str(program)], capture_output=True, text=True)
    assert usage.returncode == 2
    assert "0 scale" in usage.stderr
    assert "libamdhip64" in subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    start = tmp_path / "in"
    start.write_bytes(harness.encode_input(spec, spec.data()))

    def run(file: Path) -> subprocess.CompletedProcess[str]:
        words = [str(program), "0", str(file), str(tmp_path / "out")]
        return subprocess.run(words, capture_output=True, text=True)

    missing = run(tmp_path / "none")
    assert (missing.returncode, missing.stderr) == (
        2,
        f"harness: {tmp_path / 'none'}: cannot be opened\n",
    )
    (tmp_path / "short").write_bytes(start.read_bytes()[:-3])
    short = run(tmp_path / "short")
    assert short.returncode == 2
    assert "ends early" in short.stderr


def test_wrong_argument_size_is_refused_before_the_launch(spec, tmp_path):
    changed = SPEC.replace('{ name = "n", dtype = "int32"', '{ name = "n", dtype = "int64"')
    (tmp_path / "other.toml").write_text(changed)
    other = load_specs(tmp_path / "other.toml")[0]
    assert len(harness.encode_input(other, other.data())) == 4 + len(
        harness.encode_input(spec, spec.data())
    )
    assert "an argument's size differs" in harness.generate(spec.source, [spec])
