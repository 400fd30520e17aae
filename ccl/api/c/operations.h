// Collectives, send and receive: the operations of a communicator.
//
// Every rank calls the function with the same count, type, reduction and root; trellis_send and trellis_recv are called
// by two ranks. A call that does not match the others ends in TRELLIS_MISMATCH. With a stream, a call returns at once,
// and trellis_stream_synchronize returns its error. Buffers may be used in place where it is stated; otherwise they
// must not overlap. A buffer that is not used, on this rank or because count is 0, may be NULL.
#pragma once

#include "ccl/api/c/communicator.h"
#include "ccl/api/c/device.h"
#include "ccl/api/c/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// out[i] is the reduction of every rank's in[i]. `count` elements; in place: out == in. Reductions: SUM to AVG.
TRELLIS_API trellis_result trellis_all_reduce(trellis_comm comm, const void* in, void* out, size_t count,
                                              trellis_type type, trellis_reduction reduction, trellis_stream stream);

// Reduces `ranks` blocks of `count` elements; rank r gets block r of the result. In place: out == in + rank * count.
TRELLIS_API trellis_result trellis_reduce_scatter(trellis_comm comm, const void* in, void* out, size_t count,
                                                  trellis_type type, trellis_reduction reduction,
                                                  trellis_stream stream);

// Block r of out is rank r's in. Blocks of `count` elements; in place: in == out + rank * count.
TRELLIS_API trellis_result trellis_all_gather(trellis_comm comm, const void* in, void* out, size_t count,
                                              trellis_type type, trellis_stream stream);

// Every rank's out gets the root's in. `in` is used on the root only; in place: out == in.
TRELLIS_API trellis_result trellis_broadcast(trellis_comm comm, const void* in, void* out, size_t count,
                                             trellis_type type, int root, trellis_stream stream);

// As all_reduce, but only the root's out gets the result. In place: out == in.
TRELLIS_API trellis_result trellis_reduce(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                          trellis_reduction reduction, int root, trellis_stream stream);

// Block r of the root's out is rank r's in. Blocks of `count` elements; in place on the root: in == out + root * count.
TRELLIS_API trellis_result trellis_gather(trellis_comm comm, const void* in, void* out, size_t count, trellis_type type,
                                          int root, trellis_stream stream);

// Rank r's out is block r of the root's in. In place on the root: out == in + root * count.
TRELLIS_API trellis_result trellis_scatter(trellis_comm comm, const void* in, void* out, size_t count,
                                           trellis_type type, int root, trellis_stream stream);

// Block r of out is block `rank` (this rank's) of rank r's in. Blocks of `count` elements; in place: out == in.
TRELLIS_API trellis_result trellis_all_to_all(trellis_comm comm, const void* in, void* out, size_t count,
                                              trellis_type type, trellis_stream stream);

// The same with blocks of different sizes, one after the other without gaps. The arrays have an entry for each rank.
// all_gather_v, reduce_scatter_v: counts[r] is the size of rank r's block, the same on all ranks. all_to_all_v:
// counts[r] is what this rank sends to rank r, arriving_counts[r] what it receives from it.
TRELLIS_API trellis_result trellis_all_gather_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                                trellis_type type, trellis_stream stream);
TRELLIS_API trellis_result trellis_reduce_scatter_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                                    trellis_type type, trellis_reduction reduction,
                                                    trellis_stream stream);
TRELLIS_API trellis_result trellis_all_to_all_v(trellis_comm comm, const void* in, void* out, const size_t* counts,
                                                const size_t* arriving_counts, trellis_type type,
                                                trellis_stream stream);

// No rank returns before every rank has called it.
TRELLIS_API trellis_result trellis_barrier(trellis_comm comm, trellis_stream stream);

// A send matches the receive with the same count and type on the other side, in order; anything else is a mismatch.
// Sends and receives that must progress at the same time belong in a group.
TRELLIS_API trellis_result trellis_send(trellis_comm comm, const void* in, size_t count, trellis_type type, int to,
                                        trellis_stream stream);
TRELLIS_API trellis_result trellis_recv(trellis_comm comm, void* out, size_t count, trellis_type type, int from,
                                        trellis_stream stream);

typedef struct trellis_pair {
  int source, target;
} trellis_pair;

// One operation, in a general form that covers all the functions above and the collectives without a function. Leave
// fields that the collective does not use as TRELLIS_CALL_INIT sets them. The struct may grow, as trellis_config may.
typedef struct trellis_call {
  size_t size;
  trellis_collective collective;
  trellis_type type;
  const void* in;
  void* out;
  size_t count;
  trellis_reduction reduction;
  int root;                   // send_recv: the sender
  double factor;              // for TRELLIS_SCALED_SUM
  int peer;                   // send_recv: the receiver
  int pair_count;             // permute
  const trellis_pair* pairs;  // permute: the source's `in` becomes the target's `out`; no rank twice a source or target
  const size_t* counts;
  const size_t* arriving_counts;
} trellis_call;

#define TRELLIS_CALL_INIT \
  { sizeof(trellis_call), 0, TRELLIS_F32, NULL, NULL, 0, 0, 0, 1, 0, 0, NULL, NULL, NULL }

TRELLIS_API trellis_result trellis_run(trellis_comm comm, const trellis_call* call, trellis_stream stream);

// The same with the caller's own schedule, in the text form of `trellis schedule show`. Every rank proves it first.
TRELLIS_API trellis_result trellis_run_schedule(trellis_comm comm, const trellis_call* call, const char* schedule,
                                                trellis_stream stream);

// Writes the algorithm that the call would use ("ring channels=2"), of at most size - 1 bytes.
// TRELLIS_INVALID_ARGUMENT: it does not fit.
TRELLIS_API trellis_result trellis_algorithm(trellis_comm comm, const trellis_call* call, char* text, size_t size);

#ifdef __cplusplus
}
#endif
