// Communicators: groups of ranks, each a process or a thread. Here they are created, split, shrunk, grown and
// destroyed; operations.h has their operations.
//
// Every rank of a communicator makes the same calls in the same order. After TRELLIS_PEER_LOST, TRELLIS_MISMATCH,
// TRELLIS_ABORTED or TRELLIS_TIMED_OUT, only trellis_comm_shrink, _abort, _async_error and _destroy are useful. While a
// `nonblocking` communicator works in the background, it accepts only _async_error, _abort and _destroy; every other
// call returns TRELLIS_INVALID_USAGE.
#pragma once

#include "ccl/api/c/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trellis_comm_opaque* trellis_comm;

// Lets ranks that do not know each other meet. One rank creates it; the program passes its bytes to the others.
typedef struct trellis_unique_id {
  unsigned char bytes[128];
} trellis_unique_id;

// Creates an id for one communicator. Anyone who has it can join, so treat it as a secret. This process serves the
// others until they have met, so it must live that long.
TRELLIS_API trellis_result trellis_unique_id_create(trellis_unique_id* id);

// Creates rank `rank` of `ranks`; returns when all of them have called it with the same id. `config` may be NULL. On
// failure *comm is NULL, except for a nonblocking communicator, whose failure trellis_comm_async_error reports.
TRELLIS_API trellis_result trellis_comm_create(trellis_comm* comm, int ranks, const trellis_unique_id* id, int rank,
                                               const trellis_config* config);

// The same for a process that trellis launch, torchrun, mpirun or srun started. The launcher told it its rank and where
// to meet. A process without a launcher is one rank alone.
TRELLIS_API trellis_result trellis_comm_create_from_environment(trellis_comm* comm, const trellis_config* config);

// What the launcher told this process: its rank and the number of ranks, in the job and on this host. Any may be NULL.
TRELLIS_API trellis_result trellis_launched(int* rank, int* ranks, int* local_rank, int* local_ranks);

// How many devices CUDA's functions report: TRELLIS_DEVICES, or, when it is not set, the number of CPUs that this
// process may keep busy, or of ranks on this host if that is more; at least 2.
TRELLIS_API trellis_result trellis_devices(int* devices);

// Creates all ranks of a communicator within this process: comms[0] to comms[ranks - 1]. Use each from a thread of its
// own, or all of them from one thread within groups. Either all are created or none.
TRELLIS_API trellis_result trellis_comm_create_all(trellis_comm* comms, int ranks, const trellis_config* config);

#define TRELLIS_NO_COLOR (-1)

// Every rank of `comm` calls it. Ranks with the same color (0 or more) form a new communicator, ordered by key and then
// by rank. With TRELLIS_NO_COLOR a rank joins none, and *child is NULL. The child has its parent's configuration; if
// `config` is not NULL, its `nonblocking` is used, and its other fields must be as TRELLIS_CONFIG_INIT sets them. The
// call also works when every rank has aborted `comm`.
//
// The call returns within the timeout. If it succeeds, all members of the child made this call and agreed on their
// colors and keys, and it succeeds on all of them unless they die. If it fails, `comm` has failed too, and only
// trellis_comm_shrink can continue.
TRELLIS_API trellis_result trellis_comm_split(trellis_comm comm, int color, int key, const trellis_config* config,
                                              trellis_comm* child);

// Every rank that is not in `excluded` calls it with the same list; they form a new communicator, ordered by their
// ranks. This is how to continue after a failure. Operations still running on `comm` must have ended, if need be
// through trellis_comm_abort. `config` is as for trellis_comm_split.
//
// The call returns within the timeout. If it succeeds, it succeeds on all members of the child, unless they die. A
// failed shrink can be retried: calls with the same list succeed when all ranks outside the list are in such a call at
// the same time, however often each of them has tried before. A rank that others gave up waiting for, or went on
// without, gets TRELLIS_PEER_LOST with its own rank; members with different lists get TRELLIS_MISMATCH.
TRELLIS_API trellis_result trellis_comm_shrink(trellis_comm comm, const int* excluded, int excluded_count,
                                               const trellis_config* config, trellis_comm* child);

// Creates a communicator of `ranks` ranks: those of `comm`, which keep their numbers, and new ones. Every rank of
// `comm` calls it with rank -1. One of them creates the id, passes it to the new ranks, and calls with it; the others
// pass NULL. New ranks pass NULL as `comm`, the id, and the rank that each is to have.
TRELLIS_API trellis_result trellis_comm_grow(trellis_comm comm, int ranks, const trellis_unique_id* id, int rank,
                                             const trellis_config* config, trellis_comm* child);

// Waits for all operations. Fails when ranks made different calls that none of them could detect before: a send without
// a receive, two roots of a broadcast. trellis_comm_destroy does the same. Afterwards the communicator accepts no
// operations; operations of other ranks that need this rank fail with TRELLIS_PEER_LOST.
TRELLIS_API trellis_result trellis_comm_finalize(trellis_comm comm);

// Ends running operations with TRELLIS_ABORTED, here and on the other ranks, and cancels calls on the communicator that
// a group has recorded or that run in the background. Waits for none of them. Any thread may call it. The handle stays
// valid.
TRELLIS_API trellis_result trellis_comm_abort(trellis_comm comm);

// Finalizes the communicator if it has not failed, and frees the handle, whatever it returns. Cancels a creation in
// progress. After an abort it waits for nobody. If this thread's open group has recorded calls of the communicator, the
// handle is freed at once, and the group's end finalizes the communicator after those calls. NULL is ignored.
TRELLIS_API trellis_result trellis_comm_destroy(trellis_comm comm);

// Reports the communicator's state: *state is TRELLIS_OK, TRELLIS_IN_PROGRESS, or the failure that ended it, whose
// message trellis_last_error then returns. After trellis_comm_abort it is TRELLIS_IN_PROGRESS until no operation of
// this rank uses its buffers any more. Any failure of an operation on a stream ends the communicator. Any thread may
// call this function. It fails only for a bad handle.
TRELLIS_API trellis_result trellis_comm_async_error(trellis_comm comm, trellis_result* state);

TRELLIS_API trellis_result trellis_comm_rank(trellis_comm comm, int* rank);
TRELLIS_API trellis_result trellis_comm_ranks(trellis_comm comm, int* ranks);

// "loopback", "shared_memory", ... The text is valid as long as the communicator.
TRELLIS_API trellis_result trellis_comm_transport(trellis_comm comm, const char** name);

// Bytes that this rank uses for the communicator, including the most scratch that it has borrowed at one time.
TRELLIS_API trellis_result trellis_comm_memory_bytes(trellis_comm comm, size_t* bytes);

// Number of collectives started so far.
TRELLIS_API trellis_result trellis_comm_operations(trellis_comm comm, uint64_t* operations);

#ifdef __cplusplus
}
#endif
