// The proof of a step: every exchange has all its ends, and all ranks of a class do the same.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/execution_graph.h"
#include "train/whole/rank_step.h"

namespace trellis::train {

// The steps of one rank of each class: first the first rank of each stage; then, if tensor ranks differ in how many
// heads or vocabulary entries they have, the first rank of each stage with other numbers. Ranks of a class differ in
// which part of a tensor they have, not in what they do; check_classes compares each class's last rank with this one.
// `cached`, `order`: as in lay_out.
std::vector<RankStep> classes_of(const StepConfig&, Rank world, StepPurpose = StepPurpose::train,
                                 std::size_t cached = 0, const PipelineSchedule* order = nullptr);

// The index of a rank's class in what classes_of gives.
std::size_t class_of(const StepConfig&, const Mesh&, Rank);

// Returns the stage and first operation in which two ranks of one class differ in what they exchange; empty: none do.
// `like`: by class, the class that was laid out in its place, or itself; empty: all were laid out.
std::string check_classes(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                          const PipelineSchedule* order = nullptr, const std::vector<std::size_t>& like = {});

// Empty, or the fault of the classes' graph (schedule/graph/match_exchanges.h), or of the classes themselves.
std::string check_step(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                       const schedule::ExecutionGraph&);

}  // namespace trellis::train
