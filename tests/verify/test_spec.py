"""Kernel specifications: what is read, and what is refused with file and key named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hipport.verify.spec import (
    Buffer,
    Launch,
    Renamed,
    Role,
    Scalar,
    SpecError,
    Tolerance,
    find,
    load_specs,
)

GOOD = """
[[kernel]]
name = "scale"
kernel = "scale<float>"
source = "k.cu"
grid = 4
block = [32, 4]
lds = 128
tolerance = { rel = 1e-6 }
hazards = ["ballot-width"]
renamed = { wave64 = "wrong" }
args = [
  { name = "x", dtype = "float", shape = [10, 3], init = { kind = "normal", mean = 5 } },
  { name = "y", dtype = "float", shape = 9, role = "out", order = "any", tolerance = { ulp = 2 } },
  { name = "n", dtype = "int32", value = -7 },
  { name = "p", value = [1, 2.5, [3, 4]], fields = [["a", "uint8"], ["b", "double"],
    ["c", "int32", 2]] },
]
[[kernel.symbols]]
name = "table"
dtype = "uint16"
shape = 4
init = { kind = "values", values = [1, 2] }
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "k.toml"
    file.write_text(text)
    return file


def one(folder: Path, **changes: str):
    text = GOOD
    for old, new in changes.items():
        text = text.replace(old, new)
    return load_specs(write(folder, text))[0]


def test_everything_is_read(tmp_path):
    spec = one(tmp_path)
    assert (spec.name, spec.kernel, spec.source) == ("scale", "scale<float>", tmp_path / "k.cu")
    assert spec.launch == Launch((4, 1, 1), (32, 4, 1), 128)
    assert spec.launch.threads == 128
    assert spec.renamed == {32: Renamed.RIGHT, 64: Renamed.WRONG}
    x, y, n, p = spec.args
    assert isinstance(x, Buffer)
    assert (x.role, x.shape, x.dtype) == (Role.IN, (10, 3), np.float32)
    assert isinstance(y, Buffer)
    assert y.any_order
    assert spec.tolerance_of(y) == Tolerance(ulp=2)
    assert spec.tolerance_of(x) == Tolerance(rel=1e-6)
    assert isinstance(n, Scalar)
    assert n.value == -7
    assert isinstance(p, Scalar)
    # C's layout: a at 0, b at 8, c at 16 and 20.
    assert len(p.data) == 24
    assert p.data[8:16] == np.float64(2.5).tobytes()
    assert p.data[1:8] == bytes(7)
    assert [b.name for b in spec.outputs] == ["y"]
    assert [b.name for b in spec.buffers] == ["x", "y", "table"]


def test_data_repeat_and_depend_on_seed_and_name(tmp_path):
    spec = one(tmp_path)
    first, again, other = spec.data(), spec.data(), spec.data(1)
    np.testing.assert_array_equal(first["x"], again["x"])
    assert not np.array_equal(first["x"], other["x"])
    assert abs(float(first["x"].mean()) - 5) < 0.5
    np.testing.assert_array_equal(first["table"], [1, 2, 1, 2])
    assert set(first["y"].view(np.uint8)) == {0xA5}
    # Frozen: recorded references hang on these very numbers.
    np.testing.assert_allclose(first["x"][0], [4.58646870, 5.01132012, 2.80211687], rtol=1e-6)


@pytest.mark.parametrize(
    ("init", "check"),
    [
        ("{ kind = 'arange', start = 3, step = 2 }", lambda v: v.tolist()[:3] == [3, 5, 7]),
        ("'permutation'", lambda v: sorted(v.tolist()) == list(range(30))),
        ("{ kind = 'integers', low = -2, high = 3 }", lambda v: set(v) == {-2, -1, 0, 1, 2}),
        ("{ kind = 'offsets', low = 0, high = 4 }", lambda v: v[0] == 0 and (np.diff(v) < 4).all()),
        ("{ kind = 'fill', value = 9 }", lambda v: set(v) == {9}),
        ("{ kind = 'uniform', low = 2, high = 3 }", lambda v: ((v >= 2) & (v < 3)).all()),
        ("{ kind = 'integers', high = 99, sort = true }", lambda v: (np.diff(v) >= 0).all()),
        ("'ones'", lambda v: set(v) == {1}),
        ("'zeros'", lambda v: not v.any()),
    ],
)
def test_initialisers(tmp_path, init, check):
    text = f"""
[[kernel]]
name = "k"
grid = 1
block = 1
args = [{{ name = "x", dtype = "float64", shape = 30, init = {init} }}]
"""
    assert check(load_specs(write(tmp_path, text))[0].data()["x"])


def test_npy_and_narrow_floats(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32))
    text = """
[[verify.kernel]]
name = "k"
grid = 1
block = 1
args = [
  { name = "x", dtype = "float32", shape = [2, 3], init = { kind = "npy", file = "x.npy" } },
  { name = "b", dtype = "bf16", shape = 4, init = { kind = "fill", value = 1.5 } },
  { name = "f", dtype = "float8_e4m3fn", shape = 4, init = { kind = "fill", value = 448 } },
]
"""
    data = load_specs(write(tmp_path, text))[0].data()
    np.testing.assert_array_equal(data["x"], [[0, 1, 2], [3, 4, 5]])
    assert data["b"].tobytes() == b"\xc0\x3f" * 4
    assert data["f"].tobytes() == b"\x7e" * 4
    np.save(tmp_path / "x.npy", np.arange(5, dtype=np.float32))
    with pytest.raises(SpecError, match=r"x\.npy.*holds 5 elements"):
        load_specs(tmp_path / "k.toml")[0].data()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("grid = 4", "", r"kernel\[0\] \(scale\)\.grid: is missing"),
        ("grid = 4", "grid = 0", "grid: must be one to three positive integers, is 0"),
        ("grid = 4", "grid = [1, 2, 3, 4]", "grid: must be one to three"),
        ("grid = 4", "grid = '4'", "grid: must be int or list, not str"),
        ("block = [32, 4]", "block = [512, 4]", "2048 threads; a block has at most 1024"),
        ("lds = 128", "lds = -1", "lds: must not be negative"),
        ("lds = 128", "lsd = 128", "lsd: is not a known key"),
        ('dtype = "float"', 'dtype = "flaot"', r"\(x\)\.dtype: unknown element type 'flaot'"),
        ('"normal"', '"norml"', r"init\.kind: unknown initialiser 'norml'"),
        ("mean = 5", "maen = 5", r"init\.maen: is not a known key"),
        ('role = "out"', 'role = "put"', "role: 'put' is none of in, out, inout"),
        ('role = "out"', 'role = "inout"', r"\(y\)\.init: is missing"),
        ('order = "any"', 'order = "none"', "order: 'none' is none of given, any"),
        ("value = -7", "value = 3000000000", "value: not a value of int32"),
        ("value = -7", "value = 'x'", "value: must be int or float or list or bool, not str"),
        ("[1, 2.5, [3, 4]]", "[1, 2.5]", "value: not a value of"),
        ("values = [1, 2]", "values = [1, 65536]", r"init\.values: 65536 is no value of uint16"),
        ("values = [1, 2]", "values = []", r"init\.values: must hold numbers, at least one"),
        ("values = [1, 2]", "values = ['a']", r"init\.values: must hold numbers"),
        (
            '"values", values = [1, 2]',
            '"integers", low = -1, high = 3',
            r"init\.high: -1 is no value of uint16",
        ),
        ('"values", values = [1, 2]', '"integers", low = 3, high = 3', "high: must be above low"),
        ('"values", values = [1, 2]', '"fill"', r"init\.value: is missing for fill"),
        ("rel = 1e-6", "rel = -1", r"tolerance\.rel: must be finite and not negative"),
        ("rel = 1e-6", "relative = 1", r"tolerance\.relative: is not a known key"),
        ('wave64 = "wrong"', 'wave64 = "bad"', "'bad' is none of right, wrong, fault, compile"),
        ('name = "n"', 'name = "x"', "'x' is there twice"),
        ("[[kernel]]", "[kernel]", r"must be an array of tables"),
        ("[[kernel]]", "[[kernel]", "not TOML"),
    ],
)
def test_errors_name_file_and_key(tmp_path, old, new, message):
    assert old in GOOD
    with pytest.raises(SpecError, match=message) as caught:
        load_specs(write(tmp_path, GOOD.replace(old, new)))
    assert str(tmp_path / "k.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_name_twice_and_no_file(tmp_path):
    with pytest.raises(SpecError, match=r"kernel\[1\]\.name: 'scale' is there twice"):
        load_specs(write(tmp_path, GOOD + GOOD))
    with pytest.raises(SpecError, match="No such file"):
        load_specs(tmp_path / "none.toml")


def test_find_lists_what_there_is(tmp_path):
    specs = load_specs(write(tmp_path, GOOD))
    assert find(specs, "scale") is specs[0]
    with pytest.raises(KeyError, match="there are: scale"):
        find(specs, "scael")
