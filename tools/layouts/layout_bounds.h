// Bounds of layouts: the least time of a step, and its least memory. Layouts whose stages do the same share results:
// for each kind of stage, models with one and with two layers a stage are laid out, and their difference is what each
// further layer takes.
#pragma once

#include <memory>

#include "tools/layouts/step_layout.h"

namespace trellis::tools {

struct LayoutBound {
  sim::Time time = 0;  // the least time: computation, tensor exchanges, the pipeline's filling and draining
  double memory = 0;   // the least memory of the rank that needs most, in bytes
};

// Thread-safe. The arguments of the constructor must outlive it.
class LayoutBounds {
 public:
  LayoutBounds(const train::StepConfig&, const sim::Machine&, const sim::StepOptions&);
  ~LayoutBounds();

  LayoutBound of(const StepLayout&) const;

  class Known;

 private:
  const train::StepConfig& config_;
  const sim::Machine& machine_;
  const sim::StepOptions& options_;
  std::unique_ptr<Known> known_;
};

}  // namespace trellis::tools
