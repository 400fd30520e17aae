#include "schedule/symmetry.h"

namespace trellis::schedule {
namespace {

constexpr bool alike(const SymmetryAxis& axis) { return axis.kind != SymmetryAxis::Kind::distinct; }

}  // namespace

Rank Symmetry::ranks() const {
  Rank n = 1;
  for (const SymmetryAxis& axis : axes) n *= axis.size;
  return n;
}

Rank Symmetry::classes() const {
  Rank n = 1;
  for (const SymmetryAxis& axis : axes) n *= alike(axis) ? 1 : axis.size;
  return n;
}

Rank Symmetry::representative(Rank rank) const {
  Rank found = 0, stride = 1;
  for (const SymmetryAxis& axis : axes) {
    if (!alike(axis)) found += rank % axis.size * stride;
    rank /= axis.size;
    stride *= axis.size;
  }
  return found;
}

std::vector<Rank> Symmetry::representatives() const {
  std::vector<Rank> found{0};
  Rank stride = 1;
  for (const SymmetryAxis& axis : axes) {
    const std::size_t inner = found.size();
    for (Rank at = 1; !alike(axis) && at < axis.size; ++at)
      for (std::size_t i = 0; i < inner; ++i) found.push_back(found[i] + at * stride);
    stride *= axis.size;
  }
  return found;
}

Rank Symmetry::image(Rank from, Rank to, Rank other) const {
  Rank renamed = 0, stride = 1;
  for (const SymmetryAxis& axis : axes) {
    const Rank a = from % axis.size, b = to % axis.size, x = other % axis.size;
    Rank y = x;
    if (axis.kind == SymmetryAxis::Kind::rotate)
      y = static_cast<Rank>((std::int64_t{x} + b - a + axis.size) % axis.size);
    if (axis.kind == SymmetryAxis::Kind::flip) y = x ^ a ^ b;
    renamed += y * stride;
    from /= axis.size, to /= axis.size, other /= axis.size;
    stride *= axis.size;
  }
  return renamed;
}

}  // namespace trellis::schedule
