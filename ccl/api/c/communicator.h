// Communicators: a group of ranks, each a process or a thread, and what they may do together (operations.h).
//
// Every rank of a communicator makes the same calls in the same order. After TRELLIS_PEER_LOST, TRELLIS_MISMATCH,
// TRELLIS_ABORTED or TRELLIS_TIMED_OUT it is of no use but for trellis_comm_shrink, _abort, _async_error and _destroy.
// A communicator in the background's hands (`nonblocking`) takes no call but _async_error, _abort and _destroy;
// everything else returns TRELLIS_INVALID_USAGE.
#pragma once

#include "ccl/api/c/config.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trellis_comm_opaque* trellis_comm;

// By which ranks that don't know each other meet. One rank makes it, the program takes it to the others as bytes.
typedef struct trellis_unique_id {
  unsigned char bytes[128];
} trellis_unique_id;

// Makes an id, good for one communicator. Whoever has it can join, so treat it as a secret. This process serves the
// others until they have met; it must live that long.
TRELLIS_API trellis_result trellis_unique_id_create(trellis_unique_id* id);

// Makes rank `rank` of `ranks`; returns when all of them have called it with the same id. `config` may be NULL. When it
// fails, *comm is NULL, but for a nonblocking one, whose failure trellis_comm_async_error tells.
TRELLIS_API trellis_result trellis_comm_create(trellis_comm* comm, int ranks, const trellis_unique_id* id, int rank,
                                               const trellis_config* config);

// The same for a process that trellis launch, torchrun, mpirun or srun started: they told it its rank and where to
// meet. A process that nobody told anything is one rank alone.
TRELLIS_API trellis_result trellis_comm_create_from_environment(trellis_comm* comm, const trellis_config* config);

// What such a process was told: its number and how many there are, in the job and on this host. Any may be NULL.
TRELLIS_API trellis_result trellis_launched(int* rank, int* ranks, int* local_rank, int* local_ranks);

// All ranks of a communicator within this process: comms[0] to comms[ranks - 1]. Use them from a thread each, or all of
// them from one thread within groups. All are made, or none.
TRELLIS_API trellis_result trellis_comm_create_all(trellis_comm* comms, int ranks, const trellis_config* config);

#define TRELLIS_NO_COLOR (-1)

// Ranks that give the same color (0 or more) become a communicator, in the order of key and then of rank; every rank of
// `comm` calls it. With TRELLIS_NO_COLOR one takes part in none, and *child is NULL. The child is configured like its
// parent, but for `nonblocking`, when `config` is not NULL; other fields of it must be as TRELLIS_CONFIG_INIT makes
// them. It can also be called when every rank has aborted `comm`.
TRELLIS_API trellis_result trellis_comm_split(trellis_comm comm, int color, int key, const trellis_config* config,
                                              trellis_comm* child);

// A communicator of those that are left, without the `excluded`, in the order of their ranks; each of them calls it
// with the same list. The way on after a failure: what `comm` still had under way must have ended, if need be by
// trellis_comm_abort. `config` as for split.
TRELLIS_API trellis_result trellis_comm_shrink(trellis_comm comm, const int* excluded, int excluded_count,
                                               const trellis_config* config, trellis_comm* child);

// A communicator of `ranks` ranks: those of `comm`, which keep their numbers, and new ones. Every rank of `comm` calls
// it with rank -1; one of them, which made the id and took it to the new ones, with that id, the others with NULL. The
// new ones call it with `comm` NULL, the id, and the rank that each is to have.
TRELLIS_API trellis_result trellis_comm_grow(trellis_comm comm, int ranks, const trellis_unique_id* id, int rank,
                                             const trellis_config* config, trellis_comm* child);

// Waits for what was begun, and fails when ranks have been in different calls that none of them could tell apart
// before: a send without a receive, two roots of a broadcast. trellis_comm_destroy does the same. Afterwards the
// communicator takes no more operations.
TRELLIS_API trellis_result trellis_comm_finalize(trellis_comm comm);

// Ends what runs on it, here and on the other ranks, with TRELLIS_ABORTED. From any thread. The handle stays.
TRELLIS_API trellis_result trellis_comm_abort(trellis_comm comm);

// Finalizes it where nothing went wrong, and frees the handle, whatever it returns. What is in the making is given up.
// NULL is let be.
TRELLIS_API trellis_result trellis_comm_destroy(trellis_comm comm);

// How it stands with the communicator: *state is TRELLIS_OK, TRELLIS_IN_PROGRESS, or the failure that ended it, whose
// message trellis_last_error then has. A failure of an operation on a stream ends it, whatever it was. From any thread.
// The function itself fails for a bad handle only.
TRELLIS_API trellis_result trellis_comm_async_error(trellis_comm comm, trellis_result* state);

TRELLIS_API trellis_result trellis_comm_rank(trellis_comm comm, int* rank);
TRELLIS_API trellis_result trellis_comm_ranks(trellis_comm comm, int* ranks);

// "loopback", "shared_memory", ... The text is valid as long as the communicator.
TRELLIS_API trellis_result trellis_comm_transport(trellis_comm comm, const char** name);

// Bytes that this rank's share of it uses, with as much scratch as it has borrowed at most.
TRELLIS_API trellis_result trellis_comm_memory_bytes(trellis_comm comm, size_t* bytes);

// Collectives begun so far.
TRELLIS_API trellis_result trellis_comm_operations(trellis_comm comm, uint64_t* operations);

#ifdef __cplusplus
}
#endif
