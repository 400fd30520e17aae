// Memory, streams and events of this process's device: the host, or what TRELLIS_DEVICE names. "sim:trn2.48xlarge": a
// core of a simulated machine, with simulated time; "neuron": a NeuronCore. A launched process has the core of its
// rank.
//
// Buffers may be in any memory. Peers can read memory from trellis_alloc directly, so large operations on it move fewer
// bytes.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// A queue of work that runs in order, concurrently with the caller. Where a function takes a stream, NULL means: run
// now, in the calling thread, and return when done.
typedef struct trellis_stream_opaque* trellis_stream;

// A point in a stream's work that others can wait for.
typedef struct trellis_event_opaque* trellis_event;

// Allocates at least `bytes`, aligned to 4096, initially zero. 0 bytes are allowed. TRELLIS_OUT_OF_MEMORY: *memory is
// NULL.
TRELLIS_API trellis_result trellis_alloc(void** memory, size_t bytes);

// NULL is ignored. TRELLIS_INVALID_ARGUMENT: the address is not from trellis_alloc, or has been freed. Memory that the
// library allocated for itself, or through another function, cannot be freed here.
TRELLIS_API trellis_result trellis_free(void* memory);

// The same under the name `function`: an out-of-memory error lists the names among the holders of memory, and memory
// can be freed only under the name under which it was allocated.
TRELLIS_API trellis_result trellis_alloc_by(const char* function, void** memory, size_t bytes);
TRELLIS_API trellis_result trellis_free_by(const char* function, void* memory);

// Bytes that are allocated and have not been freed, including what communicators use.
TRELLIS_API trellis_result trellis_allocated_bytes(size_t* bytes);

// How many bytes of the host's memory this process can still get, and could get in all: those of the machine, or fewer
// if its container or service has a limit. Either pointer may be NULL; 0: the system does not tell.
TRELLIS_API trellis_result trellis_host_memory(size_t* available, size_t* total);

// The device's name: "host", "sim:trn2.48xlarge core 3". The text lives as long as the process.
TRELLIS_API trellis_result trellis_device_name(const char** name);

// The device's time in picoseconds since some moment. On a simulated core, it is the simulated time that the calling
// thread's work has reached.
TRELLIS_API trellis_result trellis_device_time(int64_t* picoseconds);

// Copies on the stream. The ranges must not overlap.
TRELLIS_API trellis_result trellis_copy(void* to, const void* from, size_t bytes, trellis_stream stream);

TRELLIS_API trellis_result trellis_stream_create(trellis_stream* stream);

// Waits for the submitted work. NULL is ignored.
TRELLIS_API trellis_result trellis_stream_destroy(trellis_stream stream);

// Waits for all work submitted so far. Returns the error of the first piece of work that failed, once; work submitted
// after that piece has not been done. A failed stream refuses collectives and drops other work until this function or
// trellis_stream_query has returned its error. NULL is ignored.
TRELLIS_API trellis_result trellis_stream_synchronize(trellis_stream stream);

// TRELLIS_OK: no work is left. TRELLIS_IN_PROGRESS: some is left. Otherwise the error of the first piece of work that
// failed, once, as trellis_stream_synchronize returns it.
TRELLIS_API trellis_result trellis_stream_query(trellis_stream stream);

// Submits work(argument) to the stream. The work must not wait for the stream itself, nor destroy it:
// TRELLIS_INVALID_USAGE.
TRELLIS_API trellis_result trellis_stream_call(trellis_stream stream, void (*work)(void*), void* argument);

// The same, but if the work is not done because earlier work failed, dropped(argument) is called instead. Neither is
// called if this returns an error.
TRELLIS_API trellis_result trellis_stream_call_or(trellis_stream stream, void (*work)(void*), void (*dropped)(void*),
                                                  void* argument);

// *inside: 1 if a stream runs the caller as part of its work, 0 otherwise.
TRELLIS_API trellis_result trellis_stream_work(int* inside);

// Default streams, as in CUDA: there is one for each number from 0, and it orders the streams created for that number.
// Work submitted to the default stream waits for the work that these hold; work submitted to them afterwards waits for
// it. It lives until the process ends and must not be destroyed.
//
// *stream is NULL until the process calls trellis_default_streams_use.
TRELLIS_API trellis_result trellis_default_stream(int number, trellis_stream* stream);
TRELLIS_API trellis_result trellis_default_streams_use(void);
TRELLIS_API trellis_result trellis_ordered_stream_create(int number, trellis_stream* stream);

// The calling thread's own stream among those of this number; the same each time. When the thread ends, another thread
// may get it.
TRELLIS_API trellis_result trellis_thread_stream(int number, trellis_stream* stream);

TRELLIS_API trellis_result trellis_event_create(trellis_event* event);
TRELLIS_API trellis_result trellis_event_destroy(trellis_event event);  // NULL is ignored

// The event now marks the end of the work submitted to the stream so far.
TRELLIS_API trellis_result trellis_event_record(trellis_event event, trellis_stream stream);

// TRELLIS_OK: the stream reached the event, or it was never recorded. TRELLIS_IN_PROGRESS: not yet.
TRELLIS_API trellis_result trellis_event_query(trellis_event event);
TRELLIS_API trellis_result trellis_event_synchronize(trellis_event event);

// Work submitted to the stream from now on waits for the event's last record.
TRELLIS_API trellis_result trellis_stream_wait(trellis_stream stream, trellis_event event);

#ifdef __cplusplus
}
#endif
