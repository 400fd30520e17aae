// Several calls as one.
//
// Between trellis_group_start and the outermost trellis_group_end, operations of this thread, on any communicators and
// streams, are noted and not begun, and so are the calls that make, divide or finalize communicators. The end runs all
// of them together: first those that make communicators, each in a thread of its own; then sends and receives, all at
// once; then the collectives of each communicator in order, those of several communicators beside each other. So sends
// and receives of a group can't lock each other out, and one thread can hold several ranks.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

// Groups nest; the outermost counts.
TRELLIS_API trellis_result trellis_group_start(void);

// Runs the group. Operations on streams may still be under way when it returns; communicators that are nonblocking may
// still be in the making, and then it returns TRELLIS_IN_PROGRESS. When a call within the group failed, nothing of the
// group is done, and the end returns that failure. A communicator whose making failed here keeps its handle, which is
// good for trellis_comm_async_error and trellis_comm_destroy. TRELLIS_INVALID_USAGE: no group is open.
TRELLIS_API trellis_result trellis_group_end(void);

// Ends the group as trellis_group_end would, but does nothing of it.
TRELLIS_API trellis_result trellis_group_forget(void);

#ifdef __cplusplus
}
#endif
