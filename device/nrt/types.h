// The public binary interface of the Neuron runtime, libnrt: values and structures, as its public headers lay them out
// (aws-neuron-sdk, src/libnrt/include, SDK 2.28). Written anew; tools/device/check_nrt_layout.py compares them field by
// field with those headers where they are there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trellis::device::nrt {

enum class Status : std::int32_t {
  success = 0,
  failure = 1,
  invalid = 2,
  invalid_handle = 3,
  resource = 4,
  timeout = 5,
  hardware_error = 6,
  queue_full = 7,
  not_enough_cores = 9,
  unsupported_neff = 10,
  host_memory = 11,
  uninitialized = 13,
  closed = 14,
  queue_empty = 15,
  unrecoverable = 101,
  bad_input = 1002,
  completed_with_nan = 1003,
  completed_with_error = 1004,
  core_busy = 1005,
  out_of_bounds = 1006,
  collective_pending = 1100,
  collective_stuck = 1200,
  hbm_uncorrectable = 1201,
  core_uncorrectable = 1202,
  dma_abort = 1203,
  notification_overflow = 1204,
  hbm_repairable = 1205,
  network_proxy = 1206,
};

enum class TensorPlacement : std::int32_t { device, host, virtual_memory };
enum class Framework : std::int32_t { invalid = 0, none = 1, tensorflow = 2, pytorch = 3, mxnet = 4, precheck = 5 };
enum class TensorUsage : std::int32_t { input = 0, output = 1 };
enum class ReduceKind : std::int32_t { add = 0, fma = 1, max = 2, min = 3, invalid = 15 };
enum class CollectiveKind : std::int32_t { all_gather = 0, all_reduce = 1, reduce_scatter = 2 };
// Execution units: queues of one kind of work.
enum class ExecutionUnit : std::int32_t {
  tensor_read = 0,
  tensor_write = 1,
  tensor_op = 2,
  compute = 3,
  collectives = 4
};
inline constexpr int unit_count = 5;

enum class NrtDType : std::int32_t {
  unknown = 0,
  u64 = 1,
  i8 = 2,
  u8 = 3,
  i16 = 4,
  u16 = 5,
  bf16 = 6,
  f16 = 7,
  i32 = 8,
  u32 = 9,
  f32 = 10,
  f32r = 11,
  i64 = 12,
  f8e3 = 13,
  f8e4 = 14,
  f8e5 = 15,
};

enum class InstanceFamily : std::uint32_t {
  unknown = 0,
  inf1,
  trn1,
  trn1n,
  inf2,
  trn2,
  trn2n,
  inf2e,
  trn2p,
  trn2u,
  trn2e,
  trn2eu,
  trn2ac,
  trn2uac,
  trn3,
  trn3pds98
};
enum class InstanceSize : std::uint32_t { xl1, xl2, xl4, xl6, xl8, xl24, xl32, xl48, xl3, unknown };

// Handles: callers hold them and never look inside.
struct Model;
struct Tensor;
struct CollectiveContext;
struct ErrorTracker;
struct SendRecvComm;
struct SendRecvRequest;
struct ContinuousOptions;
struct InspectConfig;
struct TraceConfig;
struct FetchOptions;
using TensorSet = void;

using Sequence = std::uint64_t;  // the unit's number in the upper 16 bits, then a count
inline constexpr int sequence_count_bits = 48;

}  // namespace trellis::device::nrt
