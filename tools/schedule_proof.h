// What the verifier has to say about a schedule, in words.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "schedule/verify.h"
#include "tools/request_options.h"

namespace trellis::tools {

struct Proof {
  std::string of;  // which schedule, in words
  schedule::Rank ranks = 0;
  std::int64_t steps = 0;
  std::int64_t transfers = 0;
  std::vector<std::string> proved;   // a sentence each
  std::vector<std::string> sampled;  // what was only looked at here and there; empty when all is proved
  std::vector<std::string> limits;   // what was not looked at; empty when all is proved
  std::string fault;                 // empty when there is none
  bool ok() const { return fault.empty(); }
  std::string text() const;
};

Proof prove(const schedule::Schedule&, std::string of);

// All of it, or by classes of ranks when it is folded. Programs made for one rank alone are held against the whole.
// Throws std::invalid_argument when the algorithm refuses.
Proof prove(const Asked&, bool folded);

}  // namespace trellis::tools
