#!/usr/bin/env python3
"""Compares device/nrt with the public headers of libnrt, field by field: check_nrt_layout.py INCLUDE

INCLUDE is src/libnrt/include of aws-neuron-sdk. Run by hand: the headers are not part of this tree. Checked are the
values of enumerations, sizes and offsets of structures, and that each function has as many parameters, each as wide."""
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CXX = "g++"

# (ours, theirs) of structures, and of their fields where the names differ.
STRUCTURES = {
    "InstanceInfo": ("nrt_instance_info_t", {}),
    "Version": ("nrt_version_t", {"major": "rt_major", "minor": "rt_minor", "patch": "rt_patch",
                                  "maintenance": "rt_maintenance", "detail": "rt_detail"}),
    "BatchOp": ("nrt_tensor_batch_op_t", {}),
    "TensorBatch": ("nrt_tensor_batch_t", {}),
    "AllocationInfo": ("nrt_tensor_device_allocation_info_t", {}),
    "MemoryStats": ("nrt_vnc_memory_stats_t", {}),
    "CommInfo": ("nrt_cc_comm_t", {}),
    "TensorList": ("nrt_tensor_list_t", {}),
    "AsyncError": ("nrta_error_t", {}),
    "TensorInfo": ("nrt_tensor_info_t", {}),
    "TensorInfoArray": ("nrt_tensor_info_array_t", {}),
    "ModelInfo": ("nrt_model_info_t", {}),
    "MicrocodeImage": ("nrt_ucode_img", {}),
    "MicrocodeInfo": ("nrt_ucode_info", {}),
    "DebugEventHeader": ("ndebug_stream_event_header_t", {}),
}
VALUES = {
    "Status": "success=NRT_SUCCESS failure=NRT_FAILURE invalid=NRT_INVALID invalid_handle=NRT_INVALID_HANDLE "
              "resource=NRT_RESOURCE timeout=NRT_TIMEOUT hardware_error=NRT_HW_ERROR queue_full=NRT_QUEUE_FULL "
              "not_enough_cores=NRT_LOAD_NOT_ENOUGH_NC unsupported_neff=NRT_UNSUPPORTED_NEFF_VERSION "
              "host_memory=NRT_FAIL_HOST_MEM_ALLOC uninitialized=NRT_UNINITIALIZED closed=NRT_CLOSED "
              "queue_empty=NRT_QUEUE_EMPTY unrecoverable=NRT_EXEC_UNIT_UNRECOVERABLE bad_input=NRT_EXEC_BAD_INPUT "
              "completed_with_nan=NRT_EXEC_COMPLETED_WITH_NUM_ERR completed_with_error=NRT_EXEC_COMPLETED_WITH_ERR "
              "core_busy=NRT_EXEC_NC_BUSY out_of_bounds=NRT_EXEC_OOB collective_pending=NRT_COLL_PENDING "
              "collective_stuck=NRT_EXEC_HW_ERR_COLLECTIVES hbm_uncorrectable=NRT_EXEC_HW_ERR_HBM_UE "
              "core_uncorrectable=NRT_EXEC_HW_ERR_NC_UE dma_abort=NRT_EXEC_HW_ERR_DMA_ABORT "
              "notification_overflow=NRT_EXEC_SW_NQ_OVERFLOW hbm_repairable=NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE "
              "network_proxy=NRT_NETWORK_PROXY_FAILURE",
    "TensorPlacement": "device=NRT_TENSOR_PLACEMENT_DEVICE host=NRT_TENSOR_PLACEMENT_HOST "
                 "virtual_memory=NRT_TENSOR_PLACEMENT_VIRTUAL",
    "Framework": "none=NRT_FRAMEWORK_TYPE_NO_FW tensorflow=NRT_FRAMEWORK_TYPE_TENSORFLOW "
                 "pytorch=NRT_FRAMEWORK_TYPE_PYTORCH mxnet=NRT_FRAMEWORK_TYPE_MXNET "
                 "precheck=NRT_FRAMEWORK_TYPE_PRECHECK",
    "TensorUsage": "input=NRT_TENSOR_USAGE_INPUT output=NRT_TENSOR_USAGE_OUTPUT",
    "ReduceKind": "add=NRT_OP_ADD fma=NRT_OP_FMA max=NRT_OP_MAX min=NRT_OP_MIN invalid=NRT_OP_INVALID",
    "CollectiveKind": "all_gather=NRT_CC_ALLGATHER all_reduce=NRT_CC_ALLREDUCE reduce_scatter=NRT_CC_REDUCESCATTER",
    "ExecutionUnit": "tensor_read=NRTA_XU_TENSOR_READ tensor_write=NRTA_XU_TENSOR_WRITE tensor_op=NRTA_XU_TENSOR_OP "
            "compute=NRTA_XU_COMPUTE collectives=NRTA_XU_COLLECTIVES",
    "NrtDType": "u64=NRT_DTYPE_UINT64 i8=NRT_DTYPE_INT8 u8=NRT_DTYPE_UINT8 i16=NRT_DTYPE_INT16 u16=NRT_DTYPE_UINT16 "
               "bf16=NRT_DTYPE_BFLOAT16 f16=NRT_DTYPE_FLOAT16 i32=NRT_DTYPE_INT32 u32=NRT_DTYPE_UINT32 "
               "f32=NRT_DTYPE_FLOAT32 f32r=NRT_DTYPE_FP32R i64=NRT_DTYPE_INT64 f8e3=NRT_DTYPE_FP8_E3 "
               "f8e4=NRT_DTYPE_FP8_E4 f8e5=NRT_DTYPE_FP8_E5",
    "InstanceFamily": "inf1=NRT_INSTANCE_INF1 trn1=NRT_INSTANCE_TRN1 trn1n=NRT_INSTANCE_TRN1N inf2=NRT_INSTANCE_INF2 "
              "trn2=NRT_INSTANCE_TRN2 trn2n=NRT_INSTANCE_TRN2N inf2e=NRT_INSTANCE_INF2E trn2p=NRT_INSTANCE_TRN2P "
              "trn2u=NRT_INSTANCE_TRN2U trn2e=NRT_INSTANCE_TRN2E trn2eu=NRT_INSTANCE_TRN2EU "
              "trn2ac=NRT_INSTANCE_TRN2AC trn2uac=NRT_INSTANCE_TRN2UAC trn3=NRT_INSTANCE_TRN3 "
              "trn3pds98=NRT_INSTANCE_TRN3PDS98",
    "InstanceSize": "xl1=NRT_INSTANCE_SIZE_1XL xl2=NRT_INSTANCE_SIZE_2XL xl4=NRT_INSTANCE_SIZE_4XL xl6=NRT_INSTANCE_SIZE_6XL "
            "xl8=NRT_INSTANCE_SIZE_8XL xl24=NRT_INSTANCE_SIZE_24XL xl32=NRT_INSTANCE_SIZE_32XL "
            "xl48=NRT_INSTANCE_SIZE_48XL xl3=NRT_INSTANCE_SIZE_3XL unknown=NRT_INSTANCE_SIZE_UNKNOWN",
}
# Only documentation has these.
NOT_IN_HEADERS = {"nrt_get_dmabuf_fd_v2"}

WIDTHS = """
template <class T> void width() { if constexpr (std::is_void_v<T>) std::printf(" 0"); else std::printf(" %zu", sizeof(T)); }
template <class R, class... P> void shape(const char* name, R (*)(P...)) {
  std::printf("%s", name); width<R>(); std::printf(" of"); (width<P>(), ...); std::printf("\\n");
}
"""


def fields_of(structure):
    body = re.search(r"struct %s \{(.*?)\n\};" % structure, (ROOT / "device/nrt/structures.h").read_text(), re.S)
    names = []
    for line in body.group(1).split(";"):
        for one in line.split(","):
            found = re.search(r"(\w+)(\[\w+\])?\s*$", one.strip())
            if found:
                names.append(found.group(1))
    return names


def functions():
    text = "".join((ROOT / "device/nrt" / f).read_text()
                   for f in ["function_list.h", "async_function_list.h", "trace_function_list.h"])
    return [name for name in re.findall(r'X\("[\d.]+", [^,]+, (\w+),', text) if name not in NOT_IN_HEADERS]


def run(text, include):
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "t.cpp", pathlib.Path(folder) / "t"
        source.write_text(text)
        subprocess.run([CXX, "-std=c++20", "-w", f"-I{include}", source, "-c", "-o", program.with_suffix(".o")], check=True)
        subprocess.run([CXX, program.with_suffix(".o"), "-o", program, "-Wl,--unresolved-symbols=ignore-all"], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def program(headers, lines):
    return (f"#include <cassert>\n#include <cstddef>\n#include <cstdint>\n#include <cstdio>\n#include <type_traits>\n{headers}\n"
            f"{WIDTHS}\nint main() {{\n" + "\n".join(lines) + "\n}\n")


def main():
    include = sys.argv[1]
    ours, theirs = [], []
    for name, (their_name, other) in STRUCTURES.items():
        for what, out, structure in [("ours", ours, name), ("theirs", theirs, their_name)]:
            out.append(f'std::printf("{name} %zu\\n", sizeof({structure}));')
            for field in fields_of(name):
                there = field if what == "ours" else other.get(field, field)
                out.append(f'std::printf("{name}.{field} %zu %zu\\n", offsetof({structure}, {there}), '
                           f'sizeof((({structure}*)nullptr)->{there}));')
    for name, pairs in VALUES.items():
        for pair in pairs.split():
            value, their_value = pair.split("=")
            ours.append(f'std::printf("{name}::{value} %lld\\n", (long long){name}::{value});')
            theirs.append(f'std::printf("{name}::{value} %lld\\n", (long long){their_value});')
    for name in functions():
        ours.append(f'shape("{name}", static_cast<decltype(NrtLibrary::{name})>(nullptr));')
        theirs.append(f'shape("{name}", static_cast<decltype(&{name})>(nullptr));')
    headers = "".join(f'#include "nrt/{h}.h"\n' for h in
                      ["nrt", "nrt_version", "nrt_async", "nrt_async_sendrecv", "nrt_experimental", "nrt_profile",
                       "nrt_sys_trace", "ndebug_stream"])
    ours = run(program('#include "device/nrt/library.h"\nusing namespace trellis::device::nrt;', ours), ROOT)
    theirs = run(program(headers, theirs), include)
    wrong = [f"ours {a}; theirs {b}" for a, b in zip(ours, theirs, strict=True) if a != b]
    print("\n".join(wrong or [f"{len(ours)} sizes, offsets, values and functions are alike"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
