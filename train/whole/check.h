// The proof of a step: its graph is matched, and the ranks of a stage do the same.
#pragma once

#include <string>
#include <vector>

#include "schedule/graph/graph.h"
#include "train/whole/step.h"

namespace trellis::train {

// One rank of each class: of each stage the first one and then, where tensor ranks do not all have as many heads, of
// each stage the first that has fewer, as of the vocabulary. Ranks of a class differ in which part of a tensor they
// have, not in what they do; check_classes holds the last ranks of classes against this. `cached`, `order`: as in
// lay_out.
std::vector<RankStep> classes_of(const StepConfig&, Rank world, Purpose = Purpose::train, std::size_t cached = 0,
                                 const PipelineSchedule* order = nullptr);

// The index of a rank's class in what classes_of gives.
std::size_t class_of(const StepConfig&, const Mesh&, Rank);

// Empty, or the stage and first operation in which two ranks of one class differ in what they exchange.
// `like`: by class, the one whose program it has as well, if it was not laid out itself; empty: all were.
std::string check_classes(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                          const PipelineSchedule* order = nullptr, const std::vector<std::size_t>& like = {});

// Empty, or the fault of the classes' graph (schedule/graph/match.h), or of the classes themselves.
std::string check_step(const StepConfig&, Rank world, const std::vector<RankStep>& classes,
                       const schedule::ExecutionGraph&);

}  // namespace trellis::train
