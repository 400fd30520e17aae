#include "ccl/api/nccl/nccl_comm.h"

#include "ccl/api/nccl/nccl_error.h"
#include "device/fork_safe_singleton.h"

namespace trellis::nccl {

trellis_comm NcclComm::for_operations() const {
  if (revoked) refuse_usage("the communicator was revoked");
  if (suspended) refuse_usage("the communicator is suspended: call ncclCommResume first");
  return comm_;
}

RankAndSize NcclComm::place() const {
  int ranks = ranks_, rank = rank_;  // ranks_ is read first and stored last: if it is set, so is rank_
  if (ranks == 0) {
    checked(trellis_comm_rank(comm_, &rank));
    checked(trellis_comm_ranks(comm_, &ranks));
    rank_ = rank;
    ranks_ = ranks;
  }
  return {rank, ranks};
}

int NcclComm::add(PreMulSumOp scaling) {
  const std::lock_guard lock(mutex_);
  scalings_.emplace(next_operator_, scaling);
  return next_operator_++;
}

PreMulSumOp NcclComm::scaling(ncclRedOp_t op) const {
  const std::lock_guard lock(mutex_);
  const auto found = scalings_.find(static_cast<int>(op));
  if (found == scalings_.end())
    refuse_argument("op {}: expected 0 to {}, or what ncclRedOpCreatePreMulSum gave for this communicator",
                    static_cast<int>(op), ncclNumOps - 1);
  return found->second;
}

void NcclComm::remove(ncclRedOp_t op) {
  const std::lock_guard lock(mutex_);
  if (scalings_.erase(static_cast<int>(op)) == 0)
    refuse_argument("op {}: expected what ncclRedOpCreatePreMulSum gave for this communicator", static_cast<int>(op));
}

void* NcclComm::add(void* begin, std::size_t bytes, bool window) {
  trellis_registration registration = nullptr;
  checked(trellis_comm_register(comm_, begin, bytes, &registration));
  const std::lock_guard lock(mutex_);
  regions_.emplace(next_region_, NcclRegion{begin, window, registration});
  return reinterpret_cast<void*>(next_region_++);
}

NcclRegion NcclComm::region(const void* handle, bool window) const {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(reinterpret_cast<std::uintptr_t>(handle));
  if (found == regions_.end() || found->second.window != window)
    refuse_argument("{} is no {} of this communicator, or one that was deregistered", handle,
                    window ? "window" : "registration");
  return found->second;
}

void NcclComm::remove(const void* handle, bool window) {
  const NcclRegion known = region(handle, window);
  {
    const std::lock_guard lock(mutex_);
    if (regions_.erase(reinterpret_cast<std::uintptr_t>(handle)) == 0) return;  // another thread was faster
  }
  checked(trellis_comm_deregister(comm_, known.registration));
}

// Never destroyed, like the communicators.
ccl::api::Handles<NcclComm>& nccl_comms() {
  return device::of_this_process([] { return new ccl::api::Handles<NcclComm>(0x7C04, "ncclComm_t"); });
}

// 1 is CUDA's name for the default stream, as NULL is, and 2 for the calling thread's own.
trellis_stream NcclComm::stream_of(cudaStream_t stream) const {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number > 2) return reinterpret_cast<trellis_stream>(stream);
  trellis_stream own = nullptr;
  checked(trellis_default_stream(device_, &own));
  if (own != nullptr && number == 2) checked(trellis_thread_stream(device_, &own));
  return own;
}

}  // namespace trellis::nccl
