// The top of an HTML report on a simulation, readable without scripts: the result, what it depends on, and bars of time
// drawn to one scale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/price/critical_path.h"
#include "sim/cluster/price/uncertainty_interval.h"
#include "sim/hardware/timeline/text_buffer.h"
#include "tools/answer/noise.h"

namespace trellis::tools {

class AnswerPage {
 public:
  explicit AnswerPage(sim::Time whole) : whole_(static_cast<double>(whole < 1 ? 1 : whole)) {}

  // A bar from one time to another; `css`: result, bound or range.
  std::string bar(sim::Time from, sim::Time to, std::string_view css) const;
  void put_row(std::string_view what, const std::string& value, const std::string& bars, std::string_view more = "");
  void put_result_row(sim::Time, const sim::UncertaintyInterval&);
  void put_noise(const sim::NoisyTimes&);  // writes nothing when there are no times
  // The parts of the time, largest first.
  void put_shares(const std::vector<sim::CriticalPathShare>&, sim::Time whole, std::string_view busiest = "");
  void put_sensitivities(const sim::UncertaintyInterval&);

  sim::Text& text() { return text_; }
  std::string html() const;

 private:
  double whole_ = 1;
  sim::Text text_;
};

}  // namespace trellis::tools
