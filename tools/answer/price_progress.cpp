#include "tools/answer/price_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "ccl/print_to_stderr.h"
#include "sim/hardware/timeline/format_quantities.h"

namespace trellis::tools {
namespace {

constexpr std::chrono::milliseconds between{200};   // between two checks for a signal by PriceProgress
constexpr std::chrono::milliseconds look{50};       // between two checks for a signal by InterruptWatchdog
constexpr std::chrono::milliseconds patience{800};  // from a signal until InterruptWatchdog ends the process
constexpr std::chrono::milliseconds telling{5000};  // the same if results are about to be printed

}  // namespace

InterruptWatchdog::InterruptWatchdog(const InterruptPoller& interrupts)
    : interrupts_(interrupts), thread_([this](const std::stop_token& gone) { run(gone); }) {}

void InterruptWatchdog::has_results() {
  const std::lock_guard lock(mutex_);
  results_ = true;
}

void InterruptWatchdog::over() {
  const std::lock_guard lock(mutex_);
  working_ = false;
}

void InterruptWatchdog::run(const std::stop_token& gone) {
  std::unique_lock lock(mutex_);
  std::chrono::milliseconds waited{0};
  while (!changed_.wait_for(lock, gone, look, [&] { return gone.stop_requested(); })) {
    if (gone.stop_requested() || !working_ || !interrupts_.asked()) continue;
    waited += look;
    if (waited < (results_ ? telling : patience)) continue;
    ccl::tell("{}trellis: interrupted before there was a result\n", isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "");
    _exit(1);
  }
}

void PriceProgress::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  if (began_) prompt_end_.has_results();
  began_ = true;
  last_ = Clock::now();
  reached_ = 0, done_ = 0, decided_ = -1;
  progress_.restart();
}

bool PriceProgress::stopped(sim::Time reached, double done) {
  const std::lock_guard lock(mutex_);
  reached_ = reached, done_ = done;
  const Clock::time_point now = Clock::now();
  if (now - last_ < between) return interrupted_;
  last_ = now;
  interrupted_ = interrupted_ || interrupts_.asked();
  if (interrupted_) {
    prompt_end_.has_results();
    return true;
  }
  if (what_.empty() && done == 0)  // the algorithm was named: no others are compared
    progress_.say("the schedule is written out (Ctrl-C ends it)");
  else if (decided_ >= 0)
    progress_.say(fmt::format("{}: {:.0f}% are decided (Ctrl-C: the best of those)", what_, 100 * decided_), decided_);
  else
    progress_.say(fmt::format("{}{}{:.0f}% of the moves, {} simulated (Ctrl-C: what there is)", what_,
                              what_.empty() ? "" : ": ", 100 * done, sim::time_words(reached)),
                  done);
  return false;
}

void PriceProgress::clear() {
  prompt_end_.over();
  progress_.clear();
}

void PriceProgress::decided(double part) {
  const std::lock_guard lock(mutex_);
  decided_ = part;
}

}  // namespace trellis::tools
