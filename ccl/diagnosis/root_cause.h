// Root cause of a job's failure, as one sentence.
#pragma once

#include <string>

#include "ccl/diagnosis/wait_graph.h"
#include "ccl/diagnosis/wording.h"

namespace trellis::ccl {

std::string cause_of(const JobEvidence&, const WaitGraph&, const Wording&);  // empty: nothing went wrong

}  // namespace trellis::ccl
