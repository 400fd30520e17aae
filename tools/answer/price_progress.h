// Progress of a long pricing on a terminal, with the estimated time left; Ctrl-C ends the pricing.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sim/cluster/answer/progress_monitor.h"
#include "tools/answer/interruption.h"

namespace trellis::tools {

class PriceProgress final : public sim::ProgressMonitor {
 public:
  PriceProgress();
  ~PriceProgress() override { clear(); }
  PriceProgress(const PriceProgress&) = delete;
  PriceProgress& operator=(const PriceProgress&) = delete;

  void begin(std::string what) override;  // starts the next task, which is shown from now on
  // For PriceOptions::stopped. Notes the progress, shows it, and returns true when the user wants to stop. Thread-safe:
  // several pricings may call it at once.
  bool stopped(sim::Time reached, double done) override;
  void decided(double part) override;
  bool interrupted() const override { return interrupted_ || interrupts_.asked(); }
  sim::Time reached() const { return reached_; }
  double done() const { return done_; }  // part of all moves
  void clear();                          // erases the progress line, before something else is printed

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  Interrupts interrupts_;
  bool interrupted_ = false;
  const bool shown_;
  bool line_ = false;
  std::string what_;
  Clock::time_point began_ = Clock::now(), last_ = began_;
  sim::Time reached_ = 0;
  double done_ = 0;
  double decided_ = -1;  // part of the configs that are compared; below 0: nothing is compared
};

}  // namespace trellis::tools
