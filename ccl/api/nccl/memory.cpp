#include "ccl/api/nccl/nccl_argument_checks.h"
#include "ccl/api/nccl/nccl_error.h"

using namespace trellis::nccl;

namespace {

constexpr const char* allocator = "ncclMemAlloc";

}  // namespace

ncclResult_t ncclMemAlloc(void** ptr, size_t size) {
  return guarded([&] {
    require(ptr, "ptr");
    return trellis_alloc_by(allocator, ptr, size);
  });
}
TRELLIS_NCCL_TWIN(ncclMemAlloc);

ncclResult_t ncclMemFree(void* ptr) {
  return guarded([&] {
    if (trellis_free_by(allocator, ptr) == TRELLIS_INVALID_ARGUMENT)
      refuse_argument("ptr {} was not given by ncclMemAlloc, or has been freed", ptr);
  });
}
TRELLIS_NCCL_TWIN(ncclMemFree);

ncclResult_t ncclCommRegister(const ncclComm_t comm, void* buff, size_t size, void** handle) {
  return guarded([&] {
    require(handle, "handle");
    const auto nccl_comm = nccl_comms().use(comm);
    check_region(buff, size);
    *handle = nccl_comm->add(buff, size, false);
  });
}
TRELLIS_NCCL_TWIN(ncclCommRegister);

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void* handle) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    if (handle != nullptr) nccl_comm->remove(handle, false);
  });
}
TRELLIS_NCCL_TWIN(ncclCommDeregister);

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  return guarded([&] {
    require(win, "win");
    const auto nccl_comm = nccl_comms().use(comm);
    check_region(buff, size);
    if (reinterpret_cast<std::uintptr_t>(buff) % NCCL_WIN_REQUIRED_ALIGNMENT != 0)
      refuse_argument("buff {}: expected a multiple of {}", buff, NCCL_WIN_REQUIRED_ALIGNMENT);
    if ((winFlags & (NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED)) != 0)
      refuse_usage("winFlags {:#x}: there are no GIN and no CFT here", winFlags);
    if ((winFlags & ~(NCCL_WIN_COLL_SYMMETRIC | NCCL_WIN_STRICT_ORDERING)) != 0)
      refuse_argument("winFlags {:#x}: expected NCCL_WIN_* alone", winFlags);
    *win = static_cast<ncclWindow_t>(nccl_comm->add(buff, size, true));
  });
}
TRELLIS_NCCL_TWIN(ncclCommWindowRegister);

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    if (win != nullptr) nccl_comm->remove(win, true);
  });
}
TRELLIS_NCCL_TWIN(ncclCommWindowDeregister);

ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return guarded([&] {
    require(outUserPtr, "outUserPtr");
    *outUserPtr = nccl_comms().use(comm)->region(win, true).begin;
  });
}
TRELLIS_NCCL_TWIN(ncclWinGetUserPtr);

ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    if (flags != NCCL_SUSPEND_MEM) refuse_argument("flags {:#x}: expected NCCL_SUSPEND_MEM", flags);
    if (nccl_comm->suspended.exchange(true)) refuse_usage("the communicator is suspended already");
  });
}
TRELLIS_NCCL_TWIN(ncclCommSuspend);

ncclResult_t ncclCommResume(ncclComm_t comm) {
  return guarded([&] {
    if (!nccl_comms().use(comm)->suspended.exchange(false)) refuse_usage("the communicator is not suspended");
  });
}
TRELLIS_NCCL_TWIN(ncclCommResume);

ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value) {
  return guarded([&] {
    require(value, "value");
    const auto nccl_comm = nccl_comms().use(comm);
    size_t bytes = 0;
    checked(trellis_comm_memory_bytes(nccl_comm->comm(), &bytes));
    switch (static_cast<int>(stat)) {
      case ncclStatGpuMemSuspend:
        *value = 0;
        return;
      case ncclStatGpuMemSuspended:
        *value = nccl_comm->suspended ? 1 : 0;
        return;
      case ncclStatGpuMemPersist:
      case ncclStatGpuMemTotal:
        *value = bytes;
        return;
      default:
        refuse_argument("stat {}: expected 0 to {}", static_cast<int>(stat), int{ncclStatGpuMemTotal});
    }
  });
}
TRELLIS_NCCL_TWIN(ncclCommMemStats);
