"""Run kernels on the embedded device: HIP source, compiled for a target, executed on the CPU."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hipport.emulator import EmulatorError, KernelFault, Module, Watch, load
from hipport.emulator.launch import Ptr, Struct
from hipport.verify.backends import Outcome
from hipport.verify.spec import Buffer, KernelSpec

Array = np.ndarray[Any, Any]
Compiler = Callable[[bytes, str, tuple[str, ...]], bytes]


class EmulatorBackend:
    """Compiles for `target` with `compiler` (source, target, options to code object) and runs
    on the CPU. Code objects are loaded once for each source and options."""

    def __init__(self, target: str, compiler: Compiler, watch: Watch | None = None) -> None:
        self.name = f"emulator:{target}"
        self.target = target
        self._compiler = compiler
        self._watch = watch
        self._objects: dict[str, bytes] = {}

    def code_object(self, source: bytes, options: tuple[str, ...]) -> bytes:
        """The code object for a source text. Raises what the compiler raises."""
        key = hashlib.sha256(repr(options).encode() + source).hexdigest()
        if key not in self._objects:
            self._objects[key] = self._compiler(source, self.target, options)
        return self._objects[key]

    def run(
        self, source: bytes, spec: KernelSpec, data: Mapping[str, Array], repeat: int = 1
    ) -> Outcome:
        """Launch on copies of `data`; blocks in order, so that float atomics repeat."""
        code = self.code_object(source, spec.options)
        outputs: list[dict[str, Array]] = []
        seconds = 0.0
        for _ in range(repeat):
            # A fresh module a launch: device variables start as the program defines them.
            try:
                result, taken = self._launch(load(code), spec, data)
            except KernelFault as fault:
                return Outcome(fault=str(fault), seconds=seconds)
            outputs.append(result)
            seconds += taken
        return Outcome(tuple(outputs), seconds=seconds)

    def _launch(
        self, module: Module, spec: KernelSpec, data: Mapping[str, Array]
    ) -> tuple[dict[str, Array], float]:
        arrays: dict[str, Array] = {}
        for buffer in spec.buffers:
            array = np.array(data[buffer.name], order="C", copy=True)
            # The watch then refuses to write what the specification calls an input.
            array.flags.writeable = buffer.is_output
            arrays[buffer.name] = array
        arguments: list[Array | Ptr | Struct | bytes | np.generic] = []
        for argument in spec.args:
            if isinstance(argument, Buffer):
                arguments.append(arrays[argument.name])
            else:
                arguments.append(argument.data)
        for symbol in spec.symbols:
            try:
                variable = module.symbols[symbol.name]
            except KeyError as error:
                raise EmulatorError(f"{spec.name}: {error.args[0]}") from None
            variable.write(arrays[symbol.name].tobytes())
        try:
            kernel = module.kernels[spec.kernel]
        except KeyError as error:
            raise EmulatorError(f"{spec.name}: {error.args[0]}") from None
        result = kernel.launch(
            spec.launch.grid,
            spec.launch.block,
            arguments,
            lds=spec.launch.lds,
            watch=self._watch,
            names=[a.name for a in spec.args],
            deterministic=True,
        )
        for symbol in spec.symbols:
            if symbol.is_output:
                raw = module.symbols[symbol.name].read(np.uint8)
                size = arrays[symbol.name].nbytes
                arrays[symbol.name] = raw[:size].view(symbol.dtype).reshape(symbol.shape)
        return {b.name: arrays[b.name] for b in spec.outputs}, result.seconds
