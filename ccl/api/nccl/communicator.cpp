#include "ccl/api/nccl/communicator.h"

#include <climits>
#include <cstring>
#include <vector>

#include "ccl/api/nccl/default_stream_order.h"
#include "ccl/api/nccl/nccl_argument_checks.h"
#include "ccl/api/nccl/nccl_error.h"
#include "ccl/api/nccl/translate.h"

// Functions of the CUDA runtime that the program uses, ours or another; null if it uses none.
extern "C" __attribute__((weak)) int cudaGetDevice(int*);
extern "C" __attribute__((weak)) int cudaGetDeviceCount(int*);

using namespace trellis::nccl;

namespace {

int current_device() {
  int device = 0;
  return cudaGetDevice != nullptr && cudaGetDevice(&device) == 0 ? device : 0;
}

// Checks the devices of ncclCommInitAll; without a list they are 0 to ndev - 1. Without a CUDA runtime, numbers are
// labels.
void check_devices(int ndev, const int* devlist) {
  int count = 0;
  const bool known = cudaGetDeviceCount != nullptr && cudaGetDeviceCount(&count) == 0;
  for (int i = 0; devlist != nullptr && i < ndev; ++i)
    if (devlist[i] < 0 || (known && devlist[i] >= count))
      refuse_argument("devlist[{}] is {}: expected 0 to {}{}", i, devlist[i], known ? count - 1 : INT_MAX,
                      known ? "; TRELLIS_DEVICES says how many devices there are" : "");
  if (devlist == nullptr && known && ndev > count)
    refuse_argument("ndev {}: there are {} devices; TRELLIS_DEVICES={} makes as many, and a devlist may name one twice",
                    ndev, count, ndev);
}

void* handle_of(trellis_comm comm, int device) { return nccl_comms().add(std::make_shared<NcclComm>(comm, device)); }

// Creates a communicator with `make`, which gets a pointer for the C API's handle, and wraps it. A split without a
// color creates none.
template <class Make>
trellis_result make(ncclComm_t* out, const char* name, int device, Make&& make_it) {
  require(out, name);
  *out = nullptr;
  expect_outside_streams();
  trellis_comm comm = nullptr;
  const trellis_result result = checked(make_it(&comm));
  if (comm != nullptr) *out = static_cast<ncclComm_t>(handle_of(comm, device));
  return result;
}

trellis_unique_id id_of(const ncclUniqueId& id) {
  trellis_unique_id same;
  static_assert(sizeof same == sizeof id);
  std::memcpy(&same, &id, sizeof same);
  return same;
}

// `rank_name` and `comm_name` are the function's parameter names.
ncclResult_t init(ncclComm_t* comm, int nranks, const ncclUniqueId& id, int rank, const ncclConfig_t* config,
                  const char* rank_name = "rank", const char* comm_name = "comm") {
  return guarded([&] {
    const TranslatedConfig told(config);
    check_rank(rank_name, rank, "nranks", nranks);
    const trellis_unique_id same = id_of(id);
    return make(comm, comm_name, current_device(),
                [&](trellis_comm* made) { return trellis_comm_create(made, nranks, &same, rank, told.config()); });
  });
}

ncclResult_t unique_id(ncclUniqueId* id) {
  return guarded([&] {
    require(id, "uniqueId");
    trellis_unique_id made;
    checked(trellis_unique_id_create(&made));
    std::memcpy(id, &made, sizeof made);
  });
}

}  // namespace

ncclResult_t ncclGetUniqueId(ncclUniqueId* uniqueId) { return unique_id(uniqueId); }
TRELLIS_NCCL_TWIN(ncclGetUniqueId);

void ncclResetDebugInit(void) {}
TRELLIS_NCCL_TWIN(ncclResetDebugInit);

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t* config) {
  return guarded([&] {
    require(config, "config");
    check(*config);
  });
}
TRELLIS_NCCL_TWIN(ncclSetEncryption);

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  return init(comm, nranks, commId, rank, nullptr);
}
TRELLIS_NCCL_TWIN(ncclCommInitRank);

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t* config) {
  return init(comm, nranks, commId, rank, config);
}
TRELLIS_NCCL_TWIN(ncclCommInitRankConfig);

ncclResult_t ncclCommInitRankScalable(ncclComm_t* newcomm, int nranks, int myrank, int nId, ncclUniqueId* commIds,
                                      ncclConfig_t* config) {
  const ncclResult_t fits = guarded([&] {
    require(commIds, "commIds");
    if (nId < 1 || nId > nranks) refuse_argument("nId {}: expected 1 to {} ranks", nId, nranks);
  });
  return fits == ncclSuccess ? init(newcomm, nranks, commIds[0], myrank, config, "myrank", "newcomm") : fits;
}
TRELLIS_NCCL_TWIN(ncclCommInitRankScalable);

ncclResult_t ncclCommInitAll(ncclComm_t* comm, int ndev, const int* devlist) {
  return guarded([&] {
    require(comm, "comm");
    if (ndev < 1) refuse_argument("ndev {}: expected at least 1", ndev);
    check_devices(ndev, devlist);
    expect_outside_streams();
    std::vector<trellis_comm> made(static_cast<std::size_t>(ndev));
    checked(trellis_comm_create_all(made.data(), ndev, nullptr));
    for (int i = 0; i < ndev; ++i)
      comm[i] =
          static_cast<ncclComm_t>(handle_of(made[static_cast<std::size_t>(i)], devlist == nullptr ? i : devlist[i]));
  });
}
TRELLIS_NCCL_TWIN(ncclCommInitAll);

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return guarded([&]() -> trellis_result {
    if (comm == nullptr) return TRELLIS_OK;
    const auto nccl_comm = nccl_comms().use(comm);
    expect_outside_streams();
    if (nccl_comm->revoked) refuse_usage("the communicator was revoked: it can be destroyed, split or shrunk");
    nccl_comm->finalized = true;
    return trellis_comm_finalize(nccl_comm->comm());
  });
}
TRELLIS_NCCL_TWIN(ncclCommFinalize);

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return guarded([&]() -> trellis_result {
    if (comm == nullptr) return TRELLIS_OK;
    expect_outside_streams();
    return trellis_comm_destroy(nccl_comms().take(comm)->comm());
  });
}
TRELLIS_NCCL_TWIN(ncclCommDestroy);

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return guarded([&]() -> trellis_result {
    if (comm == nullptr) return TRELLIS_OK;
    checked(trellis_comm_abort(nccl_comms().use(comm)->comm()));
    return trellis_comm_destroy(nccl_comms().retire(comm)->comm());
  });
}
TRELLIS_NCCL_TWIN(ncclCommAbort);

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  return guarded([&]() -> trellis_result {
    if (comm == nullptr) return TRELLIS_OK;
    const auto nccl_comm = nccl_comms().use(comm);
    if (revokeFlags != NCCL_REVOKE_DEFAULT) refuse_argument("revokeFlags {}: expected 0", revokeFlags);
    if (nccl_comm->finalized) refuse_argument("the communicator was finalized, and can't be revoked any more");
    if (nccl_comm->revoked.exchange(true)) refuse_argument("the communicator was revoked already");
    return trellis_comm_abort(nccl_comm->comm());
  });
}
TRELLIS_NCCL_TWIN(ncclCommRevoke);

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    const TranslatedConfig told(config);
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR)
      refuse_argument("color {}: expected 0 or more, or NCCL_SPLIT_NOCOLOR", color);
    return make(newcomm, "newcomm", nccl_comm->device(), [&](trellis_comm* made) {
      return trellis_comm_split(nccl_comm->comm(), color == NCCL_SPLIT_NOCOLOR ? TRELLIS_NO_COLOR : color, key,
                                told.config(), made);
    });
  });
}
TRELLIS_NCCL_TWIN(ncclCommSplit);

ncclResult_t ncclCommShrink(ncclComm_t comm, int* excludeRanksList, int excludeRanksCount, ncclComm_t* newcomm,
                            ncclConfig_t* config, int shrinkFlags) {
  return guarded([&] {
    const auto nccl_comm = nccl_comms().use(comm);
    const TranslatedConfig told(config);
    if (shrinkFlags != NCCL_SHRINK_DEFAULT && shrinkFlags != NCCL_SHRINK_ABORT)
      refuse_argument("shrinkFlags {}: expected NCCL_SHRINK_DEFAULT or NCCL_SHRINK_ABORT", shrinkFlags);
    require(newcomm, "newcomm");
    check_excluded(excludeRanksList, excludeRanksCount, *nccl_comm);
    if (shrinkFlags == NCCL_SHRINK_ABORT) checked(trellis_comm_abort(nccl_comm->comm()));
    return make(newcomm, "newcomm", nccl_comm->device(), [&](trellis_comm* made) {
      return trellis_comm_shrink(nccl_comm->comm(), excludeRanksList, excludeRanksCount, told.config(), made);
    });
  });
}
TRELLIS_NCCL_TWIN(ncclCommShrink);

ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId* uniqueId) {
  const ncclResult_t fits = guarded([&] { nccl_comms().use(comm)->for_operations(); });
  return fits == ncclSuccess ? unique_id(uniqueId) : fits;
}
TRELLIS_NCCL_TWIN(ncclCommGetUniqueId);

ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank, ncclComm_t* newcomm,
                          ncclConfig_t* config) {
  return guarded([&] {
    const TranslatedConfig told(config);
    const trellis_unique_id id = uniqueId == nullptr ? trellis_unique_id{} : id_of(*uniqueId);
    trellis_comm parent = nullptr;
    int device = current_device();
    if (comm != nullptr) {
      const auto nccl_comm = nccl_comms().use(comm);
      parent = nccl_comm->for_operations();
      device = nccl_comm->device();
      if (nRanks <= nccl_comm->place().ranks)
        refuse_argument("nRanks {}: expected more than the {} of comm", nRanks, nccl_comm->place().ranks);
      if (rank != -1) refuse_argument("rank {}: expected -1 with a comm", rank);
    } else {
      require(uniqueId, "uniqueId");
      check_rank("rank", rank, "nRanks", nRanks);
    }
    return make(newcomm, "newcomm", device, [&](trellis_comm* made) {
      return trellis_comm_grow(parent, nRanks, uniqueId == nullptr ? nullptr : &id, rank, told.config(), made);
    });
  });
}
TRELLIS_NCCL_TWIN(ncclCommGrow);

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  return guarded([&] {
    require(asyncError, "asyncError");
    trellis_result state = TRELLIS_OK;
    const auto nccl_comm = nccl_comms().use(comm);
    checked(trellis_comm_async_error(nccl_comm->comm(), &state));
    // A revoked communicator reports success once its operations have ended, whatever ended it.
    *asyncError = nccl_comm->revoked && state != TRELLIS_IN_PROGRESS ? ncclSuccess : result_of(state);
  });
}
TRELLIS_NCCL_TWIN(ncclCommGetAsyncError);

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  return guarded([&] {
    require(count, "count");
    return trellis_comm_ranks(nccl_comms().use(comm)->comm(), count);
  });
}
TRELLIS_NCCL_TWIN(ncclCommCount);

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return guarded([&] {
    require(device, "device");
    *device = nccl_comms().use(comm)->device();
  });
}
TRELLIS_NCCL_TWIN(ncclCommCuDevice);

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  return guarded([&] {
    require(rank, "rank");
    return trellis_comm_rank(nccl_comms().use(comm)->comm(), rank);
  });
}
TRELLIS_NCCL_TWIN(ncclCommUserRank);
