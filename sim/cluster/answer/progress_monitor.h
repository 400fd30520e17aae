// Watches a long computation: is told what is being done, and asked whether to go on.
#pragma once

#include <string>

#include "sim/hardware/time/units.h"

namespace trellis::sim {

class ProgressMonitor {
 public:
  virtual ~ProgressMonitor() = default;
  virtual void begin(std::string task) = 0;  // "trying the algorithms"
  // Returns whether to stop. `reached`: the simulated time; `done`: the fraction of the current run's moves (local
  // steps and transfers) that have ended. Several threads may call it at once.
  virtual bool stopped(Time reached, double done) = 0;
  // Reports, while several configs are compared, the fraction of them that are priced or ruled out.
  virtual void decided(double) {}
  virtual bool interrupted() const = 0;
};

// For a computation that nobody watches: never stops it.
class NoProgressMonitor final : public ProgressMonitor {
 public:
  void begin(std::string) override {}
  bool stopped(Time, double) override { return false; }
  bool interrupted() const override { return false; }
};

}  // namespace trellis::sim
