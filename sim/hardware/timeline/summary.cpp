#include "sim/hardware/timeline/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "sim/hardware/timeline/timeline_layout.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

static_assert(wait_count == static_cast<std::size_t>(WaitReason::link) + 1);

std::vector<TrackUse> uses(const Timeline& timeline, const TimelineLayout& rows) {
  std::vector<TrackUse> uses(timeline.tracks.size());
  for (std::uint32_t t = 0; t < uses.size(); ++t) uses[t].track = t;
  std::vector<std::uint32_t> order = rows.order;
  if (rows.rows.size() > timeline.tracks.size())  // a track has several rows, so its spans must be sorted by time
    std::ranges::stable_sort(
        order, {}, [&](std::uint32_t s) { return std::tuple(timeline.spans[s].track, timeline.spans[s].start); });
  std::vector<Time> until(uses.size());
  for (const std::uint32_t index : order) {
    const Span& s = timeline.spans[index];
    TrackUse& use = uses[s.track];
    Time& end = until[s.track];
    if (s.start > end && s.wait != WaitReason::none) {
      const Time stalled = s.start - std::max(end, s.ready);
      use.stalled += stalled;
      use.stalled_by[static_cast<std::size_t>(s.wait)] += stalled;
    }
    use.busy += std::max<Time>(0, s.end - std::max(end, s.start));
    end = std::max(end, s.end);
    ++use.spans;
    use.bytes += s.bytes;
    use.flops += s.flops;
  }
  for (TrackUse& use : uses) use.idle = timeline.end - use.busy - use.stalled;
  return uses;
}

RooflinePoint placed(const BandwidthRoof& roof, const Summary& summary) {
  RooflinePoint p{.roof = roof};
  if (!(roof.bytes_per_second > 0))
    text::refuse("roof '{}' of {} B/s: expected more than 0", roof.name, roof.bytes_per_second);
  if (roof.tracks.empty()) p.bytes = summary.bytes;
  for (const std::uint32_t t : roof.tracks) {
    if (t >= summary.tracks.size())
      text::refuse("roof '{}' has track {}: expected below {}", roof.name, t, summary.tracks.size());
    p.bytes += summary.tracks[t].bytes;
  }
  const double seconds = in_seconds(summary.end);
  if (seconds > 0) p.bandwidth = p.bytes / seconds;
  if (seconds > 0) p.attained = summary.flops / seconds;
  if (p.bytes > 0) p.intensity = summary.flops / p.bytes;
  const double by_memory = p.intensity * roof.bytes_per_second;
  p.memory_bound = p.bytes > 0 && (summary.peak_flops == 0 || by_memory < summary.peak_flops);
  p.attainable = p.memory_bound ? by_memory : summary.peak_flops;
  return p;
}

std::vector<CriticalPathTotal> parts_of(const Timeline& timeline, const std::vector<CriticalPathPiece>& path) {
  using Kind = std::tuple<bool, std::uint32_t, bool, WaitReason>;  // unknown, track, waiting, wait
  std::map<Kind, CriticalPathTotal> parts;
  std::map<Kind, std::map<std::uint32_t, Time>> labels;
  for (const CriticalPathPiece& piece : path) {
    CriticalPathTotal part{.unknown = piece.span < 0};
    std::uint32_t label = 0;
    if (piece.span >= 0) {
      const Span& s = timeline.spans[piece.span];
      part.track = s.track;
      part.waiting = piece.waiting;
      part.wait = piece.waiting ? s.wait : WaitReason::none;
      label = s.label;
    }
    const Kind kind{part.unknown, part.track, part.waiting, part.wait};
    CriticalPathTotal& sum = parts.try_emplace(kind, part).first->second;
    sum.time += piece.end - piece.start;
    ++sum.pieces;
    labels[kind][label] += piece.end - piece.start;
  }
  std::vector<CriticalPathTotal> result;
  for (auto& [kind, part] : parts) {
    const auto& times = labels[kind];
    part.label = std::ranges::max_element(times, {}, [](const auto& t) { return t.second; })->first;
    part.labels = times.size();
    if (part.time > 0) result.push_back(part);
  }
  std::ranges::stable_sort(result, std::greater{}, &CriticalPathTotal::time);
  return result;
}

}  // namespace

Summary summarize(const Timeline& timeline, const HardwarePeaks& peaks) {
  if (!std::isfinite(peaks.flops_per_second) || peaks.flops_per_second < 0)
    text::refuse("a peak of {} flops a second", peaks.flops_per_second);
  const TimelineLayout rows = rows_of(timeline);
  Summary summary{.end = timeline.end, .spans = timeline.spans.size(), .peak_flops = peaks.flops_per_second};
  summary.tracks = uses(timeline, rows);
  for (const TrackUse& use : summary.tracks) {
    summary.bytes += use.bytes;
    summary.flops += use.flops;
  }
  for (const BandwidthRoof& roof : peaks.roofs) summary.roofline.push_back(placed(roof, summary));
  summary.path = critical_path(timeline);
  summary.parts = parts_of(timeline, summary.path);
  return summary;
}

}  // namespace trellis::sim
