// Which of the collective's data each step carries, followed through every buffer.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "schedule/proof/step_wiring.h"

namespace trellis::tools::draw {

// One chunk of data, by its number in the larger buffer. The source distinguishes chunks of the same number on several
// ranks; -1: the chunk is the same data, or part of one sum, on any rank. Chunk -1 is no data.
struct TrackedChunk {
  schedule::Rank source = -1;
  std::int64_t chunk = -1;
  auto operator<=>(const TrackedChunk&) const = default;
};

class StepContents {
 public:
  // Precondition: the schedule runs to its end, and its slices exist.
  StepContents(const schedule::Schedule&, const schedule::StepWiring&);
  std::span<const TrackedChunk> of(schedule::StepId step) const { return {data_.data() + first_[step], count_[step]}; }

 private:
  std::vector<std::size_t> first_;
  std::vector<std::uint32_t> count_;
  std::vector<TrackedChunk> data_;
};

std::int64_t block(const schedule::Task&, const TrackedChunk&);  // the block that the datum's colour stands for
std::string block_meaning(const schedule::Task&);                // "block", "destination", ...
// What the numbers on labels are: "the numbers of its chunks".
std::string label_meaning(const schedule::Task&);
std::string label_example(const schedule::Task&);                         // "3"
std::string label(const schedule::Task&, std::span<const TrackedChunk>);  // "3", "4–7", "2→5 +3"

}  // namespace trellis::tools::draw
