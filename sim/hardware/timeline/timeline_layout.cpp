#include "sim/hardware/timeline/timeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "text/refuse.h"

namespace trellis::sim {
namespace {

void check(const Timeline& timeline) {
  for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
    const Span& s = timeline.spans[i];
    if (s.track >= timeline.tracks.size())
      text::refuse("span {} is on track {}: expected below {}", i, s.track, timeline.tracks.size());
    if (s.label >= timeline.labels().size())
      text::refuse("span {} has label {}: expected below {}", i, s.label, timeline.labels().size());
    if (s.ready < 0 || s.start < s.ready || s.end < s.start || timeline.end < s.end)
      text::refuse("span {} is ready at {}, starts at {} and ends at {} ps of {}: expected this order", i, s.ready,
                   s.start, s.end, timeline.end);
    if (!std::isfinite(s.bytes) || !std::isfinite(s.flops))
      text::refuse("span {} has {} bytes and {} flops", i, s.bytes, s.flops);
    if (s.cause < -1 || s.cause >= static_cast<std::int64_t>(timeline.spans.size()))
      text::refuse("span {} has cause {}: expected -1 to {}", i, s.cause, timeline.spans.size() - 1);
  }
  for (const Sample& s : timeline.samples)
    if (s.counter >= timeline.counters.size() || s.time < 0 || !std::isfinite(s.value))
      text::refuse("a sample of counter {} of {} is {} at {} ps", s.counter, timeline.counters.size(), s.value, s.time);
}

class Groups {
 public:
  explicit Groups(std::vector<std::string>& names) : names_(names) {}
  std::uint32_t of(const Track& track) {
    const auto [found, added] = numbers_.try_emplace(track.group, static_cast<std::uint32_t>(names_.size()));
    if (added) names_.push_back(track.group);
    return found->second;
  }

 private:
  std::vector<std::string>& names_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

}  // namespace

TimelineLayout rows_of(const Timeline& timeline) {
  check(timeline);
  TimelineLayout result;
  Groups groups(result.groups);
  std::vector<std::uint32_t> group_of, tracks(timeline.tracks.size());
  for (const Track& track : timeline.tracks) group_of.push_back(groups.of(track));
  for (const Track& counter : timeline.counters) result.counter_groups.push_back(groups.of(counter));
  std::iota(tracks.begin(), tracks.end(), 0U);
  std::ranges::stable_sort(tracks, {}, [&](std::uint32_t t) { return group_of[t]; });
  std::vector<std::uint32_t> place(tracks.size());
  for (std::uint32_t i = 0; i < tracks.size(); ++i) place[tracks[i]] = i;

  const std::vector<Span>& spans = timeline.spans;
  result.order.resize(spans.size());
  std::iota(result.order.begin(), result.order.end(), 0U);
  const auto key = [&](std::uint32_t s) { return std::tuple(place[spans[s].track], spans[s].start, spans[s].end, s); };
  std::ranges::sort(result.order, {}, key);

  // Each span goes to the first row of its track that is free.
  result.row_of.resize(spans.size());
  std::vector<Time> free_at;
  auto next = result.order.begin();
  for (const std::uint32_t track : tracks) {
    const auto first = static_cast<std::uint32_t>(result.rows.size());
    free_at.assign(1, 0);
    for (; next != result.order.end() && spans[*next].track == track; ++next) {
      const auto lane = std::ranges::find_if(free_at, [&](Time t) { return t <= spans[*next].start; });
      result.row_of[*next] = first + static_cast<std::uint32_t>(lane - free_at.begin());
      if (lane == free_at.end())
        free_at.push_back(spans[*next].end);
      else
        *lane = spans[*next].end;
    }
    for (std::uint32_t lane = 0; lane < free_at.size(); ++lane) result.rows.push_back({group_of[track], track, lane});
  }
  std::ranges::stable_sort(result.order, {}, [&](std::uint32_t s) { return result.row_of[s]; });
  return result;
}

std::string row_name(const Timeline& timeline, const TimelineRow& row) {
  const std::string& name = timeline.tracks[row.track].name;
  return row.lane == 0 ? name : fmt::format("{} ({})", name, row.lane + 1);
}

}  // namespace trellis::sim
