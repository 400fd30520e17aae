#include "ccl/api/nccl/device/calls.h"

#include <algorithm>
#include <cstring>

#include "ccl/api/nccl/nccl_comm.h"
#include "ccl/api/nccl/nccl_error.h"

using namespace trellis::nccl;

namespace {

[[noreturn]] void refuse_device(const char* function) {
  refuse_usage(
      "{}: there is no device API here, as there are no kernels; ncclCommQueryProperties tells so "
      "by deviceApiSupport",
      function);
}

ncclResult_t refused(const char* function) {
  return guarded([&] { refuse_device(function); });
}

// The empty team if the communicator is invalid.
template <class Make>
ncclTeam_t team_of(ncclComm_t comm, Make&& make) {
  ncclTeam_t team = {};
  guarded([&] { team = make(nccl_comms().use(comm)->place()); });
  return team;
}

ncclTeam_t alone(ncclComm_t comm) {
  return team_of(comm, [](RankAndSize) { return ncclTeam_t{1, 0, 1}; });
}

}  // namespace

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t* props) {
  return guarded([&] {
    require(props, "props");
    if (props->magic != NCCL_API_MAGIC)
      refuse_argument("props.magic is {:#x}: expected {:#x}, as NCCL_COMM_PROPERTIES_INITIALIZER has it", props->magic,
                      NCCL_API_MAGIC);
    constexpr std::size_t head = offsetof(ncclCommProperties_t, rank);
    if (props->size < head || props->size > 4096)
      refuse_argument("props.size is {}: expected {}, as NCCL_COMM_PROPERTIES_INITIALIZER has it", props->size,
                      sizeof *props);
    const auto nccl_comm = nccl_comms().use(comm);
    const RankAndSize place = nccl_comm->place();
    ncclCommProperties_t told;
    std::memset(&told, 0, sizeof told);
    told.rank = place.rank;
    told.nRanks = told.nLsaTeams = place.ranks;
    told.cudaDev = told.nvmlDev = nccl_comm->device();
    told.devCommRuntimeVersionSize = sizeof(ncclDevComm_t);
    auto* const out = reinterpret_cast<std::byte*>(props);
    std::memcpy(out + head, reinterpret_cast<const std::byte*>(&told) + head,
                std::min(props->size, sizeof told) - head);
  });
}
TRELLIS_NCCL_TWIN(ncclCommQueryProperties);

ncclTeam_t ncclTeamWorld(ncclComm_t comm) {
  return team_of(comm, [](RankAndSize p) { return ncclTeam_t{p.ranks, p.rank, 1}; });
}
TRELLIS_NCCL_TWIN(ncclTeamWorld);

ncclTeam_t ncclTeamLsa(ncclComm_t comm) { return alone(comm); }
TRELLIS_NCCL_TWIN(ncclTeamLsa);

ncclTeam_t ncclTeamRail(ncclComm_t comm) { return ncclTeamWorld(comm); }
TRELLIS_NCCL_TWIN(ncclTeamRail);

ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t) { return alone(comm); }
extern "C" __attribute__((alias("ncclTeamCft"))) ncclTeam_t pncclTeamCft(ncclComm_t, ncclCftTeamMode_t);  // overloaded

ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm) { return alone(comm); }
TRELLIS_NCCL_TWIN(ncclTeamCftMultimem);

int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank) {
  return ncclTeamWorld(comm).rank + (rank - team.rank) * team.stride;
}
TRELLIS_NCCL_TWIN(ncclTeamRankToWorld);

int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank) {
  return ncclTeamLsa(comm).rank + (rank - team.rank) * team.stride;
}
TRELLIS_NCCL_TWIN(ncclTeamRankToLsa);

int ncclLLA2ACalcSlots(int maxElts, int maxEltSize) { return maxElts * ((maxEltSize + 7) / 8); }
TRELLIS_NCCL_TWIN(ncclLLA2ACalcSlots);

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t* reqs, ncclDevComm_t* outDevComm) {
  return guarded([&] {
    nccl_comms().use(comm);
    require(reqs, "reqs");
    require(outDevComm, "outDevComm");
    refuse_device("ncclDevCommCreate");
  });
}
TRELLIS_NCCL_TWIN(ncclDevCommCreate);

ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t* devComm) {
  return guarded([&] {
    nccl_comms().use(comm);
    require(devComm, "devComm");
    refuse_device("ncclDevCommDestroy");
  });
}
TRELLIS_NCCL_TWIN(ncclDevCommDestroy);

ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t, size_t, void**) {
  return refused("ncclGetLsaMultimemDevicePointer");
}
TRELLIS_NCCL_TWIN(ncclGetLsaMultimemDevicePointer);

ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t, size_t, ncclMultimemHandle_t, void**) {
  return refused("ncclGetMultimemDevicePointer");
}
TRELLIS_NCCL_TWIN(ncclGetMultimemDevicePointer);

ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t, size_t, int, void**) { return refused("ncclGetLsaDevicePointer"); }
TRELLIS_NCCL_TWIN(ncclGetLsaDevicePointer);

ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t, size_t, int, void**) { return refused("ncclGetPeerDevicePointer"); }
TRELLIS_NCCL_TWIN(ncclGetPeerDevicePointer);

ncclResult_t ncclGetMultimemDeviceLeInfo(ncclWindow_t, size_t, ncclCftLeId*, size_t*) {
  return refused("ncclGetMultimemDeviceLeInfo");
}
TRELLIS_NCCL_TWIN(ncclGetMultimemDeviceLeInfo);

ncclResult_t ncclGetCftDeviceLeInfo(ncclWindow_t, size_t, int, ncclTeam_t, ncclCftLeId*, size_t*) {
  return refused("ncclGetCftDeviceLeInfo");
}
TRELLIS_NCCL_TWIN(ncclGetCftDeviceLeInfo);

ncclResult_t ncclGetPeerDeviceLeInfo(ncclWindow_t, size_t, int, ncclCftLeId*, size_t*) {
  return refused("ncclGetPeerDeviceLeInfo");
}
TRELLIS_NCCL_TWIN(ncclGetPeerDeviceLeInfo);

ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t, int, ncclLsaBarrierHandle_t*, ncclDevResourceRequirements_t*) {
  return refused("ncclLsaBarrierCreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclLsaBarrierCreateRequirement);

ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t, ncclTeam_t, int, ncclGinBarrierHandle_t*,
                                             ncclDevResourceRequirements_t*) {
  return refused("ncclGinBarrierCreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclGinBarrierCreateRequirement);

ncclResult_t ncclGinOutboxCreateRequirement(int, int, ncclGinOutboxHandle*, ncclDevResourceRequirements_t*) {
  return refused("ncclGinOutboxCreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclGinOutboxCreateRequirement);

ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t, int, int, ncclGinInboxA2AHandle*,
                                              ncclDevResourceRequirements_t*) {
  return refused("ncclGinInboxA2ACreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclGinInboxA2ACreateRequirement);

ncclResult_t ncclCftBarrierCreateRequirement(ncclTeam_t, int, ncclCftBarrierHandle_t*, ncclDevResourceRequirements_t*) {
  return refused("ncclCftBarrierCreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclCftBarrierCreateRequirement);

ncclResult_t ncclLLA2ACreateRequirement(int, int, ncclLLA2AHandle_t*, ncclDevResourceRequirements_t*) {
  return refused("ncclLLA2ACreateRequirement");
}
TRELLIS_NCCL_TWIN(ncclLLA2ACreateRequirement);
