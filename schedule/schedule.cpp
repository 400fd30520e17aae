#include "schedule/schedule.h"

#include <algorithm>

#include "text/words.h"

namespace trellis::schedule {

void Program::set_after(Step& step, std::span<const std::int32_t> earlier) {
  step.after = {static_cast<std::uint32_t>(befores.size()), static_cast<std::uint32_t>(earlier.size())};
  befores.insert(befores.end(), earlier.begin(), earlier.end());
}

void Program::set_further(Step& step, std::span<const Slice> more) {
  step.further = {static_cast<std::uint32_t>(slices.size()), static_cast<std::uint32_t>(more.size())};
  slices.insert(slices.end(), more.begin(), more.end());
}

namespace {

bool same_step(const Program& a, const Step& x, const Program& b, const Step& y) {
  return x.op == y.op && x.channel == y.channel && x.to == y.to && x.from == y.from && x.end == y.end &&
         x.second == y.second && std::ranges::equal(a.after(x), b.after(y)) &&
         std::ranges::equal(a.further(x), b.further(y));
}

}  // namespace

bool same(const Program& a, const Program& b) {
  return a.scratch == b.scratch && a.scratch_sizes == b.scratch_sizes &&
         std::ranges::equal(a.steps, b.steps, [&](const Step& x, const Step& y) { return same_step(a, x, b, y); });
}

Kinds::Kinds(const Task& task, Rank rank, const Program& program) : task_(task), rank_(rank) {
  std::int64_t first = 0;
  for (const ScratchSize& size : program.scratch_sizes) {
    rooms_.emplace_back(first, size.like);
    first += size.count;
  }
}

std::int64_t Kinds::of(Buffer buffer, std::int64_t chunk) const {
  if (task_.even) return 0;
  if (buffer == Buffer::input) return kind_of_input(task_, rank_, chunk);
  if (buffer == Buffer::output) return kind_of_output(task_, rank_, chunk);
  const auto size = std::ranges::upper_bound(rooms_, chunk, {}, [](const auto& r) { return r.first; }) - 1;
  return kind_of_data(task_, rank_, size->second + chunk - size->first);
}

std::int64_t Schedule::steps() const {
  std::int64_t total = 0;
  for (const Program& program : programs) total += static_cast<std::int64_t>(program.steps.size());
  return total;
}

std::string_view name(Op op) { return text::word_of(op, {"send", "recv", "recv_reduce", "copy", "reduce"}); }
std::string_view name(Buffer buffer) { return text::word_of(buffer, {"in", "out", "tmp"}); }

}  // namespace trellis::schedule
