#include "tools/schedule/draw/step_contents.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/collective_traits.h"
#include "schedule/proof/reference_interpreter.h"

namespace trellis::tools::draw {
namespace {

using namespace schedule;
using enum Collective;

TrackedChunk input_datum(const Task& t, Rank rank, std::int64_t chunk) {
  switch (t.operation.collective) {
    case all_gather:
    case all_gather_v:
    case gather:
      return {-1, std::int64_t{rank} * t.pieces + chunk};
    case all_to_all:
    case all_to_all_v:
    case permute:
      return {rank, chunk};
    default:
      return {-1, chunk};
  }
}

std::string arrow(const Task& t, const TrackedChunk& d) {
  const std::string ends = fmt::format("{}→{}", d.source, d.chunk / t.pieces);
  return t.pieces == 1 ? ends : fmt::format("{}.{}", ends, d.chunk % t.pieces);
}

}  // namespace

StepContents::StepContents(const Schedule& s, const StepWiring& wiring)
    : first_(wiring.count()), count_(wiring.count()) {
  auto memory = memory_of<TrackedChunk>(s, [&](Rank r, std::int64_t chunk) { return input_datum(s.task, r, chunk); });
  const ScheduleMemoryView<TrackedChunk> view(s, wiring, memory);
  const auto record = [&](StepId id, StepId receive) {
    const Slice& from = view.step(id).from;
    first_[id] = data_.size();
    count_[id] = static_cast<std::uint32_t>(from.count);
    for (std::int32_t i = 0; i < from.count; ++i) data_.push_back(view.cell(wiring.rank(id), from, i));
    if (receive != StepWiring::none) first_[receive] = first_[id], count_[receive] = count_[id];
  };
  interpret(
      s, wiring, memory, [](std::span<const TrackedChunk* const> parts) { return *parts.back(); }, record);
}

std::int64_t block(const Task& t, const TrackedChunk& d) {
  if (d.chunk < 0) return 0;
  if (t.operation.collective == permute) return d.source;
  if (by_block(t.operation.collective)) return d.chunk / t.pieces;
  // A whole buffer that is cut evenly among the ranks is shown as one share for each.
  const std::int64_t shares = t.ranks > 1 && t.pieces % t.ranks == 0 ? t.ranks : t.pieces;
  return d.chunk / (t.pieces / shares);
}

std::string block_meaning(const Task& t) {
  if (traits(t.operation.collective).by_pair) return "to rank";
  if (t.operation.collective == permute) return "from rank";
  if (by_block(t.operation.collective)) return "block";
  return t.ranks > 1 && t.pieces % t.ranks == 0 && t.pieces > t.ranks ? "share" : "chunk";
}

std::string label_meaning(const Task& t) {
  if (!traits(t.operation.collective).by_pair) return "the numbers of its chunks";
  return t.pieces == 1 ? "its chunk, from rank → to rank" : "its chunk, from rank → to rank, and which part";
}

std::string label_example(const Task& t) {
  return traits(t.operation.collective).by_pair ? arrow(t, {0, t.pieces}) : "3";
}

std::string label(const Task& t, std::span<const TrackedChunk> data) {
  if (data.empty() || data.front().chunk < 0) return "";
  if (traits(t.operation.collective).by_pair)
    return data.size() == 1 ? arrow(t, data[0]) : fmt::format("{} +{}", arrow(t, data[0]), data.size() - 1);
  std::string text;
  for (std::size_t i = 0, end = 0; i < data.size(); i = end) {
    for (end = i + 1; end < data.size() && data[end].chunk == data[end - 1].chunk + 1;) ++end;
    if (!text.empty() && text.size() > 5 && end < data.size()) return text + fmt::format(" +{}", data.size() - i);
    const std::int64_t first = data[i].chunk, last = data[end - 1].chunk;
    text += text.empty() ? "" : ",";
    text += first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last);
  }
  return text;
}

}  // namespace trellis::tools::draw
