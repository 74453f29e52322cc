"""Reads what C headers and Cython declarations declare: names, kinds, shapes of parameters.

A shape is one letter a parameter: ``p`` pointer, handle or callback, ``i`` integer or enumeration,
``f`` floating point, ``s`` structure by value, ``.`` a variable list. It is what both sides can be
compared by: the bindings write `void *` for every handle and an integer for every enumeration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^)]*\))?[ \t]*(.*)$", re.M)
_WORD = re.compile(r"[A-Za-z_]\w*")
_ATTRIBUTE = re.compile(r"__(align|attribute|device_builtin|cuda_builtin|declspec|builtin)\w*")
_NO_NAMES = frozenset(
    [
        "__attribute__",
        "__declspec",
        "alignas",
        "__align__",
        "__dv",
        "defined",
        "sizeof",
        "if",
        "while",
        "for",
        "switch",
        "return",
        "__builtin_align__",
        "__nv_noinline__",
        "decltype",
        "noexcept",
        "static_assert",
        "CUDART_DEPRECATED",
        "__CUDA_DEPRECATED",
        "deprecated",
        "HIP_DEPRECATED",
        "__CUDA_ALIGN__",
        "operator",
        "CUDNN_DEPRECATED",
        "__launch_bounds__",
        "__NV_SILENCE_DEPRECATION_BEGIN",
        "asm",
        "__asm__",
    ]
)
_INTS = frozenset(
    [
        "int",
        "unsigned",
        "long",
        "short",
        "char",
        "bool",
        "size_t",
        "ssize_t",
        "int8_t",
        "uint8_t",
        "int16_t",
        "uint16_t",
        "int32_t",
        "uint32_t",
        "int64_t",
        "uint64_t",
        "_Bool",
        "uintptr_t",
        "intptr_t",
        "signed",
        "cuuint32_t",
        "cuuint64_t",
        "GLuint",
        "GLenum",
        "enum",
        "bint",
    ]
)
_FLOATS = frozenset(["float", "double"])
_ADDRESSES = frozenset(
    [
        "CUdeviceptr",
        "CUdeviceptr_v1",
        "CUdeviceptr_v2",
        "hipDeviceptr_t",
        "CUtexObject",
        "CUsurfObject",
        "cudaTextureObject_t",
        "cudaSurfaceObject_t",
        "hipTextureObject_t",
        "hipSurfaceObject_t",
        "va_list",
        "CUtexObject_v1",
        "CUsurfObject_v1",
        "cufftHandle",
        "CUmemGenericAllocationHandle",
        "CUmemGenericAllocationHandle_v1",
        "cudaGraphConditionalHandle",
    ]
)
"""Numbers on one side and pointers on the other."""


@dataclass
class Declarations:
    """What some files declare."""

    functions: dict[str, set[str]] = field(default_factory=dict)
    """Parameters as written, by name; joined by commas."""
    types: dict[str, str] = field(default_factory=dict)
    """What a type is: ``p``, ``i``, ``f``, ``s``, or the name of another type."""
    enums: set[str] = field(default_factory=set)
    macros: dict[str, str] = field(default_factory=dict)

    def kind(self, name: str) -> str:
        """The kind of a name, empty where it is not declared."""
        if name in self.functions:
            return "function"
        if name in self.types:
            return "type"
        if name in self.enums:
            return "enum"
        return "macro" if name in self.macros else ""

    def names(self) -> set[str]:
        """All declared names."""
        return {*self.functions, *self.types, *self.enums, *self.macros}

    def _letter(self, text: str) -> str:
        if "*" in text or "[" in text or "(" in text or "&" in text:
            return "p"
        words = [w for w in _WORD.findall(text) if w not in ("const", "struct", "volatile")]
        if not words:
            return "." if "..." in text else "s"
        if any(w in _ADDRESSES for w in words):
            return "p"
        if any(w in _FLOATS for w in words):
            return "f"
        if any(w in _INTS for w in words):
            return "i"
        seen: set[str] = set()
        name = words[0]
        while name not in seen:
            seen.add(name)
            target = self.types.get(name) or self.macros.get(name, "")
            if target in ("p", "i", "f", "s"):
                return target
            if target in _ADDRESSES:
                return "p"
            if target in _FLOATS:
                return "f"
            if target in _INTS:
                return "i"
            if not _WORD.fullmatch(target):
                break
            name = target
        return "s"

    def shapes(self, name: str) -> list[str]:
        """The shapes that a function is declared with; ``-`` stands for no parameters."""
        out = set()
        for text in self.functions.get(name, ()):
            parts = _split(text)
            if parts in ([], ["void"]):
                out.add("-")
            else:
                out.add("".join(self._letter(part) for part in parts))
        return sorted(out)


def _split(text: str) -> list[str]:
    """Parameters of a list; commas in brackets do not part."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "(<[{":
            depth += 1
        elif c in ")>]}":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p.split("=")[0].strip() for p in parts if p.strip()]


def _closing(text: str, at: int) -> int:
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return len(text)


def _function(statement: str) -> tuple[str, str] | None:
    """Name and parameters where a statement declares a function."""
    for match in re.finditer(r"([A-Za-z_]\w*)\s*\(", statement):
        name = match.group(1)
        if name in _NO_NAMES:
            continue
        before = statement[: match.start()].strip()
        if not before or before.endswith((":", ",", "(", "=", ".", "operator")):
            if before.endswith(("(", ",")):
                continue
            return None
        end = _closing(statement, match.end() - 1)
        if statement[end + 1 :].lstrip().startswith("("):
            continue
        return name, " ".join(statement[match.end() : end].split())
    return None


def _enumerators(body: str) -> Iterator[str]:
    for part in _split(body):
        match = _WORD.match(part)
        if match:
            yield match.group(0)


def _typedef(statement: str, found: Declarations) -> None:
    text = statement.removeprefix("typedef").strip()
    pointer = re.search(r"\(\s*(?:\w+\s+)?\*\s*(\w+)\s*\)\s*\(", text)
    if pointer:
        found.types.setdefault(pointer.group(1), "p")
        return
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)|\w*DEPRECATED\w*(\s*\([^()]*\))?", "", text)
    text = re.sub(r"__device_builtin\w*__|__cuda_builtin\w*__", "", text)
    for declarator in _split(text):
        words = _WORD.findall(re.sub(r"\[[^\]]*\]", "", declarator))
        if not words:
            continue
        base = [w for w in words[:-1] if w not in ("struct", "enum", "union", "const", "unsigned")]
        target = "p" if "*" in declarator else (base[0] if base else "i")
        if words[-1] != target and found.types.get(words[-1], "s") in ("s", ""):
            found.types[words[-1]] = target


def read_c(text: str, found: Declarations) -> None:
    """Add what a C or C++ header declares at namespace scope."""
    text = _COMMENT.sub(" ", text.replace("\\\r\n", " ").replace("\\\n", " "))
    for match in _DEFINE.finditer(text):
        found.macros.setdefault(match.group(1), match.group(3).strip())
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.M)
    text = re.sub(r"\b__dv\([^()]*\)", "", text)
    statement, i, length = "", 0, len(text)
    while i < length:
        c = text[i]
        if c == ";":
            _statement(statement.strip(), found)
            statement = ""
        elif c == "{":
            head = statement.strip()
            if re.search(r'extern\s+"C"\s*$|\bnamespace\b[\w\s:]*$', head):
                statement = ""
                i += 1
                continue
            depth, start = 1, i + 1
            while depth and i + 1 < length:
                i += 1
                depth += {"{": 1, "}": -1}.get(text[i], 0)
            statement = _block(head, text[start:i], found)
        elif c == "}":
            statement = ""
        else:
            statement += c
        i += 1


def _block(head: str, body: str, found: Declarations) -> str:
    """Take in a braced block; returns what of its head the statement goes on with."""
    compound = re.search(r"\b(enum|struct|union|class)\b([^()]*)$", head)
    function = None if head.startswith("typedef") else _function(head)
    if compound and not function:
        words = [w for w in _WORD.findall(compound.group(2).split(":")[0])
                 if not _ATTRIBUTE.match(w) and w not in ("class", "final", "struct")]  # fmt: skip
        letter = "i" if compound.group(1) == "enum" else "s"
        if compound.group(1) == "enum":
            found.enums.update(_enumerators(body))
        if words:
            found.types[words[-1]] = letter
        if head.startswith("typedef"):
            return f"typedef {words[-1] if words else ('int' if letter == 'i' else 'struct _')} "
        return ""
    if function:
        found.functions.setdefault(function[0], set()).add(function[1])
    return ""


def _statement(statement: str, found: Declarations) -> None:
    statement = re.sub(r'^(?:extern\s+"C"|template\s*<[^{}]*?>)\s*', "", statement)
    if not statement or statement.startswith(("using", "return", "friend")):
        return
    # A macro without a semicolon may stand before it.
    at = re.search(r"\btypedef\b", statement)
    if at:
        statement = statement[at.start() :]
        _typedef(statement, found)
        return
    forward = re.fullmatch(r"(?:struct|union|class|enum)\s+(\w+)", statement)
    if forward:
        found.types.setdefault(forward.group(1), "s")
        return
    function = _function(statement)
    if function:
        found.functions.setdefault(function[0], set()).add(function[1])


_CY_FUNCTION = re.compile(r"^\s*cdef [^\n(]*?\b(\w+)\((.*)\)(?: (?:except|noexcept|nogil).*)?$")


def read_cython(text: str, found: Declarations) -> None:
    """Add what a Cython declaration file of the bindings declares."""
    in_enum: int | None = None
    for line in text.split("\n"):
        bare = line.split("#")[0].rstrip()
        if not bare:
            continue
        indent = len(bare) - len(bare.lstrip())
        if in_enum is not None:
            if indent > in_enum:
                match = _WORD.match(bare.strip())
                if match:
                    found.enums.add(match.group(0))
                continue
            in_enum = None
        word = bare.strip()
        enum = re.match(r"(?:cdef|ctypedef|cpdef) enum\s*(\w*)", word)
        if enum:
            in_enum = indent
            if enum.group(1):
                found.types[enum.group(1)] = "i"
            continue
        compound = re.match(r"(?:cdef|ctypedef) (?:struct|union)\s+(\w+)", word)
        if compound:
            found.types.setdefault(compound.group(1), "s")
            continue
        pointer = re.match(r"ctypedef .*\(\s*\*\s*(\w+)\s*\)\s*\(", word)
        if pointer:
            found.types[pointer.group(1)] = "p"
            continue
        if word.startswith("ctypedef "):
            _typedef("typedef " + word.removeprefix("ctypedef "), found)
            continue
        function = _CY_FUNCTION.match(bare)
        if function:
            found.functions.setdefault(function.group(1), set()).add(function.group(2))
            continue
        constant = re.match(r"cdef [\w *]*?\b(\w+)$", word)
        if constant:
            found.macros.setdefault(constant.group(1), "")


def read(files: Iterable[Path]) -> Declarations:
    """What the files declare together."""
    found = Declarations()
    for file in files:
        text = file.read_text(encoding="utf-8", errors="replace")
        (read_cython if file.suffix == ".pxd" else read_c)(text, found)
    return found
