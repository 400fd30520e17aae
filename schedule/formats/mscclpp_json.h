// Imports execution plans of MSCCL++ (microsoft/mscclpp: written by its DSL, run by its executor). Gpus put data into
// and get data from each other's memory, and use signals to announce completion.
//
// A plan moves data from one side only. Here each put, get or part of a reduction becomes a transfer with two ends. The
// order of the ends follows from the plan's nops, barriers, semaphores and signals. (A nop makes the threads of a
// thread block wait for each other; operations without a nop between them are not ordered.) Signals must order all
// accesses to a gpu's memory, up to the end of that gpu's own plan.
//
// Plans are refused where the format leaves something open:
// - the root gpu, and the post-condition of the plan's own collectives (sendrecv, test);
// - packets (protocol LL): order comes from flags inside the data, and the half of the scratch is chosen at run time;
// - pipelines: the size at run time decides the number of rounds;
// - thread block groups: chunks are divided among the blocks at element boundaries known at run time;
// - switch channels: the switch chooses the order of additions;
// - relaxed signals after data has moved: they don't guarantee that earlier writes are visible;
// - port channels: the proxy decides whether a put has ended before its flush.
// A sum of more than two values is rounded after each addition here; an executor may keep more bits in between.
#pragma once
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Reads all_reduce, all_gather, reduce_scatter and all_to_all. Throws invalid_argument with the place and the reason.
Schedule import_mscclpp(std::string_view json);

}  // namespace trellis::schedule
