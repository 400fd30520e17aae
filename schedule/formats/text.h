// Prints and parses the text form of a schedule: a few lines for the task, then each rank's steps, one per line.
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
// in[3..5] is a run of chunks; both ends are included. `like` lists the data chunks that give the scratch chunks their
// sizes. Omitted fields have defaults: root 0, peer 0, channel 0. The words in_place and even stand alone. Empty lines
// and lines that begin with # are ignored.
#pragma once
#include <string_view>

#include "schedule/schedule.h"

namespace trellis::schedule {

std::string print(const Schedule&);
std::string print(const Schedule&, Rank);  // that rank only; throws invalid_argument if there is none

// Parses what print wrote, and checks the task. Throws invalid_argument with the line number, the text found and what
// was expected. verify() checks whether the steps are consistent.
Schedule parse(std::string_view text);

}  // namespace trellis::schedule
