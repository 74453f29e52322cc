"""The generated launch program: its files, and that both vendors' compilers take it."""

from __future__ import annotations

import os
import re
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


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program for SPEC, built for AMD."""
    folder = tmp_path_factory.mktemp("harness")
    (folder / "k.toml").write_text(SPEC)
    (folder / "k.hip").write_text(SOURCE)
    spec = load_specs(folder / "k.toml")[0]
    text = folder / "harness.hip"
    text.write_text(harness.generate(spec.source, [spec]))
    assert shutil.which("hipcc"), "the Debian package hipcc is needed"
    command = ["hipcc", "--offload-arch=gfx90a", "-O1", "-w", "-o", folder / "harness", text]
    # hipcc drives nvcc where it finds one, unless told otherwise.
    environment = {**os.environ, "HIP_PLATFORM": "amd"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder / "harness"


def launch(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, words)], capture_output=True, text=True)


def test_program_is_built_for_amd_and_lists_its_kernels(program):
    linked = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    assert "libamdhip64" in linked
    usage = launch(program)
    assert (usage.returncode, usage.stderr.splitlines()[1:]) == (2, ["  0 scale"])
    assert launch(program, 1, "in", "out").returncode == 2


def test_bad_input_files_are_refused(program, spec, tmp_path):
    raw = harness.encode_input(spec, spec.data())
    missing = launch(program, 0, tmp_path / "none", tmp_path / "out")
    assert (missing.returncode, missing.stderr) == (
        2,
        f"harness: {tmp_path / 'none'}: cannot be opened\n",
    )
    for text, message in ((raw[:-3], "ends early"), (b"XX" + raw, "is no input file")):
        (tmp_path / "in").write_bytes(text)
        done = launch(program, 0, tmp_path / "in", tmp_path / "out")
        assert done.returncode == 2
        assert message in done.stderr


def test_wrong_argument_size_is_refused_before_anything_is_launched(program, tmp_path):
    changed = SPEC.replace('{ name = "n", dtype = "int32"', '{ name = "n", dtype = "int64"')
    (tmp_path / "other.toml").write_text(changed)
    other = load_specs(tmp_path / "other.toml")[0]
    (tmp_path / "in").write_bytes(harness.encode_input(other, other.data()))
    done = launch(program, 0, tmp_path / "in", tmp_path / "out")
    assert done.returncode == 2
    assert "scale: an argument's size differs" in done.stderr


def test_a_machine_without_the_gpu_gets_one_clear_line(program, spec, tmp_path):
    data = spec.data()
    (tmp_path / "in").write_bytes(harness.encode_input(spec, data))
    done = launch(program, 0, tmp_path / "in", tmp_path / "out")
    if done.returncode == 0:  # there is an AMD GPU: then it must compute
        (out,) = harness.decode_output(spec, (tmp_path / "out").read_bytes())
        np.testing.assert_allclose(out["y"], data["x"] + 1.5)
        return
    assert done.returncode == 3
    assert re.fullmatch(r"harness: \w+: hipError\w+.*\n|harness: .*GPU.*\n", done.stderr)
    assert not (tmp_path / "out").exists()
