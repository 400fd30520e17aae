// What trellis sim found out, and how it says so: as text, as JSON, as a page.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/choice.h"
#include "sim/interval.h"
#include "sim/price_timeline.h"
#include "tools/request_options.h"

namespace trellis::tools {

struct SimAnswer {
  std::string collective, bytes_text, era;
  Asked chosen;
  sim::Choice choice;  // what it was chosen from; empty: it was asked for
  sim::Price price;
  sim::Interval interval;
  std::vector<sim::Phase> phases;  // where they were looked at
  std::string interrupted;         // what was left out for it; empty: nothing
  std::vector<std::string> notes;  // of what the timeline leaves out
  bool explain = false;
};

inline constexpr std::size_t most_compared = 3;  // algorithms that the best was preferred to
std::string sim_text(const SimAnswer&, const sim::Machine&);
std::string sim_json(const SimAnswer&, const sim::Machine&);

// HTML for the top of a report: the result beside its bounds, why it takes so long, its phases, and the machine with
// its links as they were used.
std::string sim_page(const SimAnswer&, const sim::Machine&, const sim::Run&);

}  // namespace trellis::tools
