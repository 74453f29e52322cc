"""Make a tree of files that tools trip over.

    python tests/project/make_hostile.py DIR

Everything is made at run time: most of it cannot be kept in git as it is (odd names, links that
lead nowhere, unreadable files) or is too large to keep.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

_KERNEL = """\
#include <cuda_runtime.h>

// größer: cudaMalloc stays as it is in a comment
__global__ void scale(float *x, float s) { x[threadIdx.x] *= s; }

int main() {
    float *x;
    cudaMalloc(&x, 128);
    scale<<<1, 32>>>(x, 2.0f);
    cudaFree(x);
    return 0;
}
"""


@dataclass(frozen=True, slots=True)
class Hostile:
    """What was made.

    `convertible` are files whose CUDA names must be converted, byte for byte around them;
    `untouched` hold no CUDA and must come out as they went in; `refused` cannot be read as
    sources and must be named in the report; `survives` must neither crash nor hang a tool, whatever
    it makes of them. Paths are relative to `root`.
    """

    root: Path
    convertible: tuple[str, ...]
    untouched: tuple[str, ...]
    refused: tuple[str, ...]
    survives: tuple[str, ...]


def make(root: Path, megabytes: int = 10, depth: int = 10_000) -> Hostile:
    """Make the tree below `root`, which must be empty or missing.

    `megabytes` is the size of the generated source, `depth` the nesting of brackets.

    Raises:
        FileExistsError: `root` holds something.
    """
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()):
        raise FileExistsError(f"{root} is not empty; name a new folder")
    good = {
        "latin1.cu": _KERNEL.encode("latin-1"),
        "utf8.cu": _KERNEL.encode(),
        "bom.cu": b"\xef\xbb\xbf" + _KERNEL.encode(),
        "utf16le.cu": b"\xff\xfe" + _KERNEL.encode("utf-16-le"),
        "utf16be.cu": b"\xfe\xff" + _KERNEL.encode("utf-16-be"),
        "crlf.cu": _KERNEL.replace("\n", "\r\n").encode(),
        "cr.cu": _KERNEL.replace("// größer: cudaMalloc stays as it is in a comment\n", "")
        .replace("\n", "\r")
        .encode(),
        "mixed_ends.cu": _mixed(_KERNEL).encode(),
        "no_last_newline.cu": _KERNEL.rstrip("\n").encode(),
        "form_feed.cu": b"\x0c" + _KERNEL.replace("int main", "\x0c\x0bint main").encode(),
        "spliced.cu": _KERNEL.replace("    cudaMalloc(", "    cudaMalloc\\\n(").encode(),
        "with space.cu": _KERNEL.encode(),
        'quote\'d "name".cu': _KERNEL.encode(),
        "new\nline.cu": _KERNEL.encode(),
        "-dash.cu": _KERNEL.encode(),
        "[bracket]*.cu": _KERNEL.encode(),
        "ünï/cödé.cu": _KERNEL.encode(),
        "UPPER.CU": _KERNEL.encode(),
        "deep/" + "/".join("d" * 40 for _ in range(20)) + "/far.cu": _KERNEL.encode(),
    }
    plain = {
        "plain.cpp": b"int main() { return 0; }\n",
        "plain_crlf.h": b"#pragma once\r\nint f();\r\n",
        "plain_latin1.cpp": "// größe\nint f() { return 1; }\n".encode("latin-1"),
        "plain_no_newline.c": b"int g(void) { return 2; }",
        "empty.cu": b"",
        "only_bom.h": b"\xef\xbb\xbf",
        "only_newlines.cpp": b"\r\n\n\r\n",
        "longer_names.cpp": b"int my_cudaMalloc, cudaMallocator, xcudaFree;\n",
        "names_in_text.cpp": b'const char *s = "cudaMalloc"; // cudaFree\n',
    }
    odd = {
        "nul.cu": _KERNEL.replace("float *x;", "float *x;\0").encode(),
        "binary.cu": bytes(range(256)) * 64,
        "truncated_utf16.cu": b"\xff\xfe" + _KERNEL.encode("utf-16-le")[:-1],
        "broken.cu": _KERNEL.replace("{", "{{{").replace(");", ";(").encode(),
        "cut_comment.cu": _KERNEL.encode() + b"\n/* cudaMalloc never closed",
        "cut_string.cu": _KERNEL.encode() + b'\nconst char *s = "cudaFree',
        "cut_raw_string.cu": _KERNEL.encode() + b'\nconst char *s = R"x(cudaFree',
        "cut_launch.cu": b"void f() { k<<<1, 2\n",
        "cut_directive.cu": b"#include <cuda_runtime.h\n#if defined(\n#define X \\",
        "parentheses.cu": _nested("(", ")", depth),
        "open_parentheses.cu": b"int x = " + b"(" * depth,
        "braces.cu": _nested("{", "}", depth),
        "angles.cu": b"a" + b"<a" * depth + b">" * depth + b" x;\n",
        "conditionals.cu": b"#if 1\n" * depth + b"int y;\n" + b"#endif\n" * depth,
        "one_line.cu": b"void f() {" + b" cudaFree(p);" * 20_000 + b"}\n",
        "long_name.cu": b"int " + b"cuda" * 100_000 + b";\n",
        "generated.cu": _generated(megabytes),
    }
    for folder in (good, plain, odd):
        for name, data in folder.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    refused = _links(root)
    return Hostile(root, tuple(good), tuple(plain), refused, tuple(odd))


def unlock(made: Hostile) -> None:
    """Make everything readable again, so that the tree can be deleted."""
    for name in ("locked.cu", "locked_folder"):
        place = made.root / name
        if place.exists():
            place.chmod(0o755)


def _links(root: Path) -> tuple[str, ...]:
    """Links and unreadable files; returns those that a tool must report."""
    (root / "loop").mkdir()
    (root / "loop" / "back.cu").symlink_to("back.cu")
    (root / "loop" / "up").symlink_to("..", target_is_directory=True)
    (root / "ring_a").symlink_to("ring_b")
    (root / "ring_b").symlink_to("ring_a")
    (root / "dangling.cu").symlink_to("nowhere.cu")
    (root / "linked.cu").symlink_to("utf8.cu")
    (root / "folder.cu").mkdir()
    os.mkfifo(root / "pipe.cu")
    locked = root / "locked.cu"
    locked.write_bytes(_KERNEL.encode())
    locked.chmod(0)
    (root / "locked_folder").mkdir()
    (root / "locked_folder" / "inside.cu").write_bytes(_KERNEL.encode())
    (root / "locked_folder").chmod(0)
    # The superuser reads files whatever their mode.
    return () if os.access(locked, os.R_OK) else ("locked.cu",)


def _mixed(text: str) -> str:
    ends = ("\n", "\r\n")
    lines = text.split("\n")
    return "".join(line + ends[at % 2] for at, line in enumerate(lines[:-1])) + lines[-1]


def _nested(opening: str, closing: str, depth: int) -> bytes:
    head, middle, tail = ("int x = ", "1", ";\n") if opening == "(" else ("void f() ", "", "\n")
    return f"{head}{opening * depth}{middle}{closing * depth}{tail}".encode()


def _generated(megabytes: int) -> bytes:
    block = "".join(
        f"__global__ void kernel_{at}(float *x) {{ x[threadIdx.x] += {at}.0f; }}\n"
        f"void launch_{at}(float *x, cudaStream_t s) {{ kernel_{at}<<<1, 64, 0, s>>>(x); }}\n"
        for at in range(6_000)
    ).encode()
    head = b"#include <cuda_runtime.h>\n"
    return head + block * (megabytes * 1_000_000 // len(block) + 1)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_hostile.py DIR")
    print(f"made {make(Path(sys.argv[1])).root}")
