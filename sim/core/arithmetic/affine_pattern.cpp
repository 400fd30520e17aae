#include "sim/core/arithmetic/affine_pattern.h"

namespace trellis::sim::core {

AffinePattern::AffinePattern(const BoundInstruction& call, const View& shape)
    : shape_(shape),
      start_(static_cast<std::int64_t>(call.number(Key::start))),
      row_step_(static_cast<std::int64_t>(call.number(Key::rows))) {
  constexpr Key keys[] = {Key::step, Key::step1, Key::step2, Key::step3};
  std::int64_t step = static_cast<std::int64_t>(call.number(Key::step, 1));
  const bool by_dimension = call.has(Key::step1) || call.has(Key::step2) || call.has(Key::step3);
  for (int d = shape.dims - 1, outwards = 0; d >= 0; --d, ++outwards) {
    const auto at = static_cast<std::size_t>(d);
    if (by_dimension && outwards > 0) step = static_cast<std::int64_t>(call.number(keys[outwards]));
    steps_[at] = step;
    if (!by_dimension) step *= shape.dim[at].count;
  }
}

void AffinePattern::row(std::int64_t row, std::int64_t* to) const {
  const int last = shape_.dims - 1;
  const Dim inner = shape_.dim[static_cast<std::size_t>(last)];
  const std::int64_t outer = shape_.elements() / inner.count;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::int64_t value = start_ + row * row_step_, rest = o;
    for (int d = last - 1; d >= 0; --d) {
      const auto at = static_cast<std::size_t>(d);
      value += rest % shape_.dim[at].count * steps_[at];
      rest /= shape_.dim[at].count;
    }
    for (std::int32_t i = 0; i < inner.count; ++i) *to++ = value + i * steps_[static_cast<std::size_t>(last)];
  }
}

}  // namespace trellis::sim::core
