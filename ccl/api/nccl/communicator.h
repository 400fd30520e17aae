// Communicators of NCCL's host API: create, split, shrink, grow, destroy and query; memory allocation and registration.
#pragma once

#include "ccl/api/nccl/collective_config.h"

// Declares a function and its profiling twin pNAME.
#define TRELLIS_NCCL(result, name, ...)                            \
  __attribute__((visibility("default"))) result name(__VA_ARGS__); \
  __attribute__((visibility("default"))) result p##name(__VA_ARGS__)

#ifdef __cplusplus
extern "C" {
#endif

// NCCL_VERSION_CODE of the library's interface.
TRELLIS_NCCL(ncclResult_t, ncclGetVersion, int* version);

// The general meaning of a result; and the message of this thread's last failure, for any communicator, with the value
// at fault ("" if there is none). As in NCCL, the message has one buffer per thread, which lives until the thread ends
// and is overwritten by the next failure.
TRELLIS_NCCL(const char*, ncclGetErrorString, ncclResult_t result);
TRELLIS_NCCL(const char*, ncclGetLastError, ncclComm_t comm);

// Deprecated by NCCL. Does nothing: there is no log whose variables could be read again.
TRELLIS_NCCL(void, ncclResetDebugInit, void);

// Ranks of one host have no socket between them to encrypt, so only NCCL_ENCRYPTION_MODE_NONE is accepted.
TRELLIS_NCCL(ncclResult_t, ncclSetEncryption, const ncclEncryptionConfig_t* config);

// Creates an id by which the ranks of one communicator meet. One rank creates it and passes it to the others. Its
// process must live until they have met. Anyone who has the id can join.
TRELLIS_NCCL(ncclResult_t, ncclGetUniqueId, ncclUniqueId* uniqueId);

// Creates rank `rank` of `nranks`; returns when all have called it. In a group it returns at once, and the group's end
// waits, so one thread can create several ranks. `config` may be NULL. Scalable takes nId ids, the same list on every
// rank; one would be enough here.
TRELLIS_NCCL(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank);
TRELLIS_NCCL(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
             ncclConfig_t* config);
TRELLIS_NCCL(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* newcomm, int nranks, int myrank, int nId,
             ncclUniqueId* commIds, ncclConfig_t* config);

// Creates all `ndev` ranks of a communicator in this process. ncclCommCuDevice reports the numbers in devlist, or 0 to
// ndev - 1. If the program uses a CUDA runtime, they must be numbers of its devices; devlist may name one twice.
TRELLIS_NCCL(ncclResult_t, ncclCommInitAll, ncclComm_t* comm, int ndev, const int* devlist);

// Finalize waits for all operations; the communicator then accepts no more, and operations of other ranks that need
// this rank fail with ncclRemoteError. Destroy does the same and frees the handle.
// Abort ends running operations on every rank and frees the handle; streams with such operations report an error. It
// never waits, not even for a group that holds calls: ccl/api/nccl/README.md says what each function does there.
// Revoke, allowed once, ends running operations but keeps the handle: the async error is then ncclSuccess, and the
// communicator can be split, shrunk and destroyed. NULL is ignored.
TRELLIS_NCCL(ncclResult_t, ncclCommFinalize, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommDestroy, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommAbort, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags);

// Ranks with the same color form a communicator, ordered by key and then by rank. With NCCL_SPLIT_NOCOLOR *newcomm is
// NULL.
TRELLIS_NCCL(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* newcomm,
             ncclConfig_t* config);

// All ranks outside the list call it and form a communicator. NCCL_SHRINK_ABORT first ends running operations on
// `comm`: this is how to continue after a failure. A failed shrink can be retried.
TRELLIS_NCCL(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
             ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags);

// Creates a communicator with additional ranks. Old ranks pass rank -1; one of them passes the id (from
// ncclCommGetUniqueId) and the others NULL. New ranks pass NULL as `comm`, the id, and their rank.
TRELLIS_NCCL(ncclResult_t, ncclCommGetUniqueId, ncclComm_t comm, ncclUniqueId* uniqueId);
TRELLIS_NCCL(ncclResult_t, ncclCommGrow, ncclComm_t comm, int nRanks, const ncclUniqueId* uniqueId, int rank,
             ncclComm_t* newcomm, ncclConfig_t* config);

// Reports ncclSuccess, ncclInProgress, or the error that ended the communicator; ncclCommRevoke is not an error.
TRELLIS_NCCL(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* asyncError);

TRELLIS_NCCL(ncclResult_t, ncclCommCount, const ncclComm_t comm, int* count);
TRELLIS_NCCL(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int* device);
TRELLIS_NCCL(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int* rank);

// Memory that peers can read directly, so large operations on it move fewer bytes. Free takes only what Alloc gave.
TRELLIS_NCCL(ncclResult_t, ncclMemAlloc, void** ptr, size_t size);
TRELLIS_NCCL(ncclResult_t, ncclMemFree, void* ptr);

// Until it is deregistered, peers read a registered buffer directly; see trellis_comm_register. Memory from
// ncclMemAlloc needs no registration. A window, which must begin at a multiple of NCCL_WIN_REQUIRED_ALIGNMENT, is a
// buffer like others; its ranks need not agree. Deregistering NULL is ignored.
TRELLIS_NCCL(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void* buff, size_t size, void** handle);
TRELLIS_NCCL(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void* handle);
TRELLIS_NCCL(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win,
             int winFlags);
TRELLIS_NCCL(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win);
TRELLIS_NCCL(ncclResult_t, ncclWinGetUserPtr, ncclComm_t comm, ncclWindow_t win, void** outUserPtr);

// Between suspend and resume the communicator accepts no operations. It has no memory that it could release.
TRELLIS_NCCL(ncclResult_t, ncclCommSuspend, ncclComm_t comm, int flags);
TRELLIS_NCCL(ncclResult_t, ncclCommResume, ncclComm_t comm);
TRELLIS_NCCL(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, uint64_t* value);

#ifdef __cplusplus
}
#endif
