// A schedule as text: a few lines for the task, then each rank's steps, one a line, in the words that messages use.
//
//   trellis schedule 1
//   collective all_reduce
//   ranks 2
//   pieces 2
//   algorithm ring
//   channels 1
//
//   rank 0 scratch 1 like 1
//   0 send in[0] to 1 tag 0
//   1 recv_reduce out[1] = in[1] from 1 tag 0
//   2 recv out[0] from 1 tag 1 channel 1 after 0
//
// A run of chunks is in[3..5], both ends included. `like` lists the data chunks that the scratch chunks are as large
// as. What is left out has its default: root 0, peer 0, channel 0; the words in_place and even stand alone. Empty lines
// and lines that begin with # say nothing.
#pragma once
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

std::string print(const Schedule&);
std::string print(const Schedule&, Rank);  // that rank alone; throws invalid_argument when there is no such rank

// Reads what print wrote. Throws invalid_argument with the line, what stands there and what was expected. Whether the
// steps make sense together is for verify() to say.
Schedule parse(std::string_view text);

}  // namespace trellis::schedule
