#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/hardware/report/html_parts.h"

namespace trellis::sim {
namespace {

using Json = nlohmann::ordered_json;

// Merges spans that lie within one bin of a row's time into one block. Longer spans stay single.
std::vector<MergedSpan> binned(const Timeline& timeline, const TimelineLayout& rows, Time bin) {
  std::vector<MergedSpan> blocks;
  for (const std::uint32_t index : rows.order) {
    const Span& s = timeline.spans[index];
    const std::uint32_t row = rows.row_of[index];
    if (bin > 0 && !blocks.empty()) {
      MergedSpan& last = blocks.back();
      if (last.row == row && last.start / bin == s.end / bin) {
        last.end = s.end;
        last.busy += s.end - s.start;
        ++last.count;
        continue;
      }
    }
    blocks.push_back({row, index, 1, s.start, s.end, s.end - s.start});
  }
  return blocks;
}

// Thins out samples that cannot be told apart: keeps the lowest and highest of each bin, and the last sample.
std::vector<Sample> thinned(const std::vector<Sample>& samples, Time end) {
  constexpr std::size_t most = 20'000;
  if (samples.size() <= most) return samples;
  const Time bin = end / static_cast<Time>(most / 4) + 1;
  std::vector<Sample> kept;
  for (auto at = samples.begin(); at != samples.end();) {
    const auto next = std::find_if(at, samples.end(), [&](const Sample& s) { return s.time / bin != at->time / bin; });
    const auto [low, high] = std::minmax_element(at, next, [](auto& a, auto& b) { return a.value < b.value; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
    if (std::max(low, high) != next - 1) kept.push_back(*(next - 1));
    at = next;
  }
  return kept;
}

Json counters(const Timeline& timeline, const TimelineLayout& rows) {
  std::vector<std::vector<Sample>> samples(timeline.counters.size());
  for (const Sample& s : timeline.samples) samples[s.counter].push_back(s);
  Json all = Json::array();
  for (std::size_t c = 0; c < samples.size(); ++c) {
    std::ranges::stable_sort(samples[c], {}, &Sample::time);
    const std::vector<Sample> kept = thinned(samples[c], timeline.end);
    std::vector<Time> times;
    std::vector<double> values;
    for (const Sample& s : kept) times.push_back(s.time), values.push_back(s.value);
    const bool all_kept = kept.size() == samples[c].size();
    all.push_back({{"group", rows.counter_groups[c]},
                   {"name", timeline.counters[c].name + (all_kept ? "" : " (thinned)")},
                   {"times", times},
                   {"values", values}});
  }
  return all;
}

}  // namespace

MergedSpans blocks_of(const Timeline& timeline, const TimelineLayout& rows, std::size_t most) {
  MergedSpans result;
  result.blocks = binned(timeline, rows, 0);
  // Each row has at least one block. With one block a row, wider bins change nothing.
  while (result.blocks.size() > most && result.shorter <= timeline.end) {
    result.shorter = result.shorter == 0 ? std::max<Time>(1, timeline.end >> 30) : 2 * result.shorter;
    result.blocks = binned(timeline, rows, result.shorter);
  }
  result.of.resize(timeline.spans.size());
  auto next = rows.order.begin();
  for (std::uint32_t b = 0; b < result.blocks.size(); ++b) {
    const std::uint32_t count = result.blocks[b].count;
    if (count > 1) result.merged += count;
    for (std::uint32_t i = 0; i < count; ++i) result.of[*next++] = b;
  }
  return result;
}

std::string report_data(const Timeline& timeline, const TimelineLayout& rows, const MergedSpans& blocks,
                        const Summary& summary) {
  Json data = {{"end", timeline.end}, {"groups", rows.groups}, {"labels", timeline.labels()}};
  for (std::size_t w = 0; w < wait_count; ++w) data["waits"].push_back(name(static_cast<WaitReason>(w)));
  data["rows"] = Json::array();
  for (const TimelineRow& row : rows.rows)
    data["rows"].push_back({{"group", row.group}, {"name", row_name(timeline, row)}});
  // A block begins `gap` after the end of the block before it in its row.
  std::vector<std::size_t> first(rows.rows.size() + 1);
  std::vector<Time> gap, duration, waited;
  std::vector<std::uint32_t> label, wait;
  std::vector<std::int64_t> cause;
  std::vector<double> bytes, flops;
  Json merged = Json::array();
  Time before = 0;
  for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
    const MergedSpan& block = blocks.blocks[b];
    const Span& s = timeline.spans[block.span];
    if (b == 0 || blocks.blocks[b - 1].row != block.row) before = 0;
    ++first[block.row + 1];
    gap.push_back(block.start - before);
    duration.push_back(block.end - block.start);
    before = block.end;
    const bool alone = block.count == 1;
    label.push_back(s.label);
    wait.push_back(alone ? static_cast<std::uint32_t>(s.wait) : 0);
    waited.push_back(alone && s.wait != WaitReason::none ? s.start - s.ready : 0);
    cause.push_back(alone && s.cause >= 0 ? std::int64_t{blocks.of[s.cause]} : -1);
    bytes.push_back(alone ? s.bytes : 0);
    flops.push_back(alone ? s.flops : 0);
    if (!alone) merged.push_back({b, block.count, block.busy});
  }
  for (std::size_t r = 1; r < first.size(); ++r) first[r] += first[r - 1];
  std::vector<std::uint32_t> critical;  // in order of time
  std::vector<bool> seen(blocks.blocks.size());
  for (const CriticalPathPiece& piece : summary.path) {
    if (piece.span < 0 || seen[blocks.of[piece.span]]) continue;
    seen[blocks.of[piece.span]] = true;
    critical.push_back(blocks.of[piece.span]);
  }
  data["first"] = first;
  data["gap"] = gap;
  data["duration"] = duration;
  data["label"] = label;
  data["wait"] = wait;
  data["waited"] = waited;
  data["cause"] = cause;
  data["bytes"] = bytes;
  data["flops"] = flops;
  data["merged"] = merged;
  data["critical"] = critical;
  data["counters"] = counters(timeline, rows);
  std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace), safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;  // a label must not close the script element
  return safe;
}

}  // namespace trellis::sim
