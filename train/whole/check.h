// The proof of a step: its plan is matched, and the ranks of a stage do the same.
#pragma once

#include <string>
#include <vector>

#include "schedule/plan/plan.h"
#include "train/whole/step.h"

namespace trellis::train {

// One rank of each stage: those with tensor and data place 0. Ranks of a stage differ in which part of a tensor they
// have, not in what they do; check_classes holds the corners of the mesh against this.
std::vector<Step> stages_of(const Config&, Rank world, Purpose = Purpose::train);

// Empty, or the stage and first operation in which two ranks of one stage differ in what they exchange.
std::string check_classes(const Config&, Rank world, const std::vector<Step>& stages);

// Empty, or the fault of the stages' plan (schedule/plan/match.h), or of its classes.
std::string check_step(const Config&, Rank world, const std::vector<Step>& stages, const schedule::Plan&);

}  // namespace trellis::train
