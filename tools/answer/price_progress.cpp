#include "tools/answer/price_progress.h"

#include <fmt/format.h>

#include "sim/hardware/timeline/summary_words.h"

namespace trellis::tools {
namespace {

constexpr std::chrono::milliseconds between{200};  // between two looks at what the user wants

}  // namespace

void PriceProgress::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
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
  if (interrupted_) return true;
  if (decided_ >= 0)
    progress_.say(fmt::format("{}: {:.0f}% are decided (Ctrl-C: the best of those)", what_, 100 * decided_), decided_);
  else
    progress_.say(fmt::format("{}: {:.0f}% of the moves, {} simulated (Ctrl-C: what there is)", what_, 100 * done,
                              sim::time_words(reached)),
                  done);
  return false;
}

void PriceProgress::decided(double part) {
  const std::lock_guard lock(mutex_);
  decided_ = part;
}

}  // namespace trellis::tools
