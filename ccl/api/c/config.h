// Settings for creating a communicator. All its ranks should use the same.
//
//   trellis_config config = TRELLIS_CONFIG_INIT;
//   config.timeout_s = 5;
//   trellis_comm_create(&comm, ranks, &id, rank, &config);
//
// A field that is left as TRELLIS_CONFIG_INIT sets it takes the value of the environment variable named beside it; if
// that is not set, the default, which stands in parentheses. The struct may grow at its end. `size` tells the library
// which fields the program knows, so never change `size` or `version`.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// For fields that are on or off; 0 leaves the environment's value or the default.
enum { TRELLIS_ON = 1, TRELLIS_OFF = 2 };

typedef struct trellis_config {
  size_t size;
  int version;
  int nonblocking;         // 1: creating, splitting, shrinking, growing and finalizing run in the background
  double timeout_s;        // TRELLIS_TIMEOUT (30): seconds that a rank waits for another one
  const char* algorithm;   // TRELLIS_ALGORITHM (""): "ring", "all_reduce=mesh,all_gather=ring"; "": by the table
  const char* selections;  // TRELLIS_SELECTIONS (""): file of the selection table; "": the built-in table
  const char* transport;   // TRELLIS_TRANSPORT (""): "libfabric", ...; "": shared_memory on one host, else hybrid
  const char* rounding;    // TRELLIS_ROUNDING ("nearest"): or "truncate", "stochastic"; of narrow sums and of `wire`
  const char* dump;        // TRELLIS_DUMP (""): folder for the flight recorder's files; "": none
  uint64_t seed;           // TRELLIS_SEED (0): seed of stochastic rounding
  int single_copy;         // TRELLIS_SINGLE_COPY (TRELLIS_OFF): if on, large buffers are read from the peer's memory
  int wire;                // TRELLIS_WIRE (TRELLIS_F32): with TRELLIS_BF16, f32 is rounded to bf16 for sending
  const char* machine;     // TRELLIS_MACHINE ("host", between hosts "fabric"): the table's rules for it come first
  int rounds;              // TRELLIS_ROUNDS (TRELLIS_ON): if on, small messages to a host's ranks are sent in one write
} trellis_config;

#define TRELLIS_CONFIG_INIT \
  { sizeof(trellis_config), TRELLIS_VERSION, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, 0 }

// Fills the struct with a communicator's settings: the defaults, overridden by the environment. The library owns the
// texts; they are valid until the next call of this function in this thread. TRELLIS_INVALID_ARGUMENT: a variable has
// an invalid value; the message names it.
TRELLIS_API trellis_result trellis_config_from_environment(trellis_config* config);

#ifdef __cplusplus
}
#endif
