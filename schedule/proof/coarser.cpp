#include "schedule/proof/coarser.h"

#include <numeric>

namespace trellis::schedule {
namespace {

// Calls visit(number) for every chunk number and count in the schedule, for reading or writing.
template <class Any, class Visit>
void each_number(Any& s, Visit visit) {
  visit(s.task.pieces);
  const auto slice = [&](auto& x) { visit(x.first), visit(x.count); };
  for (auto& program : s.programs) {
    visit(program.scratch);
    for (auto& size : program.scratch_sizes) visit(size.like), visit(size.count);
    for (auto& step : program.steps) slice(step.to), slice(step.from);
    for (auto& more : program.slices) slice(more);
  }
}

}  // namespace

std::int32_t grain_of(const Schedule& s) {
  std::int32_t grain = s.task.pieces;
  bool sane = true;
  each_number(s, [&](std::int32_t number) {
    sane &= number >= 0;
    if (grain > 1 && sane) grain = std::gcd(grain, number);
  });
  return sane ? grain : 1;
}

Schedule coarser(const Schedule& s, std::int32_t grain) {
  Schedule out = s;
  each_number(out, [&](std::int32_t& number) { number /= grain; });
  return out;
}

}  // namespace trellis::schedule
