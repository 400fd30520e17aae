// Bounds of layouts: how long a step takes at least, and how much memory. Layouts whose stages do the same share what
// is known of them: a model of one layer a stage and one of two are laid out for each kind of stage, and what a layer
// more takes is what tells them apart.
#pragma once

#include <memory>

#include "tools/layouts/layout.h"

namespace trellis::tools {

struct LayoutBound {
  sim::Time time = 0;  // computation and tensor exchanges alone, and the pipeline's filling and draining
  double memory = 0;   // of a rank, in bytes
};

// Thread-safe. What it is made from must outlive it.
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
