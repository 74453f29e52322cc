"""What to launch and with which data: kernel specifications read from TOML.

A file holds an array of tables, `[[kernel]]` (or `[[verify.kernel]]` in `hipport.toml`):

    [[kernel]]
    name = "scale"                       # the kernel; `kernel = "scale<float>"` where they differ
    grid = [4]
    block = [256]
    args = [
      { name = "x", dtype = "float32", shape = [1000], init = "normal" },
      { name = "y", dtype = "float32", shape = [1000], role = "out" },
      { name = "a", dtype = "float32", value = 1.5 },
    ]
    tolerance = { ulp = 1 }

docs: every key is described beside the class it fills. Data come from seeded generators whose
stream NumPy guarantees never to change (`RandomState`), so a seed is as good as the data.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Array = np.ndarray[Any, Any]

# What an output holds before the launch: any byte pattern that a kernel hardly writes by itself.
POISON = 0xA5
_ML_TYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "int": "int32",
    "unsigned": "uint32",
    "bf16": "bfloat16",
    "bool": "uint8",
}
_NUMPY_TYPES = (
    *(f"{sign}int{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")),
    "float16",
    "float32",
    "float64",
)
_INIT_KEYS = {
    "poison": (),
    "zeros": (),
    "ones": (),
    "fill": ("value",),
    "values": ("values",),
    "arange": ("start", "step"),
    "normal": ("mean", "std"),
    "uniform": ("low", "high"),
    "integers": ("low", "high"),
    "bits": (),
    "permutation": (),
    "offsets": ("low", "high"),
    "npy": ("file",),
    "fields": ("fields",),
}
_NEEDED = {"fill": "value", "values": "values", "npy": "file", "fields": "fields"}


class SpecError(ValueError):
    """A specification that cannot be used: names the file, the key and what is wrong."""

    def __init__(self, path: Path | str, key: str, message: str) -> None:
        super().__init__(f"{path}: {key}: {message}" if key else f"{path}: {message}")
        self.path = Path(path)
        self.key = key
        self.message = message


class Role(str, Enum):
    """Whether the kernel reads a buffer, writes it, or both."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"


class Renamed(str, Enum):
    """What a renamed or converted source does: computes right or wrong, faults, or need not build
    (if it does, it computes right)."""

    RIGHT = "right"
    WRONG = "wrong"
    FAULT = "fault"
    COMPILE = "compile"


def _right() -> Mapping[int, Renamed]:
    return {32: Renamed.RIGHT, 64: Renamed.RIGHT}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """When two elements agree: at most `ulp` representable values apart, or
    |actual - expected| <= abs + rel * |expected|. All zero, the default, means bit by bit
    (integers always are)."""

    ulp: float = 0.0
    rel: float = 0.0
    abs: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether only equal elements agree."""
        return not (self.ulp or self.rel or self.abs)


@dataclass(frozen=True, slots=True)
class Launch:
    """Blocks, threads a block (x, y, z) and bytes of dynamic LDS."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds: int = 0

    @property
    def threads(self) -> int:
        """Threads of one block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True, slots=True)
class Initialiser:
    """How a buffer is filled. `kind` is one of

    zeros, ones, fill (value), values (values, repeated), arange (start, step),
    normal (mean, std), uniform (low, high), integers (low inclusive, high exclusive),
    bits (every bit pattern alike), permutation (of 0..size-1),
    offsets (starts at 0, grows by integers in low..high: the row starts of a sparse matrix),
    npy (file, beside the specification), fields (one initialiser for each field of a structure),
    poison (what outputs get).

    `seed` is None where it follows from the names of kernel and buffer."""

    kind: str
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    sort: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in device memory: a pointer argument, or a `__device__`/`__constant__` variable."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    role: Role
    init: Initialiser
    tolerance: Tolerance | None = None
    any_order: bool = False

    @property
    def is_output(self) -> bool:
        """Whether the buffer is compared after the launch."""
        return self.role is not Role.IN


@dataclass(frozen=True, slots=True)
class Scalar:
    """An argument passed by value, a structure included; `data` are its bytes."""

    name: str
    dtype: np.dtype[Any]
    data: bytes

    @property
    def value(self) -> Any:
        """The value as a NumPy scalar."""
        return np.frombuffer(self.data, self.dtype)[0]


Argument = Buffer | Scalar


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One kernel with its launch and data.

    `name` is unique in its file, `kernel` is what the source calls it (template arguments
    included). `reference` names a NumPy function. `hazards` are the slugs of what goes wrong when
    the source is merely renamed, `renamed` what then happens on wavefronts of 32 and 64 lanes,
    `converted` what is left after conversion.
    `noisy` says that results change from run to run (float atomics)."""

    name: str
    kernel: str
    source: Path
    launch: Launch
    args: tuple[Argument, ...]
    symbols: tuple[Buffer, ...] = ()
    tolerance: Tolerance = Tolerance()
    reference: str | None = None
    hazards: tuple[str, ...] = ()
    renamed: Mapping[int, Renamed] = field(default_factory=_right)
    converted: Mapping[int, Renamed] = field(default_factory=_right)
    options: tuple[str, ...] = ()
    noisy: bool = False
    note: str = ""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Arguments and symbols that live in device memory."""
        return (*(a for a in self.args if isinstance(a, Buffer)), *self.symbols)

    @property
    def outputs(self) -> tuple[Buffer, ...]:
        """The buffers that are compared."""
        return tuple(b for b in self.buffers if b.is_output)

    @property
    def scalars(self) -> dict[str, Any]:
        """Arguments passed by value, by name."""
        return {a.name: a.value for a in self.args if isinstance(a, Scalar)}

    def data(self, seed: int = 0) -> dict[str, Array]:
        """Fresh arrays for all buffers; another `seed` gives other data of the same kind."""
        return {b.name: _fill(b, self, seed) for b in self.buffers}

    def tolerance_of(self, buffer: Buffer) -> Tolerance:
        """The tolerance for one output."""
        return self.tolerance if buffer.tolerance is None else buffer.tolerance


def element_type(name: str) -> np.dtype[Any]:
    """The NumPy type of an element type's name. Raises KeyError, or ImportError for the
    narrow float formats where ml_dtypes is not installed."""
    name = _ALIASES.get(name, name)
    if name in _NUMPY_TYPES:
        return np.dtype(name)
    if name in _ML_TYPES:
        import ml_dtypes

        narrow: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return narrow
    raise KeyError(name)


def _seed_of(buffer: Buffer, spec: KernelSpec, seed: int) -> int:
    own = buffer.init.seed
    if own is None:
        own = zlib.crc32(f"{spec.name}.{buffer.name}".encode())
    return (own + 0x9E3779B1 * seed) % 2**32


def _fill(buffer: Buffer, spec: KernelSpec, seed: int) -> Array:
    generator = np.random.RandomState(_seed_of(buffer, spec, seed))
    return fill(buffer.init, buffer.dtype, buffer.shape, generator, spec.source.parent)


def fill(
    init: Initialiser,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    generator: np.random.RandomState,
    folder: Path,
) -> Array:
    """An array of `shape` and `dtype` as `init` says. Raises SpecError for a bad `.npy`."""
    size = int(np.prod(shape, dtype=np.int64))
    if init.kind == "fields":
        out: Array = np.zeros(shape, dtype)
        for key, inner in init.params["fields"].items():
            part = out[key]
            part[...] = fill(inner, part.dtype, part.shape, generator, folder)
        return out
    flat = _flat(init, dtype, size, generator, folder)
    if init.sort:
        flat = np.sort(flat)
    return np.ascontiguousarray(flat.astype(dtype, copy=False).reshape(shape))


def _flat(
    init: Initialiser,
    dtype: np.dtype[Any],
    size: int,
    generator: np.random.RandomState,
    folder: Path,
) -> Array:
    get = init.params.get
    kind = init.kind
    out: Array
    if kind == "poison":
        return np.full(size * dtype.itemsize, POISON, np.uint8).view(dtype)
    if kind == "bits":
        out = np.frombuffer(generator.bytes(size * dtype.itemsize), dtype).copy()
        return out
    if kind == "zeros":
        return np.zeros(size, dtype)
    if kind == "ones":
        return np.ones(size, dtype)
    if kind == "fill":
        return np.full(size, get("value"), dtype)
    if kind == "values":
        return np.resize(np.array(get("values")).astype(dtype), size)
    if kind == "arange":
        out = get("start", 0) + get("step", 1) * np.arange(size)
        return out
    if kind == "normal":
        out = get("mean", 0.0) + get("std", 1.0) * generator.standard_normal(size)
        return out
    if kind == "uniform":
        low, high = get("low", 0.0), get("high", 1.0)
        out = low + (high - low) * generator.random_sample(size)
        return out
    if kind == "integers":
        return generator.randint(get("low", 0), get("high"), size, dtype=np.int64)
    if kind == "permutation":
        return generator.permutation(size)
    if kind == "offsets":
        steps = generator.randint(get("low", 0), get("high"), max(size - 1, 0), dtype=np.int64)
        return np.concatenate([[0], np.cumsum(steps)])[:size]
    file = folder / str(get("file"))
    try:
        loaded: Array = np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise SpecError(file, "", f"cannot be read as an array ({error})") from error
    if loaded.size != size or loaded.dtype != dtype:
        raise SpecError(
            file,
            "",
            f"holds {loaded.size} elements of {loaded.dtype}, the specification says "
            f"{size} of {dtype}",
        )
    return loaded.reshape(-1)


class _Table:
    """A TOML table that knows where it is, hands out checked values and refuses unknown keys."""

    def __init__(self, path: Path, key: str, data: object) -> None:
        self.path = path
        self.key = key
        if not isinstance(data, dict):
            raise SpecError(path, key, f"must be a table, not {type(data).__name__}")
        self.data = dict(data)

    def fail(self, key: str, message: str) -> SpecError:
        return SpecError(self.path, f"{self.key}.{key}" if key else self.key, message)

    def take(self, key: str, kinds: type | tuple[type, ...], default: Any = None) -> Any:
        if key not in self.data:
            if default is None:
                raise self.fail(key, "is missing")
            return default
        value = self.data.pop(key)
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            names = " or ".join(k.__name__ for k in wanted)
            raise self.fail(key, f"must be {names}, not {type(value).__name__}")
        return value

    def done(self) -> None:
        if self.data:
            key = next(iter(self.data))
            raise self.fail(key, "is not a known key")


def load_specs(path: Path | str) -> tuple[KernelSpec, ...]:
    """All kernel specifications of a TOML file, in order.

    Raises SpecError naming the file and the key for anything missing, unknown or out of range."""
    path = Path(path)
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SpecError(path, "", error.strerror or "cannot be read") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(path, "", f"not TOML: {error}") from error
    return parse_specs(data, path)


def parse_specs(data: Mapping[str, Any], path: Path) -> tuple[KernelSpec, ...]:
    """The specifications in parsed TOML: `[[kernel]]`, or `[[verify.kernel]]`."""
    prefix, tables = "kernel", data.get("kernel")
    if tables is None and isinstance(data.get("verify"), dict):
        prefix, tables = "verify.kernel", data["verify"].get("kernel")
    if tables is None:
        return ()
    if not isinstance(tables, list):
        raise SpecError(path, prefix, "must be an array of tables, [[kernel]]")
    specs: list[KernelSpec] = []
    seen: set[str] = set()
    for index, item in enumerate(tables):
        spec = _kernel(_Table(path, f"{prefix}[{index}]", item))
        if spec.name in seen:
            raise SpecError(path, f"{prefix}[{index}].name", f"{spec.name!r} is there twice")
        seen.add(spec.name)
        specs.append(spec)
    return tuple(specs)


def _kernel(table: _Table) -> KernelSpec:
    name = table.take("name", str)
    table.key += f" ({name})"
    spec = KernelSpec(
        name=name,
        kernel=table.take("kernel", str, name),
        source=table.path.parent / table.take("source", str, table.path.stem + ".cu"),
        launch=Launch(
            _three(table, "grid"), _three(table, "block"), _natural(table, "lds", default=0)
        ),
        args=tuple(_argument(t) for t in _tables(table, "args")),
        symbols=tuple(_symbol(t) for t in _tables(table, "symbols")),
        tolerance=_tolerance(table) or Tolerance(),
        reference=table.take("reference", str, "") or None,
        hazards=_strings(table, "hazards"),
        renamed=_states(table, "renamed"),
        converted=_states(table, "converted"),
        options=_strings(table, "options"),
        noisy=table.take("noisy", bool, False),
        note=table.take("note", str, "-").removeprefix("-"),
    )
    table.done()
    names = [a.name for a in (*spec.args, *spec.symbols)]
    for one in names:
        if names.count(one) > 1:
            raise table.fail("args", f"{one!r} is there twice")
    if spec.launch.threads > 1024:
        raise table.fail("block", f"{spec.launch.threads} threads; a block has at most 1024")
    return spec


def _tables(table: _Table, key: str) -> list[_Table]:
    items = table.take(key, list, [] if key == "symbols" else None)
    return [_Table(table.path, f"{table.key}.{key}[{i}]", item) for i, item in enumerate(items)]


def _strings(table: _Table, key: str) -> tuple[str, ...]:
    items = table.take(key, list, [])
    if not all(isinstance(i, str) for i in items):
        raise table.fail(key, "must be an array of strings")
    return tuple(items)


def _natural(table: _Table, key: str, default: int | None = None) -> int:
    if key not in table.data and default is not None:
        return default
    value = table.take(key, int)
    if value < 0:
        raise table.fail(key, f"must not be negative, is {value}")
    return int(value)


def _three(table: _Table, key: str) -> tuple[int, int, int]:
    value = table.take(key, (int, list))
    values = [value] if isinstance(value, int) else value
    if not 1 <= len(values) <= 3 or any(
        not isinstance(v, int) or isinstance(v, bool) or v < 1 for v in values
    ):
        raise table.fail(key, f"must be one to three positive integers, is {value!r}")
    values = [*values, 1, 1][:3]
    return values[0], values[1], values[2]


def _tolerance(table: _Table) -> Tolerance | None:
    if "tolerance" not in table.data:
        return None
    inner = _Table(table.path, f"{table.key}.tolerance", table.take("tolerance", dict))
    values = {key: float(inner.take(key, (int, float), 0.0)) for key in ("ulp", "rel", "abs")}
    inner.done()
    for key, value in values.items():
        if not value >= 0 or value == float("inf"):
            raise inner.fail(key, f"must be finite and not negative, is {value}")
    return Tolerance(**values)


def _states(table: _Table, key: str) -> Mapping[int, Renamed]:
    out = dict(_right())
    if key not in table.data:
        return out
    inner = _Table(table.path, f"{table.key}.{key}", table.take(key, dict))
    for lanes in out:
        out[lanes] = _state(inner, f"wave{lanes}")
    inner.done()
    return out


def _state(table: _Table, key: str) -> Renamed:
    word = table.take(key, str, "right")
    try:
        return Renamed(word)
    except ValueError:
        known = ", ".join(r.value for r in Renamed)
        raise table.fail(key, f"{word!r} is none of {known}") from None


def _dtype(table: _Table) -> np.dtype[Any]:
    if "fields" in table.data:
        fields = table.take("fields", list)
        out: list[tuple[str, np.dtype[Any], tuple[int, ...]]] = []
        for item in fields:
            if (
                not isinstance(item, list)
                or len(item) not in (2, 3)
                or not all(isinstance(i, str) for i in item[:2])
            ):
                raise table.fail("fields", 'must be pairs such as ["x", "float32"], a count third')
            count = (item[2],) if len(item) == 3 else ()
            out.append((item[0], _named(table, "fields", item[1]), count))
        # C's own layout; an over-aligned structure needs its padding spelled out.
        return np.dtype(out, align=True)
    return _named(table, "dtype", table.take("dtype", str))


def _named(table: _Table, key: str, name: str) -> np.dtype[Any]:
    try:
        return element_type(name)
    except KeyError:
        known = ", ".join((*_NUMPY_TYPES, *_ML_TYPES))
        raise table.fail(key, f"unknown element type {name!r} (known: {known})") from None
    except ImportError:
        raise table.fail(key, f"{name} needs the Python package ml_dtypes") from None


def _argument(table: _Table) -> Argument:
    if "shape" in table.data:
        return _buffer(table)
    name = table.take("name", str)
    table.key += f" ({name})"
    dtype = _dtype(table)
    value = table.take("value", (int, float, list, bool))
    table.done()
    try:
        if dtype.fields is None:
            # NumPy wraps or refuses out-of-range integers depending on its version; we refuse.
            if dtype.kind in "iu" and not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
                raise OverflowError(f"{value} does not fit {dtype}")
            data = np.array(value).astype(dtype).tobytes()
            if len(data) != dtype.itemsize:
                raise ValueError("one value is needed")
        else:
            # Into zeros, so that padding bytes are always the same.
            whole = np.zeros(1, dtype)
            whole[0] = tuple(tuple(v) if isinstance(v, list) else v for v in value)
            data = whole.tobytes()
    except (TypeError, ValueError, OverflowError) as error:
        raise table.fail("value", f"not a value of {dtype}: {error}") from None
    return Scalar(name, dtype, data)


def _symbol(table: _Table) -> Buffer:
    if "shape" not in table.data:
        table.data["shape"] = [1]
    return _buffer(table)


def _buffer(table: _Table) -> Buffer:
    name = table.take("name", str)
    table.key += f" ({name})"
    dtype = _dtype(table)
    shape = table.take("shape", (int, list))
    sizes = [shape] if isinstance(shape, int) else shape
    if not sizes or any(not isinstance(v, int) or isinstance(v, bool) or v < 0 for v in sizes):
        raise table.fail("shape", f"must be whole numbers, is {shape!r}")
    word = table.take("role", str, "in")
    try:
        role = Role(word)
    except ValueError:
        raise table.fail("role", f"{word!r} is none of in, out, inout") from None
    init = _initialiser(table, role)
    _check_range(table, init, dtype)
    order = table.take("order", str, "given")
    if order not in ("given", "any"):
        raise table.fail("order", f"{order!r} is none of given, any")
    buffer = Buffer(
        name, dtype, tuple(sizes), role, init, _tolerance(table), any_order=order == "any"
    )
    table.done()
    return buffer


def _initialiser(table: _Table, role: Role) -> Initialiser:
    if "init" not in table.data:
        if role is not Role.OUT:
            raise table.fail("init", "is missing: what the kernel reads must be given")
        return Initialiser("poison")
    value = table.take("init", (str, dict))
    inner = _Table(
        table.path, f"{table.key}.init", {"kind": value} if isinstance(value, str) else value
    )
    return _init_table(inner)


def _check_range(table: _Table, init: Initialiser, dtype: np.dtype[Any]) -> None:
    """Refuse what NumPy would wrap, or refuse only once the data are made."""
    if init.kind == "fields":
        for key, inner in init.params["fields"].items():
            if dtype.fields is None or key not in dtype.fields:
                raise table.fail(f"init.fields.{key}", "is no field of the structure")
            _check_range(table, inner, dtype.fields[key][0].base)
        return
    key = {"fill": "value", "values": "values", "integers": "high", "offsets": "high"}.get(
        init.kind
    )
    if key is None:
        return
    values = init.params[key] if key == "values" else [init.params[key]]
    if key == "high":
        values = [init.params.get("low", 0), values[0] - 1]
    if not values or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in values):
        raise table.fail(f"init.{key}", "must hold numbers, at least one")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        for v in values:
            if (isinstance(v, float) and not v.is_integer()) or not info.min <= v <= info.max:
                raise table.fail(f"init.{key}", f"{v} is no value of {dtype}")


def _init_table(inner: _Table) -> Initialiser:
    kind = inner.take("kind", str)
    if kind not in _INIT_KEYS:
        raise inner.fail("kind", f"unknown initialiser {kind!r} (known: {', '.join(_INIT_KEYS)})")
    seed = _natural(inner, "seed") if "seed" in inner.data else None
    sort = inner.take("sort", bool, False)
    params: dict[str, Any] = {}
    for key in _INIT_KEYS[kind]:
        if key not in inner.data:
            continue
        kinds: tuple[type, ...] = (int, float)
        if key == "values":
            kinds = (list,)
        elif key == "file":
            kinds = (str,)
        elif key == "fields":
            kinds = (dict,)
        params[key] = inner.take(key, kinds)
    inner.done()
    needed = _NEEDED.get(kind)
    if needed is not None and needed not in params:
        raise inner.fail(needed, f"is missing for {kind}")
    if kind in ("integers", "offsets") and not params.get("high", 0) > params.get("low", 0):
        raise inner.fail("high", "must be above low")
    if kind == "fields":
        params["fields"] = {
            key: _init_table(
                _Table(
                    inner.path,
                    f"{inner.key}.fields.{key}",
                    {"kind": value} if isinstance(value, str) else value,
                )
            )
            for key, value in params["fields"].items()
        }
    return Initialiser(kind, seed, params, sort)


def with_launch(spec: KernelSpec, launch: Launch) -> KernelSpec:
    """The same kernel and data with another launch."""
    return replace(spec, launch=launch)


def find(specs: Sequence[KernelSpec], name: str) -> KernelSpec:
    """The specification called `name`; KeyError lists what there is."""
    for spec in specs:
        if spec.name == name:
            return spec
    raise KeyError(f"no kernel {name!r}; there are: {', '.join(s.name for s in specs)}")
