// Watches a long computation: is told what is being done, and asked whether to go on.
#pragma once

#include <string>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

class ProgressMonitor {
 public:
  virtual ~ProgressMonitor() = default;
  virtual void begin(std::string task) = 0;  // "trying the algorithms"
  // `reached`: simulated time; `done`: part of all moves. True: stop. Several threads may call it at once.
  virtual bool stopped(Time reached, double done) = 0;
  // Several configs are compared, and this part of them is decided.
  virtual void decided(double) {}
  virtual bool interrupted() const = 0;
};

// When nobody watches.
class NoProgressMonitor final : public ProgressMonitor {
 public:
  void begin(std::string) override {}
  bool stopped(Time, double) override { return false; }
  bool interrupted() const override { return false; }
};

}  // namespace trellis::sim
