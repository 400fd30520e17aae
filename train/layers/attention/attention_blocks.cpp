#include "train/layers/attention/attention_blocks.h"

#include "kernels/reduce/cast.h"

namespace trellis::train {

void drop(const float* from, float* to, const HeadView& h, const ProbabilityBlock& b, const ProbabilityDropout& d) {
  const auto below = static_cast<std::uint32_t>(d.rate * 65536);
  const auto scale = static_cast<float>(1 / (1 - d.rate));
  const std::uint64_t head = (h.sequence * d.heads + d.first_head + h.number) * b.whole;
  for (std::size_t q = 0; q < b.queries; ++q)
    for (std::size_t k = 0; k < b.keys; ++k) {
      const std::uint64_t index = (head + b.query + q) * b.whole + b.key + k;
      const std::size_t i = q * b.keys + k;
      to[i] = kernels::random16(d.key, index) < below ? 0.0F : from[i] * scale;
    }
}

const void* as_factor(kernels::DType type, const float* block, std::size_t n, void* room) {
  if (type == kernels::DType::f32) return block;
  kernels::cast(kernels::DType::f32, block, type, room, n);
  return room;
}

}  // namespace trellis::train
