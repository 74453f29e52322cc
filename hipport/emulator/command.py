"""`hipport run`: one kernel, run on the CPU from its source."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hipport.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from hipport.emulator.watch import Watch

    Array = np.ndarray[Any, Any]

_TYPES = {
    "f16": "<f2", "f32": "<f4", "f64": "<f8", "i8": "<i1", "u8": "<u1", "i16": "<i2", "u16": "<u2",
    "i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8",
}  # fmt: skip
_SOURCES = (".cu", ".hip", ".cpp", ".cxx", ".cc", ".cuh", ".h", ".hpp")
_WATCHES = ("uninitialised", "races", "barriers", "lanes", "alignment")


def parse_argument(text: str) -> Any:
    """The kernel argument that `text` describes.

    - `1000`, `2.5`, `u32:7`: scalars
    - `null`: a null pointer
    - `f32[1000]`: an array of zeros; `f32[1000]=rand`, `=ones`, `=range`, or `=1,2,3` (repeated)
    - `f32=values.npy`: an array from a file

    Raises UsageError when it is none of these.
    """
    import numpy as np

    if text == "null":
        return None
    if match := re.fullmatch(r"(\w+):(\S+)", text):
        if match[1] not in _TYPES:
            raise UsageError(
                f"argument {text!r}: type {match[1]} is not one of {', '.join(_TYPES)}"
            )
        try:
            number: Any = float(match[2]) if match[1][0] == "f" else int(match[2], 0)
            return np.array(number, _TYPES[match[1]])[()]
        except (ValueError, OverflowError) as error:
            raise UsageError(f"argument {text!r}: {error}") from None
    match = re.fullmatch(r"(\w+)(?:\[(\d+(?:[x,]\d+)*)\])?(?:=(.+))?", text)
    if match and match[1] in _TYPES:
        return _array(text, np.dtype(_TYPES[match[1]]), match[2], match[3])
    try:
        return int(text, 0)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise UsageError(
                f"argument {text!r} is no number, no TYPE:NUMBER, no TYPE[COUNT] and not null"
            ) from None


def _array(text: str, dtype: Any, shape_text: str | None, fill: str | None) -> Array:
    import numpy as np

    shape = [int(n) for n in re.split("[x,]", shape_text)] if shape_text else None
    if fill is not None and fill.endswith(".npy"):
        try:
            found = np.ascontiguousarray(np.load(fill))
        except (OSError, ValueError) as error:
            raise UsageError(f"argument {text!r}: cannot read {fill} ({error})") from None
        return found.astype(dtype, copy=True)
    if shape is None:
        raise UsageError(f"argument {text!r} needs a size, as in {text.split('=')[0]}[1000]")
    count = int(np.prod(shape))
    if fill is None or fill == "zeros":
        return np.zeros(shape, dtype)
    if fill == "ones":
        return np.ones(shape, dtype)
    if fill == "range":
        return np.arange(count).astype(dtype).reshape(shape)
    if fill == "rand":
        rng = np.random.default_rng(0)
        if dtype.kind == "f":
            return rng.random(shape).astype(dtype)
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -100), min(info.max, 100), shape).astype(dtype)
    try:
        values = np.array([float(v) for v in fill.split(",")]).astype(dtype)
    except ValueError:
        raise UsageError(
            f"argument {text!r}: {fill!r} is not zeros, ones, range, rand or numbers"
        ) from None
    return np.resize(values, shape)


def parse_extent(text: str, what: str) -> tuple[int, ...]:
    """`256`, `16,16` or `8x8x4` as numbers. Raises UsageError."""
    try:
        values = tuple(int(v) for v in re.split("[x,]", text))
    except ValueError:
        values = ()
    if not 1 <= len(values) <= 3 or any(v < 1 for v in values):
        raise UsageError(f"{what} must be one to three positive numbers, got {text!r}")
    return values


def converted(path: Path) -> bytes:
    """The HIP text of a CUDA file, by the converter; HIP text comes back as it is."""
    from hipport.api import Mode, Options, convert_paths

    report = convert_paths([path], Options(jobs=1), mode=Mode.PLAN)
    for plan in report.files:
        if plan.output is not None:
            return plan.output
    return path.read_bytes()


def compiled(path: Path, target: str, options: Sequence[str], convert: bool) -> bytes:
    """The code object of a source file for `target`; code objects come back as they are."""
    from hipport.emulator.devcompile import compile_device

    data = path.read_bytes()
    if data.startswith((b"\x7fELF", b"__CLANG_OFFLOAD_BUNDLE__")):
        return data
    text = converted(path) if convert and path.suffix in _SOURCES else data
    include = [f"-I{path.resolve().parent}"]
    source = text.decode(errors="surrogateescape")
    # Messages and faults name the user's file, not the cached copy.
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    head = "" if "hip_runtime.h" in source else "#include <hip/hip_runtime.h>\n"
    source = f'{head}#line 1 "{quoted}"\n{source}'
    return compile_device(source, target, [*(options or ["-O2"]), *include])


def run_command(
    source: Path,
    kernel: str,
    grid: str,
    block: str,
    args: Sequence[str] = (),
    *,
    target: str = "gfx942",
    lds: int = 0,
    watch: Watch | None = None,
    options: Sequence[str] = (),
    convert: bool = True,
    save: Path | None = None,
    deterministic: bool = False,
    echo: Callable[[str], None] = print,
) -> int:
    """Run one kernel and print what its buffers hold afterwards.

    Returns 0, or 1 when the kernel faulted (the fault is printed as one line).
    Raises UsageError when the source, kernel or arguments do not fit.
    """
    import numpy as np

    from hipport.emulator import EmulatorError, KernelFault, load

    values = [parse_argument(a) for a in args]
    extents = parse_extent(grid, "--grid"), parse_extent(block, "--block")
    try:
        module = load(compiled(source, target, options, convert))
        found = module.kernels[kernel]
        before = [v.copy() if isinstance(v, np.ndarray) else None for v in values]
        status = 0
        try:
            result = found.launch(
                *extents, values, lds=lds, watch=watch, deterministic=deterministic
            )
            echo(
                f"{found.demangled} on {module.target}: {result.instructions} instructions in "
                f"{result.seconds:.3f} s"
            )
        except KernelFault as fault:
            echo(f"fault: {fault}")
            status = 1
    except KeyError as error:
        raise UsageError(str(error.args[0])) from None
    except (EmulatorError, OSError) as error:
        raise UsageError(str(error)) from None
    outputs = {}
    for argument, value, old in zip(found.arguments, values, before, strict=True):
        if isinstance(value, np.ndarray) and old is not None:
            changed = int(np.count_nonzero(value.view(np.uint8) != old.view(np.uint8)))
            if changed:
                outputs[argument.name] = value
                shown = np.array2string(value.reshape(-1), threshold=16, edgeitems=6)
                echo(f"{argument.name} {value.dtype}{list(value.shape)} = {shown}")
    if save is not None:
        with save.open("wb") as file:
            np.savez(file, **outputs)  # type: ignore[arg-type]
    return status


@click.command("run")
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--kernel", required=True, help="The kernel's name, plain or as a full signature.")
@click.option("--grid", required=True, metavar="N[,N[,N]]", help="Blocks.")
@click.option("--block", required=True, metavar="N[,N[,N]]", help="Threads a block.")
@click.option(
    "--arg", "args", multiple=True, metavar="VALUE",
    help="One kernel argument, in order: 1000, 2.5, u32:7, null, f32[1000], f32[1000]=rand "
    "(ones, range, 1,2,3), f32=FILE.npy.",
)  # fmt: skip
@click.option("--target", default="gfx942", show_default=True, help="gfx90a, gfx942 or gfx1100.")
@click.option("--lds", default=0, help="Bytes of dynamic shared memory.")
@click.option(
    "--watch", "watches", multiple=True, type=click.Choice([*_WATCHES, "all"]),
    help="A check to switch on; may be given more than once.",
)  # fmt: skip
@click.option("--option", "options", multiple=True, help="An option for the compiler.")
@click.option("--as-is", is_flag=True, help="Compile the file without converting it.")
@click.option("--deterministic", is_flag=True, help="Blocks one after another, in order.")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Outputs as .npz.")
def run(
    source: Path,
    kernel: str,
    grid: str,
    block: str,
    args: tuple[str, ...],
    target: str,
    lds: int,
    watches: tuple[str, ...],
    options: tuple[str, ...],
    as_is: bool,
    deterministic: bool,
    save: Path | None,
) -> None:
    """Run a kernel of a .cu, .hip or code object file on the CPU.

    CUDA source is converted first. The machine code of the target is executed exactly; no GPU is
    needed. Exit status 1 means the kernel faulted.
    """
    from hipport.emulator.watch import Watch

    watch = Watch.all() if "all" in watches else Watch(**dict.fromkeys(watches, True))
    status = run_command(
        source, kernel, grid, block, args, target=target, lds=lds, watch=watch, options=options,
        convert=not as_is, save=save, deterministic=deterministic, echo=click.echo,
    )  # fmt: skip
    if status:
        sys.exit(status)
