// Root cause of a job's failure, as one sentence.
#pragma once

#include <string>

#include "ccl/diagnosis/waits.h"
#include "ccl/diagnosis/wording.h"

namespace trellis::ccl {

std::string cause_of(const JobEvidence&, const Waits&, const Wording&);  // empty: nothing went wrong

}  // namespace trellis::ccl
