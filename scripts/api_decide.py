"""Decides candidates for mappings by comparing prototypes, and says why.

A decision is a row of ``rules/api/decisions.tsv``: ``accepted`` (a mapping that the published
map lacks), ``confirmed`` (one of its pairs that no binding declares, but a header does),
``corrected`` (its HIP name is spelt otherwise), ``dropped`` (its HIP name does not exist),
``rejected`` (a candidate that is none), ``guidance`` (named for a person, never renamed).
"""

from __future__ import annotations

import re

from api_extra import Prototypes, Row, first_seen

COLUMNS = ("cuda", "hip", "decision", "reason")

REJECTED = {
    "CUDA_VERSION": "a guard: version checks are judged one by one",
    "CURAND_VERSION": "numbers of another scheme: comparisons would change their meaning",
    "cuDevice": "no declaration on either side, the word stands in comments",
    "cuDNN": "no declaration on either side, the word stands in comments",
    "cublas": "no declaration on either side, the word stands in comments",
    "cudaDeviceCount": "no declaration on either side, the word stands in comments",
    "CUDA_NO_HALF": "a switch of NVIDIA's headers that HIP's do not read",
    "CUDA_API_PER_THREAD_DEFAULT_STREAM":
        "a switch of NVIDIA's headers; HIP's compiler has -fgpu-default-stream=per-thread",
    "cuMemcpy": "hipMemcpy also wants the direction",
    "cuMemcpyAsync": "hipMemcpyAsync also wants the direction",
    "cuMemcpyPeer": "CUDA's call takes contexts where HIP's takes device numbers",
    "cuMemcpyPeerAsync": "CUDA's call takes contexts where HIP's takes device numbers",
    "cublasLtGetVersion": "CUDA's call returns the number, HIP's writes it through a pointer",
    "cuDeviceGetTexture1DLinearMaxWidth": "HIP's call takes a format description",
    "CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS": "a type in CUDA, a value in HIP",
    "CUDA_POINTER_ATTRIBUTE_P2P_TOKENS": "a type in CUDA, a value in HIP",
}  # fmt: skip
REPLACED = {
    "cuMemcpy": "hipMemcpy with hipMemcpyDefault",
    "cuMemcpyAsync": "hipMemcpyAsync with hipMemcpyDefault",
    "cuMemcpyPeer": "hipMemcpyPeer with device numbers instead of contexts",
    "cuMemcpyPeerAsync": "hipMemcpyPeerAsync with device numbers instead of contexts",
    "cublasLtGetVersion": "hipblasLtGetVersion(handle, &version)",
    "cuDeviceGetTexture1DLinearMaxWidth":
        "hipDeviceGetTexture1DLinearMaxWidth with a hipChannelFormatDesc",
    "cuOccupancyMaxPotentialBlockSize":
        "hipModuleOccupancyMaxPotentialBlockSize, which takes a fixed amount of LDS, no callback",
    "cuOccupancyMaxPotentialBlockSizeWithFlags":
        "hipModuleOccupancyMaxPotentialBlockSizeWithFlags, which takes a fixed amount of LDS, "
        "no callback",
}  # fmt: skip
DECLARED_ELSEWHERE = (
    (r"HIP_|hipInf|hipNan", "a macro of hip/hip_math_constants.h, which the bindings leave out"),
    (r"HIPFFT_CB|hipfftCallback|hipfftXt",
     "declared in hipfft/hipfftXt.h, left out of the bindings"),
    (r"hiprandState", "a state of hiprand/hiprand_kernel.h, made by a macro"),
    (r"HIPCUB|BEGIN_HIPCUB", "a macro of hipcub/config.hpp or util_ptx.hpp"),
    (r"hipGraphKernelNodePort|hipKernelNodeAttributePriority|hipHostRegisterReadOnly|"
     r"hipExternalMemoryDedicated|hipOccupancyDisable",
     "a macro of hip/hip_runtime_api.h, which the bindings leave out"),
    (r"hipOccupancyMaxPotentialBlockSizeVariableSMem",
     "a template of hip/hip_runtime_api.h, which the bindings leave out"),
)  # fmt: skip
SPELT = {
    "hipDeviceAttributeMaxBlocksPerMultiprocessor": "hipDeviceAttributeMaxBlocksPerMultiProcessor",
    "hipDeviceAttributeMultiGpuBoardGroupId": "hipDeviceAttributeMultiGpuBoardGroupID",
}
ABSENT = frozenset(
    {"hipErrorLossyQuery", "hipGraphNodeTypeConditional", "hipGraphDebugDotFlagsRuntimeTypes"}
)
DIFFERS = {
    "cuStreamWaitValue32": "HIP's call has a fifth parameter, a mask of all ones by default",
    "cuStreamWaitValue64": "HIP's call has a fifth parameter, a mask of all ones by default",
    "cuStreamWaitValue32_v2": "HIP's call has a fifth parameter, a mask of all ones by default",
    "cuStreamWaitValue64_v2": "HIP's call has a fifth parameter, a mask of all ones by default",
    "cusparseSpSM_solve": "HIP's call also takes the external buffer",
    "cutensorCreateContraction": "the compute descriptor is an enumeration in HIP",
    "cutensorCreateElementwiseBinary": "the compute descriptor is an enumeration in HIP",
    "cutensorCreateElementwiseTrinary": "the compute descriptor is an enumeration in HIP",
    "cutensorCreatePermutation": "the compute descriptor is an enumeration in HIP",
    "cutensorCreateReduction": "the compute descriptor is an enumeration in HIP",
    "cublasGemmEx": "before ROCm 6.0 HIP's call takes hipblasDatatype_t, also for the compute type",
    "cudaHostRegister": "read-only registration is ignored",
    "cudaMemcpyAsync": "copies from pageable memory wait on the host",
    "cudaGetLastError": "before ROCm 7.0 a successful call also cleared the last error",
    "cudaPeekAtLastError": "before ROCm 7.0 a successful call also cleared the last error",
    "cudaPointerGetAttributes":
        "before ROCm 6.0 the structure's field is memoryType, since then it is type",
    "cudaPointerAttributes": "before ROCm 6.0 the field is memoryType, since then it is type",
    "cudaFuncSetCacheConfig": "accepted and without effect on AMD",
    "cudaDeviceSetCacheConfig": "accepted and without effect on AMD",
    "cuCtxSetCacheConfig": "accepted and without effect on AMD",
    "cudaDeviceSetSharedMemConfig": "accepted and without effect on AMD",
    "cudaLaunchKernelExC": "cluster and programmatic launch attributes have no effect",
    "__shfl_sync": "the mask is 64 bits wide",
    "__ballot_sync": "the result and the mask are 64 bits wide",
    "__any_sync": "the mask is 64 bits wide", "__all_sync": "the mask is 64 bits wide",
    "__activemask": "the result is 64 bits wide",
}  # fmt: skip


SETTLED = {
    "cudaGetDriverEntryPoint": ("hipGetDriverEntryPoint", "7.2", "",
        "hipGetProcAddress takes a version more; the call of the same name is in 7.2 and 10.0"),
    "CUBLAS_FP32_EMULATED_BF16X9_MATH": ("", "", "", "no HIP header or binding declares it"),
    "cublasEmulationStrategy_t": ("", "", "", "no HIP header or binding declares it"),
    "CU_EVENT_RECORD_DEFAULT": ("hipEventRecordDefault", "6.4", "",
        "a macro of hip/hip_runtime_api.h, which the bindings leave out"),
    "CU_EVENT_RECORD_EXTERNAL": ("hipEventRecordExternal", "6.4", "",
        "a macro of hip/hip_runtime_api.h, which the bindings leave out"),
    "CU_STREAM_LEGACY": ("hipStreamLegacy", "6.2", "",
        "a macro of hip/hip_runtime_api.h, which the bindings leave out"),
    "cudaStreamLegacy": ("hipStreamLegacy", "6.2", "",
        "a macro of hip/hip_runtime_api.h, which the bindings leave out"),
    "cudaLibXtDesc": ("hipLibXtDesc", "6.0", "",
        "declared in hipfft/hipfftXt.h, left out of the bindings"),
    "cudaLibXtDesc_t": ("hipLibXtDesc_t", "6.0", "",
        "declared in hipfft/hipfftXt.h, left out of the bindings"),
    "__NV_E4M3": ("__HIP_E4M3", "7.0", "<6.2= <7.0=__HIP_E4M3_FNUZ",
        "the interpretation keeps its format (OCP), where the map names the FNUZ one"),
    "__NV_E5M2": ("__HIP_E5M2", "7.0", "<6.2= <7.0=__HIP_E5M2_FNUZ",
        "the interpretation keeps its format (OCP), where the map names the FNUZ one"),
    "__nv_bfloat16": ("__hip_bfloat16", "5.7", "",
        "hip/hip_bf16.h, which cuda_bf16.h becomes, declares __hip_bfloat16 since ROCm 5.7"),
    "nv_bfloat16": ("__hip_bfloat16", "5.7", "", "the same type as __nv_bfloat16"),
    "nv_bfloat162": ("__hip_bfloat162", "5.7", "", "the same type as __nv_bfloat162"),
    "CUoccupancyB2DSize": ("", "", "",
        "HIP takes no callback there; a rename to void* would drop it without a word"),
    "cublasDataType_t": ("hipDataType", "", "<6.0=hipblasDatatype_t",
        "hipBLAS had a type of its own before ROCm 6.0"),
}  # fmt: skip
"""HIP name, since when, alternatives and reason where the published map is not followed, or where
no binding declares what is right."""


def settle(tables: dict[str, dict[str, Row]], published: dict[str, str]) -> list[tuple[str, ...]]:
    """Apply `SETTLED`; then record every row that differs from the published map."""
    out: list[tuple[str, ...]] = []
    for rows in tables.values():
        for cuda, row in rows.items():
            if cuda not in SETTLED:
                continue
            hip, added, alternatives, reason = SETTLED[cuda]
            same = published.get(cuda, "") == hip
            decision = "confirmed" if same else "corrected" if hip else "dropped"
            row.update(hip=hip, hip_added=added, alternatives=alternatives, hip_header="")
            out.append((cuda, hip or published.get(cuda, ""), decision, reason))
    return out


def shapes(rows: list[Row]) -> set[str]:
    """All shapes that the rows give."""
    return {shape for row in rows for shape in row["shapes"].split()}


def newer(cuda: str, hip: str, prototypes: Prototypes) -> tuple[str, str]:
    """Decision and reason for a candidate that the published map lacks."""
    there = prototypes.get(("hip", hip), [])
    here = prototypes.get(("cuda", cuda), [])
    if cuda in REJECTED:
        return "rejected", REJECTED[cuda]
    if cuda.upper().startswith("CUDNN"):
        return "guidance", "cuDNN is ported by hand to MIOpen or hipDNN's backend"
    if re.search(r"API$|_H_$|DEPRECATED$", cuda):
        return "rejected", "a macro of the headers' own"
    if cuda == "cudaLaunchKernelEx":
        return (
            "accepted",
            "a template over hipLaunchKernelExC since 7.0, as its documentation says",
        )
    if not there:
        if hip.startswith("hipEvent"):
            return "accepted", "a flag of hipEventRecordWithFlags by its documentation of 6.4"
        return "rejected", "no HIP header or binding declares it"
    versions = ", ".join(sorted({v for r in there for v in r["versions"].split(",")}, key=float))
    if here and here[0]["kind"] == "macro" and there[0]["kind"] == "function":
        # cublasX_64 is a macro for cublasX_v2_64.
        renamed = re.sub(r"(_64)?$", r"_v2\1", cuda, count=1)
        here = prototypes.get(("cuda", renamed), here)
    if cuda == "cublasGetVersion":
        here = prototypes.get(("cuda", "cublasGetVersion_v2"), here)
    if there[0]["kind"] == "function" and here and here[0]["kind"] == "function":
        common = shapes(here) & shapes(there)
        if common:
            return "accepted", f"same parameters ({min(common)}), declared in {versions}"
        ours, theirs = "/".join(sorted(shapes(here))), "/".join(sorted(shapes(there)))
        return "rejected", f"parameters differ: {ours} in CUDA, {theirs} in HIP"
    if there[0]["kind"] == "function" and not here:
        return (
            "accepted",
            f"declared in {versions}; CUDA 13 has it, whose headers were not compared",
        )
    return "accepted", f"{there[0]['kind']} of the same name, declared in {versions}"


def unconfirmed(
    cuda: str, hip: str, row: Row | None, prototypes: Prototypes
) -> tuple[str, str, str]:
    """Decision, HIP name and reason for a pair that no binding declares."""
    if cuda.upper().startswith("CUDNN"):
        return "guidance", "", "hipDNN of that form is not shipped: see the row's MIOpen call"
    if hip in SPELT:
        return "corrected", SPELT[hip], f"headers of 5.2 to 10.0 spell it {SPELT[hip]}"
    if hip in ABSENT:
        return "dropped", "", "no HIP header or binding declares it"
    if row is not None and row["hip"] != hip and ("hip", row["hip"]) in prototypes:
        return "corrected", row["hip"], f"named {hip} before, see the row's alternatives"
    for pattern, reason in DECLARED_ELSEWHERE:
        if re.match(pattern, hip):
            return "confirmed", hip, reason
    return "dropped", "", "no HIP header or binding declares it"


def decide(
    tables: dict[str, dict[str, Row]],
    candidates: list[Row],
    pairs: list[Row],
    prototypes: Prototypes,
) -> list[tuple[str, ...]]:
    """Apply the decisions to the tables (library, then CUDA name) and list them."""
    where = {name: library for library, rows in tables.items() for name in rows}
    out: list[tuple[str, ...]] = []
    for raw in candidates:
        cuda, hip = raw["cuda_name"], raw["hip_candidate"]
        decision, reason = newer(cuda, hip, prototypes)
        out.append((cuda, hip, decision, reason))
        library = where.get(cuda) or library_of(cuda)
        there = prototypes.get(("hip", hip), [])
        if decision == "accepted":
            row = tables[library].setdefault(cuda, {"cuda": cuda, "kind": there[0]["kind"] if there
                                                    else "function"})  # fmt: skip
            where[cuda] = library
            row.update(hip=hip, hip_added=first_seen(there) or ("" if there else "7.0"), header="")
            seen = {v for r in there for v in r["versions"].split(",")}
            if seen and seen <= {"5.2", "6.4"}:
                row["hip_removed"] = "7.0"
    for raw in pairs:
        cuda, hip = raw["cuda_name"], raw["hip_name_in_api_map"]
        known = tables.get(where.get(cuda, ""), {}).get(cuda)
        decision, target, reason = unconfirmed(cuda, hip, known, prototypes)
        out.append((cuda, target or hip, decision, reason))
        if known is not None and decision in ("corrected", "dropped"):
            known["hip"] = target
            if decision == "dropped":
                known.update(hip_added="", hip_header="", alternatives="")
    for rows in tables.values():
        for row in rows.values():
            if row["cuda"] in DIFFERS:
                row["differs"] = DIFFERS[row["cuda"]]
            if row["cuda"] in REPLACED:
                if row.get("hip"):
                    out.append((row["cuda"], row["hip"], "dropped",
                                "parameters differ, so a rename would not compile"))  # fmt: skip
                row.update(hip="", hip_header="", hip_added="", replacement=REPLACED[row["cuda"]])
            if row.get("hip") in SPELT:
                row["hip"] = SPELT[row["hip"]]
    return sorted(set(out))


def library_of(cuda: str) -> str:
    """The library of a CUDA name by its beginning."""
    for start, library in (
        ("cublasLt", "blaslt"), ("CUBLASLT", "blaslt"), ("cublas", "blas"), ("CUBLAS", "blas"),
        ("cufft", "fft"), ("CUFFT", "fft"), ("curand", "rand"), ("CURAND", "rand"),
        ("cusparse", "sparse"), ("CUSPARSE", "sparse"), ("cusolver", "solver"),
        ("CUSOLVER", "solver"), ("cutensor", "tensor"), ("CUTENSOR", "tensor"), ("nvrtc", "rtc"),
        ("NVRTC", "rtc"), ("cudnn", "dnn"), ("CUDNN", "dnn"), ("cuda", "runtime"),
        ("CUDA_", "driver"), ("CU", "driver"), ("cu", "driver"),
    ):  # fmt: skip
        if cuda.startswith(start):
            return library
    return "device"
