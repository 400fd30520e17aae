// Ordering of this thread's NCCL operations on default streams, if the program uses this library's CUDA runtime. An
// operation on a default stream runs in the calling thread after the work of the device's other streams, and is done
// when the call, or the group's end, returns.
#pragma once

#include "ccl/api/nccl/estimate.h"

namespace trellis::nccl {

// For an operation: returns the stream to pass on. In a group the waiting is left to its end. All of these throw
// Refused.
trellis_stream enter(const NcclComm&, cudaStream_t);

// For a call that waits for streams or for other ranks: a function that a stream runs could wait for itself.
void expect_outside_streams();

// Waits until the stream has done the work that it holds.
void finish(const NcclComm&, cudaStream_t);

void open_group();
trellis_result close_group();   // the outermost one runs the group
trellis_result forget_group();  // the outermost one discards the group

void note_in_group(const GroupCall&);     // kept while a group is open
std::vector<GroupCall> calls_of_group();  // of this thread's outermost one; none while another is open within it

}  // namespace trellis::nccl
