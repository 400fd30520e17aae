// Ordering of this thread's NCCL operations on default streams, if the program uses this library's CUDA runtime. An
// operation on a default stream runs in the calling thread after the work of the device's other streams, and is done
// when the call, or the group's end, returns.
#pragma once

#include "ccl/api/nccl/group_time_estimate.h"

namespace trellis::nccl {

// Called before an operation: returns the C API's stream for it; null: the calling thread runs it. On a default stream,
// it waits for the other streams first; in a group, the group's end does so. The functions here throw NcclError.
trellis_stream enter(const NcclComm&, cudaStream_t);

// Throws if a stream runs the caller: a call that waits for streams or other ranks could there wait for itself.
void expect_outside_streams();

// Waits until the stream has done the work that it holds.
void finish(const NcclComm&, cudaStream_t);

void open_group();
trellis_result close_group();   // the outermost one runs the group
trellis_result forget_group();  // the outermost one discards the group

void note_in_group(const EstimatedCall&);     // kept while a group is open
std::vector<EstimatedCall> calls_of_group();  // of this thread's outermost group; none while a nested one is open

}  // namespace trellis::nccl
