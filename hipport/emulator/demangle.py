"""C++ names as people write them, by the C++ runtime that is already on the machine."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import re
import shutil
import subprocess


@functools.lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL | None:
    for name in ("libstdc++.so.6", "libc++abi.so.1", "libc++.1.dylib"):
        try:
            library = ctypes.CDLL(name)
            library.__cxa_demangle.restype = ctypes.c_void_p
            library.__cxa_demangle.argtypes = [ctypes.c_char_p] + [ctypes.c_void_p] * 3
        except (OSError, AttributeError):
            continue
        return library
    return None


@functools.lru_cache(maxsize=4096)
def demangle(name: str) -> str:
    """`_Z3addPfi` as `add(float*, int)`; names that are not mangled come back unchanged."""
    if not name.startswith("_Z"):
        return name
    if (library := _runtime()) is not None:
        status = ctypes.c_int(0)
        text = library.__cxa_demangle(name.encode(), None, None, ctypes.addressof(status))
        if text and status.value == 0:
            found = ctypes.cast(text, ctypes.c_char_p).value or b""
            libc = ctypes.CDLL(None)
            libc.free.argtypes = [ctypes.c_void_p]
            libc.free(text)
            return found.decode()
    for tool in ("c++filt", "llvm-cxxfilt", "llvm-cxxfilt-19"):
        if path := shutil.which(tool):
            done = subprocess.run([path, name], capture_output=True, text=True)
            if done.returncode == 0:
                return done.stdout.strip()
    # Last resort, enough for a plain function: the length-prefixed identifier.
    if match := re.match(r"_Z(\d+)", name):
        return name[match.end() : match.end() + int(match[1])]
    return name


def base_name(demangled: str) -> str:
    """`void ns::add<int>(int*)` as `ns::add<int>`: no parameters, no return type."""
    depth = 0
    end = len(demangled)
    for at, char in enumerate(demangled):
        if char == "<":
            depth += 1
        elif char == ">":
            depth -= 1
        elif (
            char == "("
            and depth == 0
            and not demangled.startswith("(anonymous namespace)", at)
            and not demangled[:at].endswith("operator")
        ):
            end = at
            break
    head = demangled[:end]
    depth = 0
    for at in range(len(head) - 1, -1, -1):
        if head[at] in ">)":
            depth += 1
        elif head[at] in "<(":
            depth -= 1
        elif head[at] == " " and depth == 0:
            return head[at + 1 :]
    return head
