#include "sim/cluster/operation/operation_model.h"

#include <algorithm>
#include <array>

#include "text/refuse.h"

namespace trellis::sim {
namespace {

text::Registry<OperationModel>& registry() {
  static text::Registry<OperationModel> all("kind of operation");
  return all;
}

std::array<double, 4> listed(const EngineTimes& t) { return {t.tensor, t.vector, t.scalar, t.memory}; }

void expect_shape(const OperationShape& s, const EngineRates& rates) {
  const auto expect = [&](std::string_view what, std::uint64_t n) {
    if (n == 0) text::refuse("{}: {} is 0: expected at least 1", s.kind, what);
  };
  expect("rows", s.rows), expect("columns", s.columns), expect("inner", s.inner);
  expect("batch", s.batch), expect("shared", s.shared);
  rates.expect_type(s.type), rates.expect_type(s.result_type());
}

}  // namespace

OperationModel::Registered::Registered(OperationModel kind) { registry().add(std::move(kind)); }

const text::Registry<OperationModel>& operation_kinds() { return registry(); }

std::string_view OperationTime::longest() const {
  constexpr std::array<std::string_view, 4> names{"tensor", "vector", "scalar", "memory"};
  const auto all = listed(engines);
  return names[static_cast<std::size_t>(std::ranges::max_element(all) - all.begin())];
}

OperationTime operation_time(const OperationShape& shape, const EngineRates& rates) {
  const OperationModel& kind = operation_kinds().named(shape.kind);
  expect_shape(shape, rates);
  OperationTime time{.engines = kind.work(shape, rates)};
  const auto all = listed(time.engines);
  double sum = 0;
  for (double each : all) sum += each;
  const double most = *std::ranges::max_element(all);
  const double moved = (time.engines.memory + time.engines.shared) * rates.memory_rate();
  const double turns = moved <= rates.sbuf() ? 1 : rates.sbuf() / moved;
  time.overlap = 1 - turns;
  time.total = most + turns * (sum - most);
  return time;
}

}  // namespace trellis::sim
