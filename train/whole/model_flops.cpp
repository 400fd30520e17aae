#include "train/whole/model_flops.h"

namespace trellis::train {

int passes_of_model(const StepConfig& c) { return c.lora.rank > 0 ? 2 : 3; }

double model_flops(const RankStep& step) {
  double forward = 0;
  for (const StageCosts& chunk : step.costs) forward += static_cast<double>(chunk.forward);
  return forward * static_cast<double>(step.micro_batches) * passes_of_model(step.config);
}

}  // namespace trellis::train
