"""Collects what headers and bindings declare into one table, ``fixtures/api/prototypes.tsv``.

    python scripts/api_facts.py WHEELS OUT

WHEELS is a folder of wheels (``pip download --no-deps``): hip-python 6.4 and 7.2,
rocm-bindings-{hip,libraries,systems}, nvidia-{cuda-runtime,cublas,cufft,curand,cusparse,cusolver,
nccl,nvtx,nvml-dev,cuda-nvrtc}-cu12, cutensor-cu12. They are large, so the checks read the table
made here and only HIP's installed headers live. A row is a name with the versions that declare it
so; ``shapes`` is described in ``api_headers.py``.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import sys
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import api_headers

COLUMNS = ("side", "name", "kind", "shapes", "versions", "library")
HIP_WHEELS = ("hip_python", "rocm_bindings")
CUDA_WHEELS = ("nvidia_cuda_runtime", "nvidia_cublas", "nvidia_cufft", "nvidia_curand",
               "nvidia_cusparse", "nvidia_cusolver", "nvidia_nccl", "nvidia_nvtx", "nvidia_nvml",
               "nvidia_cuda_nvrtc", "cutensor", "nvidia_cuda_cupti")  # fmt: skip
PUBLIC = re.compile(
    r"(cuda|cu|cublas|cublasLt|cublasXt|cufft|cufftXt|curand|cusparse|cusolver\w\w|nvrtc|nccl|nvtx|"
    r"nvml|cutensor|cupti)[A-Z]\w*|CU[A-Z]*_\w+|CU[a-z]\w+|CUDA[A-Z]*_\w+|NVRTC_\w+|nccl\w+|NCCL_\w+|"
    r"NVTX_(COLOR|PAYLOAD|MESSAGE|VERSION|EVENT)\w*|NVML_\w+|__\w+|make_\w+|h[a-z0-9]+|nv_bf\w+|"
    r"(curand|cublas|cufft|cusolver|cusparse|cutensor)\w+|half2?|[a-z]+"
)
PRIVATE = re.compile(
    r".*(_ptds|_ptsz|_impl_\w+|_v\d{4,5}|H_?|_params|_FORCE_INT|_H_INCLUDED|API|WINAPI|CB)$|_[A-Z]\w*$|"
    r"__CUDA_\w+_H(PP)?__?|__(device|host|global|cudart|CUDA|NV_|CUFFT|CUBLAS|dv|DEVICE|inline)\w*|"
    r".*_(fptr|fntype|fnptr)$|NVTX_(CBID|ETID|IMPL|DECLSPEC|API|SET|SIZE|DLL)\w*|PFN_\w+"
)
HIP_ROOTS = ("hip", "hiprand", "hipsparse")
CLANG = ("__clang_hip_math.h", "__clang_hip_cmath.h", "__clang_hip_runtime_wrapper.h",
         "__clang_cuda_math_forward_declares.h", "__clang_hip_libdevice_declares.h")  # fmt: skip


def unpack(wheels: Path) -> Iterator[tuple[str, str, str, str]]:
    """Wheel, its version, and name and text of each header or declaration in it."""
    for wheel in sorted(wheels.glob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        if not name.startswith((*HIP_WHEELS, *CUDA_WHEELS)):
            continue
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                # The inner modules of the bindings declare C's prototypes.
                hip = name.startswith(HIP_WHEELS) and re.search(r"/(cy?\w+)\.pxd$", member)
                cuda = name.startswith(CUDA_WHEELS) and member.endswith((".h", ".hpp"))
                if (hip or cuda) and "nccl_device" not in member:
                    yield name, version, member, archive.read(member).decode("utf-8", "replace")


def hip_files(root: Path = Path("/usr/include")) -> list[Path]:
    """The installed HIP headers and clang's own for HIP."""
    files = [
        file
        for folder in HIP_ROOTS
        for file in sorted((root / folder).rglob("*"))
        if file.suffix in (".h", ".hpp") and "nvidia_detail" not in str(file)
        and "nvcc_detail" not in str(file)
    ]  # fmt: skip
    folders = sorted(Path("/usr/lib").glob("llvm-*/lib/clang/*/include"))
    return files + [f / name for f in folders[-1:] for name in CLANG if (f / name).is_file()]


@lru_cache(maxsize=1)
def installed() -> tuple[str, api_headers.Declarations] | None:
    """Version of the installed HIP headers and what they declare, or None without them."""
    header = Path("/usr/include/hip/hip_version.h")
    if not header.is_file():
        return None
    text = header.read_text()
    found = [re.search(rf"HIP_VERSION_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR")]
    version = ".".join(m.group(1) for m in found if m)
    return version, api_headers.read(hip_files())


def rows(
    side: str, found: dict[str, api_headers.Declarations], where: dict[str, str]
) -> list[tuple[str, ...]]:
    """One row a name, kind and shape, with the versions that agree in it."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for version, declared in found.items():
        for name in declared.names():
            kind = declared.kind(name)
            shapes = " ".join(declared.shapes(name)) if kind == "function" else ""
            groups[name, kind, shapes].append(version)
    return [
        (side, name, kind, shapes, ",".join(versions), where.get(name, ""))
        for (name, kind, shapes), versions in sorted(groups.items())
    ]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    cuda = api_headers.Declarations()
    hip: dict[str, api_headers.Declarations] = defaultdict(api_headers.Declarations)
    where: dict[str, str] = {}
    cuda_where: dict[str, str] = {}
    live = installed()
    if live is not None:
        hip[live[0]] = live[1]
    for wheel, version, member, text in unpack(options.wheels):
        if wheel.startswith(HIP_WHEELS):
            target = hip[".".join(version.split(".")[:2])]
            one = api_headers.Declarations()
            api_headers.read_cython(text, one)
            api_headers.read_cython(text, target)
            library = re.sub(r"^cy?", "", Path(member).stem)
            where.update(dict.fromkeys(one.names(), library))
            continue
        if "cupti" in wheel and not re.search(r"/cupti_?\w*\.h$", member):
            continue
        api_headers.read_c(text, cuda)
        one = api_headers.Declarations()
        api_headers.read_c(text, one)
        library = re.sub(r"^nvidia_|_cu12$|_dev_cu12$", "", wheel)
        for name in one.names():
            cuda_where.setdefault(name, library)
    listed = [r for r in rows("cuda", {"12.9": cuda}, cuda_where)
              if PUBLIC.fullmatch(r[1]) and not PRIVATE.fullmatch(r[1])]  # fmt: skip
    listed += [r for r in rows("hip", hip, where) if not r[1].startswith("_Py")]
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t", lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(listed)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(out.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main())
