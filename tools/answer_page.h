// The top of a report on what was simulated, as HTML that is read first and needs no script: its result, what it hangs
// on, and bars of time that are drawn to one scale.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/interval.h"
#include "sim/price_path.h"
#include "sim/text_buffer.h"
#include "tools/noise.h"

namespace trellis::tools {

class AnswerPage {
 public:
  explicit AnswerPage(sim::Time whole) : whole_(static_cast<double>(whole < 1 ? 1 : whole)) {}

  // A bar from one time to another; `css`: result, bound or range.
  std::string bar(sim::Time from, sim::Time to, std::string_view css) const;
  void put_row(std::string_view what, const std::string& value, const std::string& bars, std::string_view more = "");
  void put_result_row(sim::Time, const sim::Interval&);
  void put_noise(const Noisy&);  // nothing where there are no times
  // What the time is made of, the most first.
  void put_shares(const std::vector<sim::PathShare>&, sim::Time whole, std::string_view busiest = "");
  void put_sways(const sim::Interval&);

  sim::Text& text() { return text_; }
  std::string html() const;

 private:
  double whole_ = 1;
  sim::Text text_;
};

}  // namespace trellis::tools
