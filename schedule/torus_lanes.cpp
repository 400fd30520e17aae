#include "schedule/torus_lanes.h"

#include <fmt/format.h>

#include <limits>

namespace trellis::schedule {
namespace {

constexpr std::int64_t most_lanes = 256;

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
                     .blocks = by_block(r.collective),
                     .index = index,
                     .lanes = count,
                     .segments = r.segments,
                     .ranks = r.ranks()});
  return lanes;
}

std::string refuses_torus_lanes(const Request& r) {
  const std::int64_t lanes = count_lanes(r);
  if (lanes > most_lanes)
    return fmt::format("{} channels in {} dimensions make {} lanes: expected at most {}", r.channels,
                       linked(r.dims).size(), lanes, most_lanes);
  if (const std::int64_t chunks = lanes * r.segments * r.ranks(); chunks > std::numeric_limits<std::int32_t>::max())
    return fmt::format("{} lanes of {} segments for {} ranks make {} chunks: expected at most {}", lanes, r.segments,
                       r.ranks(), chunks, std::numeric_limits<std::int32_t>::max());
  return "";
}

std::int32_t torus_pieces(const Request& r) {
  return static_cast<std::int32_t>(count_lanes(r) * r.segments * (by_block(r.collective) ? 1 : r.ranks()));
}

}  // namespace trellis::schedule
