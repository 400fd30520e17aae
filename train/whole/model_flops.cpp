#include "train/whole/model_flops.h"

namespace trellis::train {

int passes_of_model(const StepConfig& c) { return c.lora.rank > 0 ? 2 : 3; }

double model_flops(const RankStep& step) { return step.model_flops * passes_of_model(step.config); }

}  // namespace trellis::train
