// The functions of NCCL's device API for host code.
#pragma once

#include "ccl/api/nccl/device/requirements.h"

#ifdef __cplusplus
extern "C" {
#endif

TRELLIS_NCCL(ncclResult_t, ncclCommQueryProperties, ncclComm_t comm, ncclCommProperties_t* props);

// For an invalid communicator, functions that return a team return one without ranks; ncclGetLastError gives the
// reason.
TRELLIS_NCCL(ncclTeam_t, ncclTeamWorld, ncclComm_t comm);
TRELLIS_NCCL(ncclTeam_t, ncclTeamLsa, ncclComm_t comm);   // only this rank
TRELLIS_NCCL(ncclTeam_t, ncclTeamRail, ncclComm_t comm);  // so this has all ranks
TRELLIS_NCCL(ncclTeam_t, ncclTeamCft, ncclComm_t comm, ncclCftTeamMode_t mode);
TRELLIS_NCCL(ncclTeam_t, ncclTeamCftMultimem, ncclComm_t comm);
TRELLIS_NCCL(int, ncclTeamRankToWorld, ncclComm_t comm, ncclTeam_t team, int rank);
TRELLIS_NCCL(int, ncclTeamRankToLsa, ncclComm_t comm, ncclTeam_t team, int rank);

// The number of slots that elements of these sizes take.
TRELLIS_NCCL(int, ncclLLA2ACalcSlots, int maxElts, int maxEltSize);

// From here on all return ncclInvalidUsage; ncclGetLastError names the missing feature.
TRELLIS_NCCL(ncclResult_t, ncclDevCommCreate, ncclComm_t comm, const ncclDevCommRequirements_t* reqs,
             ncclDevComm_t* outDevComm);
TRELLIS_NCCL(ncclResult_t, ncclDevCommDestroy, ncclComm_t comm, const ncclDevComm_t* devComm);

TRELLIS_NCCL(ncclResult_t, ncclGetLsaMultimemDevicePointer, ncclWindow_t window, size_t offset, void** outPtr);
TRELLIS_NCCL(ncclResult_t, ncclGetMultimemDevicePointer, ncclWindow_t window, size_t offset,
             ncclMultimemHandle_t multimem, void** outPtr);
TRELLIS_NCCL(ncclResult_t, ncclGetLsaDevicePointer, ncclWindow_t window, size_t offset, int lsaRank, void** outPtr);
TRELLIS_NCCL(ncclResult_t, ncclGetPeerDevicePointer, ncclWindow_t window, size_t offset, int peer, void** outPtr);
TRELLIS_NCCL(ncclResult_t, ncclGetMultimemDeviceLeInfo, ncclWindow_t window, size_t offset, ncclCftLeId* leId,
             size_t* leOffset);
TRELLIS_NCCL(ncclResult_t, ncclGetCftDeviceLeInfo, ncclWindow_t window, size_t offset, int peerCft, ncclTeam_t cftTeam,
             ncclCftLeId* leId, size_t* leOffset);
TRELLIS_NCCL(ncclResult_t, ncclGetPeerDeviceLeInfo, ncclWindow_t window, size_t offset, int peerWorld,
             ncclCftLeId* leId, size_t* leOffset);

TRELLIS_NCCL(ncclResult_t, ncclLsaBarrierCreateRequirement, ncclTeam_t team, int nBarriers,
             ncclLsaBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);
TRELLIS_NCCL(ncclResult_t, ncclGinBarrierCreateRequirement, ncclComm_t comm, ncclTeam_t team, int nBarriers,
             ncclGinBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);
TRELLIS_NCCL(ncclResult_t, ncclGinOutboxCreateRequirement, int nBlocks, int size_log2, ncclGinOutboxHandle* outHandle,
             ncclDevResourceRequirements_t* outReq);
TRELLIS_NCCL(ncclResult_t, ncclGinInboxA2ACreateRequirement, ncclTeam_t peers, int nBlocks, int size_log2,
             ncclGinInboxA2AHandle* outHandle, ncclDevResourceRequirements_t* outReq);
TRELLIS_NCCL(ncclResult_t, ncclCftBarrierCreateRequirement, ncclTeam_t team, int nBarriers,
             ncclCftBarrierHandle_t* outHandle, ncclDevResourceRequirements_t* outReq);
TRELLIS_NCCL(ncclResult_t, ncclLLA2ACreateRequirement, int nBlocks, int nSlots, ncclLLA2AHandle_t* outHandle,
             ncclDevResourceRequirements_t* outReq);

#ifdef __cplusplus
}

inline ncclTeam_t ncclTeamCft(ncclComm_t comm) { return ncclTeamCft(comm, NCCL_CFT_TEAM_FLAT); }
#endif
