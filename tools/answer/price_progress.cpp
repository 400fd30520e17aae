#include "tools/answer/price_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "ccl/tell.h"
#include "sim/hardware/timeline/summary_words.h"

namespace trellis::tools {
namespace {

constexpr std::chrono::milliseconds between{200};  // between two updates of the line
constexpr double foreseeable = 0.02;               // with less done, no time left is estimated

}  // namespace

PriceProgress::PriceProgress() : shown_(isatty(STDERR_FILENO) == 1) {}

void PriceProgress::begin(std::string what) {
  what_ = std::move(what);
  began_ = last_ = Clock::now();
  reached_ = 0, done_ = 0, decided_ = -1;
}

bool PriceProgress::stopped(sim::Time reached, double done) {
  const std::lock_guard lock(mutex_);
  reached_ = reached, done_ = done;
  const Clock::time_point now = Clock::now();
  if (now - last_ < between) return interrupted_;
  last_ = now;
  interrupted_ = interrupted_ || interrupts_.asked();
  if (!shown_ || interrupted_) return interrupted_;
  const double passed = std::chrono::duration<double>(now - began_).count();
  line_ = true;
  if (decided_ >= 0) {
    ccl::tell("\r\033[K{}: {:.0f}% are decided, in {:.0f} s (Ctrl-C: the best of those)", what_, 100 * decided_,
              passed);
    return false;
  }
  const std::string left =
      done < foreseeable ? "" : fmt::format(", about {:.0f} s left of this", passed / done * (1 - done));
  ccl::tell("\r\033[K{}: {:.0f}% of the moves, {} simulated in {:.0f} s{} (Ctrl-C: what there is)", what_, 100 * done,
            sim::time_words(reached), passed, left);
  return false;
}

void PriceProgress::decided(double part) {
  const std::lock_guard lock(mutex_);
  decided_ = part;
}

void PriceProgress::clear() {
  if (line_) ccl::tell("\r\033[K");
  line_ = false;
}

}  // namespace trellis::tools
