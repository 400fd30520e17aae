// How functions of the C API end, and what went wrong.
//
// Every function that can fail returns a trellis_result. A failure also leaves a message in one's own thread, with the
// value at fault in it. No function prints, exits, or lets a C++ exception out. Any function may be called from any
// thread; calls on one communicator are made by one thread at a time, but for trellis_comm_abort and
// trellis_comm_async_error.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TRELLIS_API __attribute__((visibility("default")))

#define TRELLIS_VERSION 10000  // of this interface: 10000 major + 100 minor + patch

#ifdef __cplusplus
extern "C" {
#endif

typedef int trellis_result;

enum {
  TRELLIS_OK = 0,
  TRELLIS_IN_PROGRESS = 1,       // not a failure: a communicator with `nonblocking` goes on with it in the background
  TRELLIS_INVALID_ARGUMENT = 2,  // a value that this function does not take
  TRELLIS_INVALID_USAGE = 3,     // not now: in progress, finalized, or a group that is not open
  TRELLIS_PEER_LOST = 4,         // another rank died, froze, or never came; trellis_last_error_rank tells which
  TRELLIS_MISMATCH = 5,          // another rank made a call that does not fit; trellis_last_error_rank tells which
  TRELLIS_ABORTED = 6,           // the communicator was aborted, here or by another rank
  TRELLIS_TIMED_OUT = 7,         // nobody in particular is known to be at fault
  TRELLIS_OUT_OF_MEMORY = 8,
  TRELLIS_SYSTEM_ERROR = 9,     // the operating system or the network refused
  TRELLIS_INTERNAL_ERROR = 10,  // a fault of this library
  TRELLIS_RESULTS = 11
};

// What a result means in general, as "a peer was lost". Never NULL. The text is the library's.
TRELLIS_API const char* trellis_result_text(trellis_result result);

// What the last failure in this thread was in particular, in at most 1023 bytes; "" before the first. A success leaves
// it as it is; the next failure writes its own text to the same place, which stays until the thread ends.
TRELLIS_API const char* trellis_last_error(void);

// The result of that failure; TRELLIS_OK before the first.
TRELLIS_API trellis_result trellis_last_result(void);

// The rank that the last failure in this thread names (TRELLIS_PEER_LOST, TRELLIS_MISMATCH), which is the one to leave
// out in trellis_comm_shrink; -1: it names none.
TRELLIS_API int trellis_last_error_rank(void);

// For libraries over this one: makes a failure of theirs the last in this thread, and that of the group that is open.
// Returns `result`.
TRELLIS_API trellis_result trellis_note_failure(trellis_result result, const char* text);

// TRELLIS_VERSION of the library that is loaded. It may be later than the one the program was compiled with.
TRELLIS_API int trellis_version(void);

#ifdef __cplusplus
}
#endif
