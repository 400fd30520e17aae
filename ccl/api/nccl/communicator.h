// Communicators of NCCL's host API: made, divided, ended, asked; and the memory that goes with them.
#pragma once

#include "ccl/api/nccl/config.h"

// Declares a function and its twin.
#define TRELLIS_NCCL(result, name, ...)                            \
  __attribute__((visibility("default"))) result name(__VA_ARGS__); \
  __attribute__((visibility("default"))) result p##name(__VA_ARGS__)

#ifdef __cplusplus
extern "C" {
#endif

// NCCL_VERSION_CODE of the interface that the library has.
TRELLIS_NCCL(ncclResult_t, ncclGetVersion, int* version);

// What a result means in general; and what went wrong last in this thread, whatever the communicator, with the value at
// fault in it ("" when nothing has). As in NCCL that text has one place in each thread, which stays until the thread
// ends and which the next failure is written over.
TRELLIS_NCCL(const char*, ncclGetErrorString, ncclResult_t result);
TRELLIS_NCCL(const char*, ncclGetLastError, ncclComm_t comm);

// An id by which the ranks of one communicator meet. One rank makes it and takes it to the others; its process must
// live until they have met. Whoever has it can join.
TRELLIS_NCCL(ncclResult_t, ncclGetUniqueId, ncclUniqueId* uniqueId);

// Rank `rank` of `nranks`: returns when all have called it. In a group, at the group's end; so one thread can make
// several. `config` may be NULL. Scalable takes nId ids, the same list on every rank, of which one is enough here.
TRELLIS_NCCL(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
TRELLIS_NCCL(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
             ncclConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* newcomm, int nranks, int myrank, int nId,
             ncclUniqueId* commIds, ncclConfig_t* config);

// All `ndev` ranks of a communicator in this process. The numbers in devlist, or 0 to ndev - 1, are told by
// ncclCommCuDevice and have no other effect.
TRELLIS_NCCL(ncclResult_t, ncclCommInitAll, ncclComm_t* comm, int ndev, const int* devlist);

// Waits for what was begun, after which the communicator takes no more. Destroy does that too, and frees the handle.
// Abort ends what runs, on every rank, and frees the handle. Revoke ends what runs and keeps it: then it can be split,
// shrunk and destroyed. NULL is let be.
TRELLIS_NCCL(ncclResult_t, ncclCommFinalize, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommDestroy, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommAbort, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags);

// Ranks that give the same color become a communicator, ordered by key and then by rank. NCCL_SPLIT_NOCOLOR: in none,
// *newcomm is NULL.
TRELLIS_NCCL(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
             ncclConfig_t* config);

// A communicator without the ranks of the list, called by all others. With NCCL_SHRINK_ABORT what runs on `comm` is
// ended first, which is the way on after a failure.
TRELLIS_NCCL(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

// A communicator with new ranks added. The old ones give rank -1, one of them the id (of ncclCommGetUniqueId) and the
// others NULL; the new ones give `comm` NULL, the id, and their rank.
TRELLIS_NCCL(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId* uniqueId);
TRELLIS_NCCL(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
             ncclComm_t* newcomm, ncclConfig_t* config);

// How it stands with the communicator: ncclSuccess, ncclInProgress, or what ended it.
TRELLIS_NCCL(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* asyncError);

TRELLIS_NCCL(ncclResult_t, ncclCommCount, const ncclComm_t comm, int* count);
TRELLIS_NCCL(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int* device);
TRELLIS_NCCL(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int* rank);

// Memory that peers can read where it is, so that large operations on it move fewer bytes.
TRELLIS_NCCL(ncclResult_t, ncclMemAlloc, void** ptr, size_t size);
TRELLIS_NCCL(ncclResult_t, ncclMemFree, void* ptr);

// Until it is deregistered, peers read a registered buffer where it is, as they do what ncclMemAlloc gave, registered
// or not: what trellis_comm_register says of it holds. A window, which begins at a multiple of
// NCCL_WIN_REQUIRED_ALIGNMENT, is a buffer like others; its ranks need not agree. NULL is
// let be where something is deregistered.
TRELLIS_NCCL(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void* buff, size_t size, void** handle);
TRELLIS_NCCL(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void* handle);
TRELLIS_NCCL(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
             int winFlags);
TRELLIS_NCCL(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win);
TRELLIS_NCCL(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void** outUserPtr);

// Between suspend and resume the communicator takes no operations. It holds no memory that it could give back.
TRELLIS_NCCL(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags);
TRELLIS_NCCL(ncclResult_t, ncclCommResume, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);

#ifdef __cplusplus
}
#endif
