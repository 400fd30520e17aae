// Schedules from the execution plans of MSCCL++ (microsoft/mscclpp: what its DSL writes and its executor runs): gpus
// put into and get from each other's memory, and say with signals when that is done.
//
// A plan moves data from one side only. Here each put, get, or part of a reduction becomes a transfer with both its
// ends, and the order of the ends follows from the plan's nops (which make a thread block's threads wait for each
// other: what has none between is not ordered), barriers, semaphores and signals. Signals must order all that touches
// one gpu's memory, up to the gpu's own end.
//
// What the format does not say, so that such plans are refused:
// - which gpu is the root, and for collectives of the plan's own (sendrecv, test) what must come out;
// - packets (protocol LL): the order lies in flags inside the data, and which half of the scratch is used, in run time;
// - pipelines: how often they go round is decided by the size at run time;
// - thread block groups: an operation's chunks are cut among its blocks at element boundaries known at run time;
// - switch channels: which gpu's chunk is added first is the switch's choice;
// - relaxed signals after data has moved: they don't promise that what was written before is seen;
// - port channels: whether a put has ended before its flush depends on the proxy.
// A sum of more than two rounds after each addition here; an executor may keep more bits in between.
#pragma once
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Reads all_reduce, all_gather, reduce_scatter and all_to_all. Throws invalid_argument, naming the place and the
// reason.
Schedule import_mscclpp(std::string_view json);

}  // namespace trellis::schedule
