// Structures that libnrt and its callers exchange.
#pragma once

#include "device/nrt/types.h"

namespace trellis::device::nrt {

struct InstanceInfo {
  InstanceFamily family;
  InstanceSize size;
  char arch_name[16];
  char device_revision[8];
};

struct Version {
  std::uint64_t major, minor, patch, maintenance;
  char detail[128];
  char git_hash[64];
};

struct BatchOp {
  std::uint64_t offset, size;
  void* buffer;
};

struct TensorBatch {
  const Tensor* tensor;
  const BatchOp* ops;
  std::uint32_t num_ops;
};

struct AllocationInfo {
  std::uint64_t physical_address;
  std::size_t size;
  int hbm_index;
};

struct MemoryStats {
  std::size_t bytes_used, bytes_limit;
};

struct CommInfo {
  std::uint32_t* replica_group;
  std::uint32_t rank, rank_n;
  std::uint32_t ctx_device_id, ctx_device_count;
  std::uint32_t vnc;
};

struct TensorList {
  Tensor** tensors;
  std::size_t num_tensors;
};

struct AsyncError {
  Sequence seq_id;
  std::uint64_t error_code;
};

inline constexpr std::size_t tensor_name_bytes = 256;

struct TensorInfo {
  char name[tensor_name_bytes];
  TensorUsage usage;
  std::size_t size;
  NrtDType dtype;
  std::uint32_t* shape;
  std::uint32_t ndim;
};

// Followed in memory by tensor_count structures TensorInfo.
struct TensorInfoArray {
  std::uint64_t tensor_count;
};

struct ModelInfo {
  std::uint32_t vnc;
};

struct MicrocodeImage {
  std::uint8_t* bin;
  std::size_t size;
};

struct MicrocodeInfo {
  MicrocodeImage iram, dram;
};

struct DebugEventHeader {
  std::uint64_t data_size;
  std::uint32_t type;
  char reserved[52];
};

using ExecCallback = void (*)(void* params, std::uint32_t model, std::uint32_t vnc, std::uint64_t job, Status);

}  // namespace trellis::device::nrt
