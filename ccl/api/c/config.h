// What a communicator can be told at its making. All ranks of it should be told the same.
//
//   trellis_config config = TRELLIS_CONFIG_INIT;
//   config.timeout_s = 5;
//   trellis_comm_create(&comm, ranks, &id, rank, &config);
//
// A field that is left as TRELLIS_CONFIG_INIT makes it takes the environment variable that is named beside it, and
// without that the default. The struct may grow at its end: `size` tells the library what the program knew, so never
// change it, nor `version`.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// Of a field that is on or off; 0 leaves it as the environment or the default has it.
enum { TRELLIS_ON = 1, TRELLIS_OFF = 2 };

typedef struct trellis_config {
  size_t size;
  int version;
  int nonblocking;         // 1: creating, splitting, shrinking, growing and finalizing go on in the background
  double timeout_s;        // TRELLIS_TIMEOUT, 30: seconds that a rank waits for another one
  const char* algorithm;   // TRELLIS_ALGORITHM: "ring", or "all_reduce=mesh,all_gather=ring"; else by a table
  const char* selections;  // TRELLIS_SELECTIONS: the file with that table; else the built-in one
  const char* transport;   // TRELLIS_TRANSPORT: "loopback", "shared_memory"; else what fits
  const char* rounding;    // TRELLIS_ROUNDING: "nearest" (default), "truncate", "stochastic": narrow sums, and `wire`
  const char* dump;        // TRELLIS_DUMP: folder for the flight recorder's files; else none is written
  uint64_t seed;           // TRELLIS_SEED, 0: of stochastic rounding
  int single_copy;         // TRELLIS_SINGLE_COPY, on: read large buffers out of the peer's own memory
  int wire;                // TRELLIS_WIRE, TRELLIS_F32: TRELLIS_BF16: f32 is sent, and so rounded, as bf16
  const char* machine;     // TRELLIS_MACHINE, "host": whose rules of the table serve, before those of any machine
} trellis_config;

#define TRELLIS_CONFIG_INIT \
  { sizeof(trellis_config), TRELLIS_VERSION, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL }

// Fills the struct with what a communicator would get: the defaults, with what the environment sets. The texts are the
// library's, valid until the next call of this function in this thread. TRELLIS_INVALID_ARGUMENT: a variable has a
// value that it can't have; the message names it.
TRELLIS_API trellis_result trellis_config_from_environment(trellis_config* config);

#ifdef __cplusplus
}
#endif
