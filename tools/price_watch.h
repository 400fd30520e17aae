// What is seen of a long pricing: on a terminal how far it is and how long it may still take; Ctrl-C ends it.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sim/units.h"
#include "tools/machine_stop.h"

namespace trellis::tools {

class PriceWatch {
 public:
  PriceWatch();
  ~PriceWatch() { clear(); }
  PriceWatch(const PriceWatch&) = delete;
  PriceWatch& operator=(const PriceWatch&) = delete;

  void begin(std::string what);  // another thing, which is then shown as what is being done
  // For PriceOptions::stopped: remembers how far it is, shows it, and tells whether somebody wants an end. Of several
  // prices at once any may ask.
  bool stopped(sim::Time reached, double done);
  bool interrupted() const { return interrupted_ || interrupts_.asked(); }
  sim::Time reached() const { return reached_; }
  double done() const { return done_; }  // part of all moves
  void clear();                          // the line, before something else is printed

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
};

}  // namespace trellis::tools
