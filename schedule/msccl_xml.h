// Schedules in the XML of MSCCL (microsoft/msccl-tools writes it, the runtimes of msccl and rccl read it): each gpu's
// thread blocks, which run their steps in order and wait for each other's.
//
// A thread block has one peer to send to and one to receive from. What it sends on a channel arrives in order, and a
// send lets its block go on at once: buffers on the way hold the data. Here no order may depend on buffering, so that a
// send is waited for only by the steps that overwrite what it reads. rcs, rrs and rrcs become a receive and a send;
// what rrs passes on without storing it goes through scratch added at the end. A step that waits waits for the first
// step with hasdep from the named one on, as the runtimes do.
#pragma once
#include <optional>
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Reads all_reduce, all_gather, reduce_scatter and all_to_all. A file may claim to work in place, out of place or both;
// `in_place` says which reading is wanted, by default out of place where the file allows it. Throws invalid_argument,
// naming the place, on what can't be read, on a claim the file does not make, and on collectives of which the format
// does not say enough: no root is named, and custom says nothing of what must come out. Whether the algorithm is right
// is for verify() to say.
Schedule import_msccl(std::string_view xml, std::optional<bool> in_place = {});

// Throws invalid_argument where the format has no way to say it: other collectives, reading once for two receivers,
// sums of more than two in one rounding. The schedule must be one that runs to its end.
std::string export_msccl(const Schedule&);

}  // namespace trellis::schedule
