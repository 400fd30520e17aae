// Imports and exports schedules in MSCCL's XML (written by microsoft/msccl-tools, read by the msccl and rccl runtimes).
// The file lists each gpu's thread blocks, which run their steps in order and wait for steps of other blocks.
//
// A thread block has one peer to send to and one to receive from. Messages on a channel arrive in order. In MSCCL a
// send is buffered and its block goes on at once. Here no order may depend on buffering, so only steps that overwrite
// what a send reads wait for it. rcs, rrs and rrcs become a receive and a send. The result of rrs, which is sent but
// not stored, goes through scratch added at the end. A waiting step waits for the first step with hasdep at or after
// the named one, as the runtimes do.
#pragma once
#include <optional>
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

// Reads all_reduce, all_gather, reduce_scatter and all_to_all. A file may support in place, out of place or both.
// `in_place` selects the reading; the default is out of place if the file allows it. Throws invalid_argument with the
// place in the file if it can't be read, does not support `in_place`, or has a collective that the format does not
// fully describe: it names no root, and "custom" has no post-condition. verify() checks whether the algorithm is
// correct.
Schedule import_msccl(std::string_view xml, std::optional<bool> in_place = {});
bool msccl_leaves_place_open(std::string_view xml);  // whether the file claims both; throws likewise

// Throws invalid_argument for what the format can't express: other collectives, one read for two receivers, sums of
// more than two values with one rounding, more thread blocks than import_msccl() reads. The schedule must be able to
// run to its end.
std::string export_msccl(const Schedule&);

}  // namespace trellis::schedule
