// The proof of a step: what ranks exchange matches in order, kind, type and count, and nobody waits in a circle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/whole/step.h"

namespace trellis::train {

// One rank of each stage: those with tensor and data place 0. Ranks of a stage differ in which part of a tensor they
// have, not in what they do; check_classes holds the corners of the mesh against this.
std::vector<Step> stages_of(const Config&, Rank world);

// Runs the stages' programs against each other, each exchange with all its ends there at once (rendezvous). Exchanges
// within a stage are ended as they are met. Empty, or the fault: the stage, the operation, and what the other end does.
std::string check_pipeline(const std::vector<const Program*>& stages);

// The same, and says of each operation, in an order in which they can be done, that it is done: its stage and number.
// Of a message the sender's end is said, of an exchange among stages the first stage's.
using Visit = std::function<void(std::size_t stage, std::size_t operation)>;
std::string walk_pipeline(const std::vector<const Program*>& stages, const Visit&);

// Empty, or the stage and first operation in which two ranks of one stage differ in what they exchange.
std::string check_classes(const Config&, Rank world, const std::vector<Step>& stages);

// Both.
std::string check_step(const Config&, Rank world, const std::vector<Step>& stages);

}  // namespace trellis::train
