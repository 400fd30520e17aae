// Memory, streams and events of this process' device, which is the host.
//
// Buffers may lie in any memory. What trellis_alloc gives can be read by the peers where it is, so that large
// operations on it move fewer bytes.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// Work done in the order in which it was handed in, beside the caller. Where a stream is asked for, NULL means: now, in
// the calling thread, and done when the call returns.
typedef struct trellis_stream_opaque* trellis_stream;

// A point in a stream's work that others can wait for.
typedef struct trellis_event_opaque* trellis_event;

// At least `bytes`, aligned to 4096, zero at first. 0 bytes are possible. TRELLIS_OUT_OF_MEMORY: *memory is NULL.
TRELLIS_API trellis_result trellis_alloc(void** memory, size_t bytes);

// NULL is let be. TRELLIS_INVALID_ARGUMENT: the address was not given out by trellis_alloc, or has been freed.
TRELLIS_API trellis_result trellis_free(void* memory);

// What trellis_alloc has given out and has not got back.
TRELLIS_API trellis_result trellis_allocated_bytes(size_t* bytes);

// Copies on the stream. The ranges must not overlap.
TRELLIS_API trellis_result trellis_copy(void* to, const void* from, size_t bytes, trellis_stream stream);

TRELLIS_API trellis_result trellis_stream_create(trellis_stream* stream);

// Waits for what was handed in. NULL is let be.
TRELLIS_API trellis_result trellis_stream_destroy(trellis_stream stream);

// Waits for all that was handed in so far. Returns how the first failed piece of work ended, once; what was handed in
// after that piece has not been done. NULL is let be.
TRELLIS_API trellis_result trellis_stream_synchronize(trellis_stream stream);

// TRELLIS_OK: nothing is left to do. TRELLIS_IN_PROGRESS: something is.
TRELLIS_API trellis_result trellis_stream_query(trellis_stream stream);

// Calls work(argument) as a piece of the stream's work. It may not wait for the stream itself.
TRELLIS_API trellis_result trellis_stream_call(trellis_stream stream, void (*work)(void*), void* argument);

TRELLIS_API trellis_result trellis_event_create(trellis_event* event);
TRELLIS_API trellis_result trellis_event_destroy(trellis_event event);  // NULL is let be

// The event now stands for the end of what the stream has been handed.
TRELLIS_API trellis_result trellis_event_record(trellis_event event, trellis_stream stream);

// TRELLIS_OK: the stream got there; also before the first record. TRELLIS_IN_PROGRESS: not yet.
TRELLIS_API trellis_result trellis_event_query(trellis_event event);
TRELLIS_API trellis_result trellis_event_synchronize(trellis_event event);

// What is handed to the stream from now on waits for the last record of the event.
TRELLIS_API trellis_result trellis_stream_wait(trellis_stream stream, trellis_event event);

#ifdef __cplusplus
}
#endif
