// What a step trains on.
#pragma once

#include <cstdint>
#include <vector>

#include "train/whole/job.h"

namespace trellis::train {

// The data of one step and this data-parallel rank: for each micro-batch, its tokens and labels, one sample after the
// other.
struct Batch {
  std::int64_t step = 0;
  std::vector<std::vector<std::int32_t>> tokens, labels;
  std::vector<std::vector<std::int32_t>> types, next;  // of models of pairs
  std::vector<std::vector<std::int32_t>> starts;       // of cut attention

  MicroBatch micro(std::size_t m) const {
    const auto of = [&](const auto& all) { return all.empty() ? nullptr : all[m].data(); };
    return {of(tokens), of(labels), of(types), of(next), of(starts)};
  }
};

}  // namespace trellis::train
