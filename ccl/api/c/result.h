// Result codes and error messages of the C API.
//
// Every function that can fail returns a trellis_result. A failure also leaves a message for the calling thread, which
// contains the value at fault. No function prints, exits, or throws a C++ exception. Any function may be called from
// any thread, but only one thread at a time may use a communicator, except for trellis_comm_abort and
// trellis_comm_async_error.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TRELLIS_API __attribute__((visibility("default")))

#define TRELLIS_VERSION 10000  // version of this interface: 10000 major + 100 minor + patch

#ifdef __cplusplus
extern "C" {
#endif

typedef int trellis_result;

enum {
  TRELLIS_OK = 0,
  TRELLIS_IN_PROGRESS = 1,       // not a failure: a `nonblocking` communicator continues in the background
  TRELLIS_INVALID_ARGUMENT = 2,  // the function does not accept this value
  TRELLIS_INVALID_USAGE = 3,     // not now: in progress, finalized, or no group is open
  TRELLIS_PEER_LOST = 4,         // a rank died, stopped responding, or never came; see trellis_last_error_rank
  TRELLIS_MISMATCH = 5,          // another rank's call does not match; see trellis_last_error_rank
  TRELLIS_ABORTED = 6,           // the communicator was aborted, here or by another rank
  TRELLIS_TIMED_OUT = 7,         // no particular rank is known to be at fault
  TRELLIS_OUT_OF_MEMORY = 8,
  TRELLIS_SYSTEM_ERROR = 9,     // the operating system or the network refused, or data arrived damaged
  TRELLIS_INTERNAL_ERROR = 10,  // a bug in this library
  TRELLIS_RESULTS = 11
};

// The general meaning of a result, as "a peer was lost". Never NULL. The library owns the text.
TRELLIS_API const char* trellis_result_text(trellis_result result);

// The message of the last failure in this thread, at most 1023 bytes; "" before the first. A success leaves it
// unchanged. The next failure overwrites the text at the same address, which stays valid until the thread ends.
TRELLIS_API const char* trellis_last_error(void);

// The result of the last failure in this thread; TRELLIS_OK before the first.
TRELLIS_API trellis_result trellis_last_result(void);

// The rank that the last failure in this thread names (TRELLIS_PEER_LOST, TRELLIS_MISMATCH): the one to exclude in
// trellis_comm_shrink. -1: none.
TRELLIS_API int trellis_last_error_rank(void);

// For libraries built on this one: records a failure of theirs as the last one in this thread, and as a failure of the
// open group. Returns `result`.
TRELLIS_API trellis_result trellis_note_failure(trellis_result result, const char* text);

// TRELLIS_VERSION of the loaded library. It may be later than the one that the program was compiled with.
TRELLIS_API int trellis_version(void);

#ifdef __cplusplus
}
#endif
