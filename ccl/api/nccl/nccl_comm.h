// What an ncclComm_t refers to: one rank's communicator of the C API, with the state that NCCL's API adds.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "ccl/api/handles/handles.h"
#include "ccl/api/nccl/nccl.h"
#include "ccl/api/trellis.h"

namespace trellis::nccl {

// An operator from ncclRedOpCreatePreMulSum.
struct PreMulSumOp {
  ncclDataType_t type;
  const void* scalar;  // read by each call; null: `factor` was read at creation
  double factor;
};

struct NcclRegion {
  void* begin;
  bool window;
  trellis_registration registration;
};

struct RankAndSize {
  int rank, ranks;
};

// One rank of a communicator.
class NcclComm {
 public:
  NcclComm(trellis_comm comm, int device) : comm_(comm), device_(device) {}

  trellis_comm comm() const { return comm_; }
  trellis_comm for_operations() const;  // throws NcclError when it was revoked or suspended
  int device() const { return device_; }
  trellis_stream stream_of(cudaStream_t) const;  // default streams are those of the communicator's device
  RankAndSize place() const;                     // throws NcclError while it is being created, or if that failed

  int add(PreMulSumOp);
  PreMulSumOp scaling(ncclRedOp_t) const;  // throws NcclError, as do the functions below
  void remove(ncclRedOp_t);
  void* add(void* begin, std::size_t bytes, bool window);
  NcclRegion region(const void* handle, bool window) const;
  void remove(const void* handle, bool window);

  std::atomic<bool> revoked = false, suspended = false, finalized = false;

 private:
  const trellis_comm comm_;
  const int device_;
  mutable std::atomic<int> rank_ = -1, ranks_ = 0;  // 0: not queried yet
  mutable std::mutex mutex_;
  std::map<int, PreMulSumOp> scalings_;
  std::map<std::uintptr_t, NcclRegion> regions_;
  int next_operator_ = ncclNumOps;
  std::uintptr_t next_region_ = 1;
};

ccl::api::Handles<NcclComm>& nccl_comms();

}  // namespace trellis::nccl
