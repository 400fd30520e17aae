// Diagnosis of a job from its ranks' dumps and its launch records; this is what `trellis doctor` prints.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ccl/diagnosis/evidence.h"

namespace trellis::ccl {

struct Diagnosis {
  struct Part {
    std::string communicator = {};  // empty: it was never created
    std::string name = {};          // "communicator 0123 of 4 ranks (ranks 0, 2, 4, 6)"
    Rank ranks = 1;
    std::vector<std::string> lines = {};  // what its ranks were doing
    std::map<Rank, std::string> errors = {};
    std::vector<std::string> later = {};  // failures that followed
  };
  std::string cause = {};  // the root cause; empty: nothing went wrong
  std::int64_t moment_ns = 0;
  std::vector<Part> parts = {};
  std::vector<std::string> ends = {};  // how ranks ended, as the launches saw it
};

std::vector<Diagnosis> diagnose(const CollectedEvidence&);  // one per job, the last job first

}  // namespace trellis::ccl
