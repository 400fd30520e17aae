#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/cluster/workload/play.h"

namespace trellis::sim {
namespace {

// "rank 5", "ranks 0 to 3", "ranks 0, 4 and 2 more"
std::string cell_name(const Workload& workload, const EquivalentRanks& cell) {
  const auto& ranks = cell.ranks;
  const auto count = static_cast<Rank>(ranks.size());
  if (count == workload.graph->ranks) return "all ranks";
  if (count == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.back() - ranks.front() + 1 == count) return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  if (count == 2) return fmt::format("ranks {} and {}", ranks[0], ranks[1]);
  return fmt::format("ranks {}, {} and {} more", ranks[0], ranks[1], count - 2);
}

bool takes_part(const WorkloadTask& part, std::uint32_t cell) { return std::ranges::binary_search(part.cells, cell); }

std::string label_of(const Workload& workload, const WorkloadTask& part, const PlayedTask& played) {
  if (part.computes) return part.task->name;
  return fmt::format("{}: {}{}{}", part.task->name, text(workload, part), played.algorithm.empty() ? "" : " by ",
                     played.algorithm);
}

}  // namespace

// A row for each stream of each cell. A collective has a span in the rows of each of its cells.
Timeline timeline_of(const Workload& workload, const PlayResult& played) {
  Timeline timeline;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> tracks;
  const auto stream = [&](const WorkloadTask& part) { return workload.graph->streams[part.task->stream].name; };
  for (const WorkloadTask& part : workload.parts)
    for (std::uint32_t cell : part.cells) tracks.try_emplace({cell, stream(part)}, 0);
  for (auto& [key, track] : tracks) track = timeline.track(cell_name(workload, workload.cells[key.first]), key.second);
  std::vector<std::int64_t> first_span(workload.parts.size());
  const auto span_on = [&](std::uint32_t number, std::uint32_t cell) {
    const WorkloadTask& part = workload.parts[number];
    const auto at = std::ranges::lower_bound(part.cells, cell);
    return first_span[number] + (takes_part(part, cell) ? at - part.cells.begin() : 0);
  };
  for (std::uint32_t i = 0; i < workload.parts.size(); ++i) {
    const WorkloadTask& part = workload.parts[i];
    const PlayedTask& when = played.parts[i];
    first_span[i] = std::ssize(timeline.spans);
    const std::uint32_t label = timeline.label_of(label_of(workload, part, when));
    for (std::uint32_t cell : part.cells) {
      Span span{.track = tracks.at({cell, stream(part)}), .label = label, .start = when.start, .end = when.end};
      for (std::uint32_t before : part.after)
        if (takes_part(workload.parts[before], cell)) span.ready = std::max(span.ready, played.parts[before].end);
      if (when.cause >= 0) span.cause = span_on(static_cast<std::uint32_t>(when.cause), cell);
      if (span.ready < when.start) span.wait = WaitReason::peer;
      span.bytes = part.task->bytes, span.flops = part.task->flops;
      timeline.add(span);
    }
  }
  return timeline;
}

}  // namespace trellis::sim
