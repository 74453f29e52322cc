"""What kind of file a name stands for. One table, asked by discovery and by `--rename`."""

from __future__ import annotations

import posixpath
from enum import Enum


class Kind(str, Enum):
    """What a file is, as far as its name tells."""

    CUDA = "cuda"
    SOURCE = "source"
    HEADER = "header"
    CMAKE = "cmake"
    MAKE = "make"
    PYTHON = "python"
    SHELL = "shell"
    REQUIREMENTS = "requirements"
    OTHER = "other"


_SUFFIXES: dict[Kind, str] = {
    Kind.CUDA: ".cu .cuh .hip",
    Kind.SOURCE: ".c .cc .cpp .cxx .c++ .cp .cppm .ixx",
    Kind.HEADER: ".h .hh .hpp .hxx .h++ .hu .cuinc .inl .inc .ipp .tpp .tcc .txx .impl .def",
    Kind.CMAKE: ".cmake",
    Kind.MAKE: ".mk .mak .make",
    Kind.PYTHON: ".py .pyx .pxd .pxi .pyi",
    Kind.SHELL: ".sh .bash",
}
_BY_SUFFIX = {suffix: kind for kind, names in _SUFFIXES.items() for suffix in names.split()}
_BY_NAME = {
    "cmakelists.txt": Kind.CMAKE,
    "makefile": Kind.MAKE,
    "gnumakefile": Kind.MAKE,
    "dockerfile": Kind.SHELL,
    "containerfile": Kind.SHELL,
    "requirements.txt": Kind.REQUIREMENTS,
}

C_LIKE = frozenset({Kind.CUDA, Kind.SOURCE, Kind.HEADER})
CONVERTED = C_LIKE | {Kind.CMAKE, Kind.MAKE, Kind.PYTHON, Kind.SHELL, Kind.REQUIREMENTS}
"""Kinds that the conversion has a front end for."""
BUILD = frozenset({Kind.CMAKE, Kind.MAKE, Kind.PYTHON, Kind.SHELL})
"""Kinds that may list source files by name."""


def kind_of(path: str) -> Kind:
    """The kind of a file by its name; a trailing ``.in`` (a configure template) is looked through.

    Upper-case suffixes count as lower-case ones, as they do for compilers on most systems.
    """
    name = posixpath.basename(path).lower()
    if name in _BY_NAME:
        return _BY_NAME[name]
    if name.startswith(("requirements", "dockerfile")) and (
        name.endswith(".txt") or name.startswith("dockerfile.")
    ):
        return Kind.REQUIREMENTS if name.endswith(".txt") else Kind.SHELL
    stem, suffix = posixpath.splitext(name)
    if suffix == ".in":
        if stem in _BY_NAME:
            return _BY_NAME[stem]
        suffix = posixpath.splitext(stem)[1]
    return _BY_SUFFIX.get(suffix, Kind.OTHER)
