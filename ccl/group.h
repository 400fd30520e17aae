// Where every operation passes: kept while a group is open in this thread, else run.
#pragma once

#include "ccl/inside.h"

namespace trellis::ccl {

struct Issued {
  Communicator::Inside* inside = nullptr;
  Operation operation = {};
  device::Stream* stream = nullptr;
};

// Runs the operations of one group: a communicator's own one after the other, those of several beside each other, all
// sends and receives first and at once.
void run_together(std::vector<Issued>);

}  // namespace trellis::ccl
