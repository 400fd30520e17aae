// Groups: several calls run as one.
//
// Between trellis_group_start and the outermost trellis_group_end, this thread's operations, on any communicators and
// streams, are recorded and not started. So are calls that create, divide or finalize communicators. The end runs them
// all together: first those that create communicators, each in a thread of its own; then sends and receives, all at
// once; then each communicator's collectives in order, different communicators concurrently. So sends and receives of a
// group cannot deadlock, and one thread can hold several ranks.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// Groups nest; the outermost counts.
TRELLIS_API trellis_result trellis_group_start(void);

// Runs the group. Operations on streams may still be running when it returns. Nonblocking communicators may still be in
// creation; then it returns TRELLIS_IN_PROGRESS. If a call within the group failed, nothing of the group is done, and
// the end returns that failure. A communicator whose creation failed here keeps its handle, which is valid for
// trellis_comm_async_error and trellis_comm_destroy. TRELLIS_INVALID_USAGE: no group is open.
TRELLIS_API trellis_result trellis_group_end(void);

// Ends the group as trellis_group_end does, but discards its calls.
TRELLIS_API trellis_result trellis_group_forget(void);

#ifdef __cplusplus
}
#endif
