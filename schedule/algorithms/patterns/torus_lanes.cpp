#include "schedule/algorithms/patterns/torus_lanes.h"

#include <algorithm>

#include <fmt/format.h>

namespace trellis::schedule {
namespace {

std::int64_t count_lanes(const Request& r) { return 2 * static_cast<std::int64_t>(linked(r.dims).size()) * r.channels; }

}  // namespace

std::vector<Rank> linked(const std::vector<Rank>& dims) {
  std::vector<Rank> some;
  std::ranges::copy_if(dims, std::back_inserter(some), [](Rank size) { return size > 1; });
  return some.empty() ? std::vector<Rank>{1} : some;
}

std::vector<TorusLane> torus_lanes(const Request& r) {
  std::vector<TorusLane> lanes;
  const auto count = static_cast<std::int32_t>(count_lanes(r));
  for (std::int32_t index = 0; index < count; ++index)
    lanes.push_back({.first_axis = index / 2 % linked(r.dims).size(),
                     .backward = index % 2 == 1,
                     .blocks = by_block(r.operation.collective),
                     .index = index,
                     .lanes = count,
                     .segments = r.segments,
                     .ranks = r.ranks()});
  return lanes;
}

std::string refuses_other_sides(const std::vector<Rank>& dims) {
  for (Rank size : dims)
    if ((size & (size - 1)) != 0) return fmt::format("a dimension of {}: expected powers of two", size);
  return "";
}

std::string refuses_torus_lanes(const Request& r) {
  const std::int64_t lanes = count_lanes(r);
  if (lanes > most_channels)
    return fmt::format("{} channels in {} dimensions make {} lanes: expected at most {}", r.channels,
                       linked(r.dims).size(), lanes, most_channels);
  return "";
}

std::int64_t torus_pieces(const Request& r) {
  return count_lanes(r) * r.segments * (by_block(r.operation.collective) ? 1 : r.ranks());
}

Symmetry even_shifts(const std::vector<Rank>& dims) {
  Symmetry all;
  for (Rank size : dims) {
    all.axes.push_back({SymmetryAxis::Kind::distinct, size > 1 ? 2 : 1});
    all.axes.push_back({SymmetryAxis::Kind::rotate, size > 1 ? size / 2 : 1});
  }
  return all;
}

}  // namespace trellis::schedule
