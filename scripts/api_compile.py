"""Compiles a unit that names every mapped HIP name that the installed headers are to declare.

    python scripts/api_compile.py        exit status 1 and the compiler's words where one is unknown

Every name stands on a line of its own with its row, so the compiler's message names the row.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import api_audit
import api_facts

HEADERS = {
    "runtime": "hip/hip_runtime.h", "driver": "hip/hip_runtime.h", "device": "hip/hip_runtime.h",
    "complex": "hip/hip_complex.h", "rtc": "hip/hiprtc.h", "rand": "hiprand/hiprand_kernel.h",
    "sparse": "hipsparse/hipsparse.h",
}  # fmt: skip
MORE = ("hip/hip_fp16.h", "hip/hip_bfloat16.h", "hip/library_types.h", "hiprand/hiprand.h",
        "hip/hip_cooperative_groups.h", "hiprand/hiprand_mtgp32_host.h")  # fmt: skip


def compiler() -> str | None:
    """The newest clang that is installed."""
    names = ["clang++-" + str(n) for n in range(21, 15, -1)]
    return next((path for name in names if (path := shutil.which(name))), None)


def unit(folder: Path = Path("/usr/include")) -> tuple[str, int]:
    """The text of the unit and how many names it holds."""
    known = api_audit.prototypes()
    version = api_facts.installed()
    if version is None:
        raise SystemExit("HIP's headers are not installed (Debian: libamdhip64-dev)")
    number, declared = version
    wanted = [h for h in dict.fromkeys((*HEADERS.values(), *MORE)) if (folder / h).is_file()]
    lines = [f"#include <{header}>" for header in wanted]
    done: set[str] = set()
    for table, rows in api_audit.tables().items():
        header = HEADERS.get(table)
        if header is None or not (folder / header).is_file():
            continue
        for row in rows:
            hip = row["hip"]
            found = [r for r in known.get(("hip", hip), []) if number in r["versions"].split(",")]
            if not found or hip in done or "::" in hip or not hip.isidentifier():
                continue
            done.add(hip)
            where = f"  // rules/api/{table}.tsv: {row['cuda']}"
            if declared.kind(hip) == "macro":
                lines += [f"#ifndef {hip}{where}", f"#error {hip}", "#endif"]
            elif hip in ("float2", "int", "char", "float", "double"):
                continue
            else:
                lines.append(f"namespace at_{len(done)} {{ using ::{hip}; }}{where}")
    return "\n".join(lines) + "\n", len(done)


def compile_unit(clang: str, text: str) -> str:
    """What the compiler says; empty where all names are known."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "names.hip")
        source.write_text(text)
        run = subprocess.run(
            [clang, "-x", "hip", "--offload-device-only", "--offload-arch=gfx90a", "-nogpulib",
             "-fsyntax-only", "-w",
             "-std=c++17", "-D__HIP_PLATFORM_AMD__", "-ferror-limit=0", str(source)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    return "" if run.returncode == 0 else run.stderr


def main() -> int:
    """Command line."""
    clang = compiler()
    if clang is None:
        raise SystemExit("no clang is installed")
    text, count = unit()
    said = compile_unit(clang, text)
    print(said, f"{count} names, {said.count('error:')} errors", sep="")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
