// Progress of a long pricing, with the estimated time left. Ctrl-C ends the pricing: with the results so far where the
// pricing notices it within a second, else without results.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "sim/cluster/answer/progress_monitor.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/progress.h"

namespace trellis::tools {

// Ends the process soon after SIGINT or SIGTERM where work does not notice them: while a schedule of millions of steps
// is written out, nobody polls.
class InterruptWatchdog {
 public:
  explicit InterruptWatchdog(const InterruptPoller&);  // must outlive it

  void has_results();  // results will be printed soon: the process gets more time
  void over();         // from now on a signal does not end the process

 private:
  void run(const std::stop_token&);

  const InterruptPoller& interrupts_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool working_ = true, results_ = false;
  std::jthread thread_;
};

class PriceProgress final : public sim::ProgressMonitor {
 public:
  void begin(std::string what) override;  // starts the next task, which is shown from now on
  // For PriceOptions::stopped. Notes the progress, shows it, and returns true when the user wants to stop. Thread-safe:
  // several pricings may call it at once.
  bool stopped(sim::Time reached, double done) override;
  void decided(double part) override;
  bool interrupted() const override { return interrupted_ || interrupts_.asked(); }
  sim::Time reached() const { return reached_; }
  double done() const { return done_; }  // fraction of the schedule's moves that have ended
  void clear();                          // erases the progress line, before something else is printed or written

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  InterruptPoller interrupts_;
  InterruptWatchdog prompt_end_{interrupts_};
  Progress progress_;
  bool began_ = false, interrupted_ = false;
  std::string what_;
  Clock::time_point last_ = Clock::now();
  sim::Time reached_ = 0;
  double done_ = 0;
  double decided_ = -1;  // fraction of the configs that are decided; below 0: none are compared
};

}  // namespace trellis::tools
