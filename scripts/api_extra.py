"""Rows that no published map has: other libraries, C++ interfaces, guidance for a person.

Names come from ``fixtures/api/prototypes.tsv``; what replaces them is written here.
"""

from __future__ import annotations

import re
from collections import defaultdict

Row = dict[str, str]
Prototypes = dict[tuple[str, str], list[Row]]

NVTX = {
    "nvtxRangePush": "roctxRangePush", "nvtxRangePushA": "roctxRangePushA",
    "nvtxRangePop": "roctxRangePop", "nvtxRangeStart": "roctxRangeStart",
    "nvtxRangeStartA": "roctxRangeStartA", "nvtxRangeEnd": "roctxRangeStop",
    "nvtxMark": "roctxMark", "nvtxMarkA": "roctxMarkA", "nvtxRangeId_t": "roctx_range_id_t",
}  # fmt: skip

NVTX_NEAR = (
    (r"nvtxDomainRangePush|nvtxRangePush", "roctxRangePushA with the message alone"),
    (r"nvtxDomainRangePop", "roctxRangePop"),
    (r"nvtxDomainRangeStart|nvtxRangeStart", "roctxRangeStartA with the message alone"),
    (r"nvtxDomainRangeEnd", "roctxRangeStop"),
    (r"nvtxDomainMark|nvtxMark", "roctxMarkA with the message alone"),
    (r"nvtxNameOsThread", "roctxNameOsThread, which names the calling thread"),
    (r"nvtxNameCudaDevice|nvtxNameCuDevice", "roctxNameHipDevice"),
    (r"nvtxNameCudaStream|nvtxNameCuStream", "roctxNameHipStream"),
    (r"nvtxEventAttributes|nvtxMessage|NVTX_MESSAGE", "pass the message string to the roctx call"),
    (r"nvtxDomain|nvtxString", "roctx has no domains: put the domain's name into the message"),
    (r"NVTX_COLOR|NVTX_PAYLOAD|nvtxPayload", "roctx ranges carry neither colour nor payload"),
)

NVML_NEAR = (
    (r"nvmlInit", "amdsmi_init"), (r"nvmlShutdown", "amdsmi_shut_down"),
    (r"nvmlErrorString", "amdsmi_status_code_to_string"),
    (r"nvmlReturn_t|NVML_SUCCESS|NVML_ERROR_", "amdsmi_status_t"),
    (r"nvmlDevice_t", "amdsmi_processor_handle"),
    (r"nvmlSystemGetDriverVersion", "amdsmi_get_gpu_driver_info"),
    (r"nvmlSystemGetNVMLVersion", "amdsmi_get_lib_version"),
    (r"nvmlDeviceGet(Count|HandleByIndex)",
     "amdsmi_get_socket_handles, amdsmi_get_processor_handles"),
    (r"nvmlDeviceGetHandleByPci", "amdsmi_get_processor_handle_from_bdf"),
    (r"nvmlDeviceGet(Name|Brand|Serial|Architecture)", "amdsmi_get_gpu_asic_info"),
    (r"nvmlDeviceGetBoardPartNumber|nvmlDeviceGetBoardId", "amdsmi_get_gpu_board_info"),
    (r"nvmlDeviceGetUUID", "amdsmi_get_gpu_device_uuid"),
    (r"nvmlDeviceGetVbiosVersion", "amdsmi_get_gpu_vbios_info"),
    (r"nvmlDeviceGet(MemoryInfo|BAR1MemoryInfo)|nvmlMemory_", "amdsmi_get_gpu_vram_usage"),
    (r"nvmlDeviceGetUtilizationRates|nvmlUtilization_t|nvmlDeviceGetSamples",
     "amdsmi_get_gpu_activity"),
    (r"nvmlDeviceGet(Temperature|ThermalSettings)|NVML_TEMPERATURE", "amdsmi_get_temp_metric"),
    (r"nvmlDeviceGetFan", "amdsmi_get_gpu_fan_speed"),
    (r"nvmlDeviceSetFan", "amdsmi_set_gpu_fan_speed"),
    (r"nvmlDeviceGet(PowerManagementLimit|PowerManagementDefaultLimit|EnforcedPowerLimit)",
     "amdsmi_get_power_cap_info"),
    (r"nvmlDeviceSetPowerManagementLimit", "amdsmi_set_power_cap"),
    (r"nvmlDeviceGetPower", "amdsmi_get_power_info"),
    (r"nvmlDeviceGetTotalEnergy", "amdsmi_get_energy_count"),
    (r"nvmlDeviceGet\w*Clock|NVML_CLOCK", "amdsmi_get_clock_info"),
    (r"nvmlDeviceSet\w*Clock|nvmlDeviceReset\w*Clock", "amdsmi_set_gpu_clk_limit"),
    (r"nvmlDeviceGetPcieThroughput", "amdsmi_get_gpu_pci_throughput"),
    (r"nvmlDeviceGet\w*Pcie", "amdsmi_get_pcie_info"),
    (r"nvmlDeviceGetPciInfo|nvmlPciInfo", "amdsmi_get_gpu_device_bdf"),
    (r"nvmlDeviceGet\w*(Ecc|RetiredPages|Remapped)", "amdsmi_get_gpu_total_ecc_count"),
    (r"nvmlDeviceGet\w*(RunningProcesses|ProcessUtilization)|nvmlProcess",
     "amdsmi_get_gpu_process_list"),
    (r"nvmlDeviceGetPerformanceState|NVML_PSTATE", "amdsmi_get_gpu_perf_level"),
    (r"nvmlDeviceGetTopology|nvmlDeviceOnSameBoard", "amdsmi_topo_get_link_type"),
    (r"nvmlDeviceGetP2PStatus", "amdsmi_is_P2P_accessible"),
    (r"nvmlDeviceGetNvLink|NVML_NVLINK", "amdsmi_get_link_metrics"),
    (r"nvmlEventSet|nvmlDeviceRegisterEvents", "amdsmi_init_gpu_event_notification"),
    (r"nvmlDeviceGetNumaNode|nvmlDevice\w*Affinity", "amdsmi_topo_get_numa_node_number"),
    (r"nvml", "AMD SMI (amd_smi/amdsmi.h)"), (r"NVML", "AMD SMI (amd_smi/amdsmi.h)"),
)  # fmt: skip

CUPTI_NEAR = (
    (r"cuptiActivityFlush", "rocprofiler_flush_buffer"),
    (r"cuptiActivityRegisterCallbacks|cuptiActivityGetNextRecord", "rocprofiler_create_buffer"),
    (r"cuptiActivity\w*External", "rocprofiler_push_external_correlation_id"),
    (r"cuptiActivity", "rocprofiler_configure_buffer_tracing_service"),
    (r"cupti(Subscribe|EnableCallback|EnableDomain|EnableAll|Unsubscribe|GetCallback)",
     "rocprofiler_configure_callback_tracing_service"),
    (r"cupti\w*PCSampling|cuptiPCSampling", "rocprofiler_configure_pc_sampling_service"),
    (r"cupti(Event|Metric|Profiler|RangeProfiler|PmSampling|Device\w*Event|SetEvent)",
     "rocprofiler_configure_dispatch_counting_service"),
    (r"cuptiGetTimestamp", "rocprofiler_get_timestamp"),
    (r"cuptiGetVersion", "rocprofiler_get_version"),
    (r"cuptiGetResultString", "rocprofiler_get_status_string"),
    (r"cupti", "rocprofiler-sdk"),
)  # fmt: skip

DNN_NEAR = (
    (r"cudnnCreate$", "miopenCreate"), (r"cudnnDestroy$", "miopenDestroy"),
    (r"cudnnSetStream", "miopenSetStream"), (r"cudnnGetStream", "miopenGetStream"),
    (r"cudnnHandle_t", "miopenHandle_t"), (r"cudnnStatus_t|CUDNN_STATUS", "miopenStatus_t"),
    (r"cudnnGetErrorString", "miopenGetErrorString"), (r"cudnnGetVersion", "miopenGetVersion"),
    (r"cudnnDataType_t|CUDNN_DATA_", "miopenDataType_t"),
    (r"cudnn(Create|Destroy)TensorDescriptor|cudnnTensorDescriptor_t|cudnnFilterDescriptor_t|"
     r"cudnn(Create|Destroy)FilterDescriptor",
     "miopenCreateTensorDescriptor (filters are tensors too)"),
    (r"cudnnSetTensor4dDescriptor|cudnnSetFilter4d", "miopenSet4dTensorDescriptor"),
    (r"cudnnSetTensorNd|cudnnSetFilterNd", "miopenSetTensorDescriptor"),
    (r"cudnnGetTensor4d", "miopenGet4dTensorDescriptor"),
    (r"cudnnSetTensor$", "miopenSetTensor"), (r"cudnnScaleTensor", "miopenScaleTensor"),
    (r"cudnnTransformTensor", "miopenTransformTensor"),
    (r"cudnn\w*OpTensor|cudnnAddTensor|CUDNN_OP_TENSOR", "miopenOpTensor"),
    (r"cudnnConvolutionForward", "miopenConvolutionForward"),
    (r"cudnnConvolutionBackwardData", "miopenConvolutionBackwardData"),
    (r"cudnnConvolutionBackwardFilter", "miopenConvolutionBackwardWeights"),
    (r"cudnnConvolutionBackwardBias", "miopenConvolutionBackwardBias"),
    (r"cudnnConvolutionBiasActivation", "miopenConvolutionBiasActivationForward"),
    (r"cudnn(Find|Get)ConvolutionForward(Algo|\w*Workspace)",
     "miopenFindConvolutionForwardAlgorithm, miopenConvolutionForwardGetWorkSpaceSize"),
    (r"cudnn(Find|Get)ConvolutionBackwardData",
     "miopenFindConvolutionBackwardDataAlgorithm, miopenConvolutionBackwardDataGetWorkSpaceSize"),
    (r"cudnn(Find|Get)ConvolutionBackwardFilter",
     "miopenFindConvolutionBackwardWeightsAlgorithm, "
     "miopenConvolutionBackwardWeightsGetWorkSpaceSize"),
    (r"cudnnGetConvolution(2d|Nd)ForwardOutputDim", "miopenGetConvolutionForwardOutputDim"),
    (r"cudnnSetConvolutionGroupCount", "miopenSetConvolutionGroupCount"),
    (r"cudnnSetConvolution", "miopenInitConvolutionDescriptor, miopenInitConvolutionNdDescriptor"),
    (r"cudnn\w*Convolution|CUDNN_(CROSS_)?CO", "miopenConvolutionDescriptor_t and its calls"),
    (r"cudnnPoolingForward", "miopenPoolingForward"),
    (r"cudnnPoolingBackward", "miopenPoolingBackward"),
    (r"cudnn\w*Pooling|CUDNN_POOLING",
     "miopenSet2dPoolingDescriptor, miopenSetNdPoolingDescriptor"),
    (r"cudnnActivationForward", "miopenActivationForward"),
    (r"cudnnActivationBackward", "miopenActivationBackward"),
    (r"cudnn\w*Activation|CUDNN_ACTIVATION", "miopenSetActivationDescriptor"),
    (r"cudnnSoftmaxForward", "miopenSoftmaxForward_V2"),
    (r"cudnnSoftmaxBackward", "miopenSoftmaxBackward_V2"),
    (r"cudnn\w*Softmax|CUDNN_SOFTMAX", "miopenSoftmaxAlgorithm_t, miopenSoftmaxMode_t"),
    (r"cudnnBatchNormalizationForwardTraining", "miopenBatchNormalizationForwardTraining"),
    (r"cudnnBatchNormalizationForwardInference", "miopenBatchNormalizationForwardInference"),
    (r"cudnnBatchNormalizationBackward", "miopenBatchNormalizationBackward"),
    (r"cudnnDeriveBN", "miopenDeriveBNTensorDescriptor"),
    (r"cudnn\w*Batch|CUDNN_B(ATCH)?N", "miopenBatchNormalizationForwardTraining and its kin"),
    (r"cudnnLRNCrossChannelForward", "miopenLRNForward"),
    (r"cudnnLRNCrossChannelBackward", "miopenLRNBackward"),
    (r"cudnn\w*LRN|CUDNN_LRN", "miopenSetLRNDescriptor"),
    (r"cudnnDropoutForward", "miopenDropoutForward"),
    (r"cudnnDropoutBackward", "miopenDropoutBackward"),
    (r"cudnn\w*Dropout", "miopenSetDropoutDescriptor"),
    (r"cudnnReduceTensor$", "miopenReduceTensor"),
    (r"cudnn\w*Reduc|CUDNN_REDUCE", "miopenSetReduceTensorDescriptor"),
    (r"cudnnRNNForwardTraining|cudnnRNNForward$", "miopenRNNForwardTraining"),
    (r"cudnnRNNForwardInference", "miopenRNNForwardInference"),
    (r"cudnnRNNBackwardData", "miopenRNNBackwardData"),
    (r"cudnnRNNBackwardWeights", "miopenRNNBackwardWeights"),
    (r"cudnn\w*RNN|CUDNN_(RNN|LSTM|GRU)", "miopenSetRNNDescriptor"),
    (r"cudnnCTCLoss", "miopenCTCLoss"), (r"cudnn\w*CTC", "miopenSetCTCLossDescriptor"),
    (r"cudnn\w*(MultiHead|Attn|SeqData)",
     "miopenMhaDescriptor: the MHA problem of MIOpen's find 2.0"),
    (r"cudnnBackend|cudnn\w*Backend|CUDNN_(ATTR|BACKEND|TYPE|HEUR|KNOB)",
     "hipDNN's backend (hipdnnBackend* names, ROCm 10) or MIOpen's fusion API"),
    (r"cudnn|CUDNN", "MIOpen (miopen/miopen.h)"),
)  # fmt: skip

CUB_CLASSES = (
    "DeviceAdjacentDifference DeviceCopy DeviceFor DeviceHistogram DeviceMemcpy DeviceMerge "
    "DeviceMergeSort DevicePartition DeviceRadixSort DeviceReduce DeviceRunLengthEncode "
    "DeviceScan DeviceSegmentedRadixSort DeviceSegmentedReduce DeviceSegmentedSort DeviceSelect "
    "DeviceTransform BlockAdjacentDifference BlockDiscontinuity BlockExchange BlockHistogram "
    "BlockLoad BlockMergeSort BlockRadixRank BlockRadixSort BlockReduce BlockRunLengthDecode "
    "BlockScan BlockShuffle BlockStore WarpExchange WarpLoad WarpMergeSort WarpReduce WarpScan "
    "WarpStore GridBarrier GridEvenShare GridQueue ArgIndexInputIterator "
    "CacheModifiedInputIterator CacheModifiedOutputIterator ConstantInputIterator "
    "CountingInputIterator DiscardOutputIterator TexObjInputIterator TransformInputIterator "
    "CachingDeviceAllocator DoubleBuffer KeyValuePair Sum Max Min ArgMax ArgMin Equality "
    "Inequality InequalityWrapper CastOp SwizzleScanOp ReduceBySegmentOp ReduceByKeyOp "
    "ThreadLoad ThreadStore LaneId WarpId Log2 Traits NumericTraits"
)
CUB_MISSING = {
    "cub::DispatchReduce": "hipcub::DeviceReduce", "cub::DispatchScan": "hipcub::DeviceScan",
    "cub::DispatchRadixSort": "hipcub::DeviceRadixSort", "cub::DispatchSelectIf":
    "hipcub::DeviceSelect", "cub::AgentReduce": "rocprim's block and device reductions",
    "cub::ChainedPolicy": "rocprim's kernel_config types", "cub::WarpReduceBatched":
    "hipcub::WarpReduce per item",
}  # fmt: skip
THRUST = (
    "device_vector host_vector universal_vector device_ptr device_reference raw_pointer_cast "
    "device_pointer_cast device_malloc device_free device_allocator copy copy_if copy_n fill "
    "fill_n generate sequence tabulate transform transform_if transform_reduce for_each "
    "for_each_n reduce reduce_by_key inclusive_scan exclusive_scan inclusive_scan_by_key "
    "exclusive_scan_by_key transform_inclusive_scan transform_exclusive_scan sort stable_sort "
    "sort_by_key stable_sort_by_key is_sorted merge merge_by_key unique unique_copy "
    "unique_by_key count count_if find find_if min_element max_element minmax_element "
    "lower_bound upper_bound binary_search equal_range set_union set_intersection "
    "set_difference remove remove_if remove_copy_if replace replace_if partition "
    "stable_partition gather scatter scatter_if inner_product equal mismatch all_of any_of "
    "none_of adjacent_difference reverse swap_ranges uninitialized_fill shuffle pair tuple "
    "make_pair make_tuple get tie zip_iterator make_zip_iterator counting_iterator "
    "make_counting_iterator constant_iterator make_constant_iterator transform_iterator "
    "make_transform_iterator permutation_iterator make_permutation_iterator discard_iterator "
    "make_discard_iterator reverse_iterator plus minus multiplies divides maximum minimum "
    "identity less greater equal_to not_equal_to negate logical_and logical_or complex device "
    "host seq system_error optional"
)
GROUPS = (
    "this_grid this_multi_grid this_thread_block this_thread coalesced_threads tiled_partition "
    "thread_group thread_block grid_group multi_grid_group coalesced_group thread_block_tile "
    "sync thread_rank group_size is_valid"
)
GROUPS_MISSING = {
    "reduce": "a loop of shfl_xor over the tile",
    "inclusive_scan": "a loop of shfl_up over the tile",
    "exclusive_scan": "a loop of shfl_up over the tile",
    "memcpy_async": "a copy loop with a barrier", "wait": "sync of the group",
    "wait_prior": "sync of the group", "this_cluster": "a grid without clusters",
    "cluster_group": "a grid without clusters", "labeled_partition": "ballots of the labels",
    "binary_partition": "ballots of the predicate", "invoke_one": "a branch on thread_rank() == 0",
    "invoke_one_broadcast": "a branch on thread_rank() == 0 and shfl",
}  # fmt: skip
WMMA = {
    "fragment": "class", "load_matrix_sync": "function", "store_matrix_sync": "function",
    "mma_sync": "function", "fill_fragment": "function", "matrix_a": "class", "matrix_b": "class",
    "accumulator": "class", "row_major": "class", "col_major": "class", "mem_row_major": "enum",
    "mem_col_major": "enum", "layout_t": "type",
}  # fmt: skip
LIBCUDACXX = {
    "cuda::atomic": "hip::atomic of libhipcxx, or __hip_atomic_* with a scope",
    "cuda::atomic_ref": "hip::atomic_ref of libhipcxx, or __hip_atomic_* with a scope",
    "cuda::barrier": "__syncthreads, or hip::barrier of libhipcxx",
    "cuda::pipeline": "double buffering in LDS with __syncthreads",
    "cuda::memcpy_async": "a copy loop and a barrier",
    "cuda::counting_semaphore": "hip::counting_semaphore of libhipcxx",
    "cuda::latch": "hip::latch of libhipcxx", "cuda::std::atomic": "hip::std::atomic of libhipcxx",
    "cuda::std::array": "hip::std::array of libhipcxx",
    "cuda::std::tuple": "hip::std::tuple of libhipcxx",
    "cuda::std::optional": "hip::std::optional of libhipcxx",
    "cuda::std::complex": "hip::std::complex of libhipcxx",
    "cuda::std::span": "hip::std::span of libhipcxx", "cuda::thread_scope_system":
    "__HIP_MEMORY_SCOPE_SYSTEM", "cuda::thread_scope_device": "__HIP_MEMORY_SCOPE_AGENT",
    "cuda::thread_scope_block": "__HIP_MEMORY_SCOPE_WORKGROUP",
    "cuda::thread_scope_thread": "__HIP_MEMORY_SCOPE_SINGLETHREAD",
    "cuda::annotated_ptr": "the pointer: AMD has no access properties",
    "cuda::access_property": "nothing: AMD has no access properties",
    "cuda::aligned_size_t": "the size and __builtin_assume_aligned",
    "cuda::proclaim_return_type": "the callable itself",
}  # fmt: skip
CUTLASS = {
    "cutlass::gemm::device::Gemm": "ck::tensor_operation::device::DeviceGemm",
    "cutlass::gemm::device::GemmUniversal": "ck::tensor_operation::device::DeviceGemmMultipleD",
    "cutlass::gemm::device::GemmBatched": "ck::tensor_operation::device::DeviceBatchedGemm",
    "cutlass::gemm::device::GemmGrouped": "ck::tensor_operation::device::DeviceGroupedGemm",
    "cutlass::conv::device::ImplicitGemmConvolution":
    "ck::tensor_operation::device::DeviceGroupedConvFwdMultipleABD",
    "cutlass::epilogue::thread::LinearCombination": "ck::tensor_operation::element_wise operations",
    "cutlass::half_t": "ck::half_t", "cutlass::bfloat16_t": "ck::bhalf_t",
    "cutlass::layout::RowMajor": "ck::tensor_layout::gemm::RowMajor",
    "cutlass::layout::ColumnMajor": "ck::tensor_layout::gemm::ColumnMajor",
    "cute::Layout": "ck_tile's tensor descriptors", "cute::Tensor": "ck_tile's tensor views",
    "cute::TiledMMA": "ck_tile's warp gemm", "cute::copy": "ck_tile's load_tile and store_tile",
}  # fmt: skip


def near(name: str, table: tuple[tuple[str, str], ...]) -> str:
    """What the first matching pattern of a table says."""
    return next((text for pattern, text in table if re.match(pattern, name)), "")


def _row(cuda: str, kind: str, **values: str) -> Row:
    return {"cuda": cuda, "kind": kind, **values}


def first_seen(rows: list[Row]) -> str:
    """``hip_added`` by the oldest headers that have a name: empty where those of 5.2 do."""
    seen = {v for row in rows for v in row["versions"].split(",")}
    if "5.2" in seen:
        return ""
    return next((v for v in ("6.4", "7.2", "10.0") if v in seen), "")


def extra_rows(prototypes: Prototypes) -> dict[str, list[Row]]:
    """Rows by library."""
    out: dict[str, list[Row]] = defaultdict(list)
    for (side, name), found in prototypes.items():
        if side != "cuda":
            continue
        library, kind = found[0]["library"], found[0]["kind"]
        if library == "nccl":
            same = prototypes.get(("hip", name), [])
            if kind == "macro" and not same:
                continue
            since = first_seen(same)
            # 6.4 is the oldest binding of RCCL at hand, so it tells nothing of what is older.
            values = {"hip": name, "hip_header": "rccl/rccl.h",
                      "hip_added": "" if since == "6.4" else since}  # fmt: skip
            missing = {"note": "RCCL does not declare it"}
            out["nccl"].append(_row(name, kind, **(values if same else missing)))
        elif library == "nvtx" and re.match(r"nvtx[A-Z]|NVTX_(COLOR|PAYLOAD|MESSAGE)", name):
            if name in NVTX:
                continue
            out["nvtx"].append(_row(name, kind, replacement=near(name, NVTX_NEAR)))
        elif library == "nvml" and not (kind == "macro" and not name.startswith("nvml")):
            out["nvml"].append(_row(name, kind, replacement=near(name, NVML_NEAR)))
        elif library == "cuda_cupti" and kind == "function" and name.startswith("cupti"):
            out["cupti"].append(_row(name, kind, replacement=near(name, CUPTI_NEAR)))
    for cuda, hip in NVTX.items():
        kind = "macro" if cuda.endswith(("Push", "Mark", "Start")) else "function"
        kind = "type" if cuda.endswith("_t") else kind
        out["nvtx"].append(_row(cuda, kind, hip=hip, hip_header="rocprofiler-sdk-roctx/roctx.h"))
    for word in CUB_CLASSES.split():
        out["cub"].append(
            _row(f"cub::{word}", "class", hip=f"hipcub::{word}", hip_header="hipcub/hipcub.hpp")
        )
    for cuda, text in CUB_MISSING.items():
        out["cub"].append(_row(cuda, "class", replacement=text))
    for word in THRUST.split():
        out["thrust"].append(
            _row(
                f"thrust::{word}",
                "function",
                hip=f"thrust::{word}",
                note="rocThrust keeps the name",
            )
        )
    for word in GROUPS.split():
        name = f"cooperative_groups::{word}"
        out["groups"].append(
            _row(name, "function", hip=name, hip_header="hip/hip_cooperative_groups.h")
        )
    for word, text in GROUPS_MISSING.items():
        out["groups"].append(_row(f"cooperative_groups::{word}", "function", replacement=text))
    for word, kind in WMMA.items():
        out["wmma"].append(
            _row(f"nvcuda::wmma::{word}", kind, replacement=f"rocwmma::{word}",
                 note="block sizes and the fragments' layout differ")
        )  # fmt: skip
    for library, table in (("libcudacxx", LIBCUDACXX), ("cutlass", CUTLASS)):
        for cuda, text in table.items():
            out[library].append(_row(cuda, "class", replacement=text))
    return out
