#include "sim/cluster/choose/usual_configs.h"

#include <algorithm>
#include <string_view>

#include "schedule/algorithms/patterns/usual_level.h"

namespace trellis::sim {
namespace {

using schedule::UseOfDims;

// The machine's dimensions cut down to the first `ranks` ranks, if these are whole rows. Dimensions of 1 are left out:
// one host, whether alone or as "x 1", gets the same configs.
std::vector<Rank> part_of(const std::vector<Rank>& dims, Rank ranks) {
  std::vector<Rank> part;
  for (Rank d : dims) {
    if (ranks % d != 0 && d % ranks != 0) return {};
    if (std::min(d, ranks) > 1) part.push_back(std::min(d, ranks));
    ranks = ranks % d == 0 ? ranks / d : 1;
  }
  return ranks == 1 ? part : std::vector<Rank>{};
}

// Shapes of the ranks: one row, chips in a row, the machine's own dimensions, hosts in a row.
std::vector<std::vector<Rank>> shapes(const Machine& machine, Rank ranks) {
  std::vector<std::vector<Rank>> all{{ranks}};
  const auto add = [&](std::vector<Rank> dims) {
    if (!dims.empty() && RankGroup{.name = "", .dims = dims}.ranks() == ranks &&
        std::ranges::find(all, dims) == all.end())
      all.push_back(std::move(dims));
  };
  const Rank cores = machine.cores();
  if (ranks % cores == 0 && cores > 1 && ranks > cores) add({cores, ranks / cores});
  add(part_of(machine.dims(), ranks));
  Rank inner = cores;
  for (const auto& fabric : machine.fabrics()) {
    if (fabric->attached() && inner > 1 && ranks % inner == 0 && ranks > inner) add({inner, ranks / inner});
    inner *= fabric->size();
  }
  return all;
}

// Whether segments can be in flight through several ranks, or through several levels or both halves of one, at once.
bool worth_cutting(const schedule::Algorithm& algorithm, schedule::Collective c) {
  using enum schedule::Collective;
  return c == broadcast || c == reduce || (c == all_reduce && algorithm.has_levels);
}

// Whether an algorithm is worth a try with direct exchange at every level: it has one level for each dimension, not for
// each share of the data, and its outermost level is not direct by itself. Between two ranks that level's ring copies
// likewise, and only sums otherwise.
bool worth_direct_levels(const schedule::Algorithm& algorithm, const std::vector<Rank>& dims, schedule::Collective c) {
  if (!algorithm.has_levels || algorithm.usual_shape != schedule::UsualShape::machine) return false;
  return usual_level(c, true) != std::string_view("direct") && (dims.back() > 2 || schedule::reduces(c));
}

// The dims of an algorithm that uses them only to order what it sends. Up to 1,024 ranks form one row, as in other
// libraries. More ranks take the machine's own dimensions if they fill whole rows. On a torus, all ranks then do the
// same, so one is simulated for all: 16,383 messages for 16,384 ranks of torus:16x32x32, instead of 8 million.
std::vector<Rank> order_that_folds(const Machine& machine, Rank ranks) {
  constexpr Rank most_in_a_row = 1024;
  const auto dims = ranks > most_in_a_row ? part_of(machine.dims(), ranks) : std::vector<Rank>{};
  return dims.empty() ? std::vector<Rank>{ranks} : dims;
}

// The shapes that make a difference to the algorithm.
std::vector<std::vector<Rank>> shapes_for(const schedule::Algorithm& algorithm, const Machine& machine, Rank ranks) {
  if (algorithm.dims == UseOfDims::shape) return shapes(machine, ranks);
  return {algorithm.dims == UseOfDims::order ? order_that_folds(machine, ranks) : std::vector<Rank>{ranks}};
}

}  // namespace

std::vector<Rank> usual_dims(std::string_view algorithm, const Machine& machine, Rank ranks) {
  using Shape = schedule::UsualShape;
  const auto known = schedule::algorithms().find(algorithm);
  const auto all = shapes(machine, ranks);
  if (known == schedule::algorithms().end()) return all.front();
  if (known->second.dims == UseOfDims::order) return order_that_folds(machine, ranks);
  switch (known->second.usual_shape) {
    case Shape::row:
      break;
    case Shape::chips:
      return all.size() > 1 ? all[1] : all.front();
    case Shape::machine:
      if (const auto dims = part_of(machine.dims(), ranks); !dims.empty()) return dims;
      return all.back();
    case Shape::hosts:
      return all.back();
  }
  return all.front();
}

std::vector<AlgorithmConfig> usual_configs(const Pricer& pricer, double bytes) {
  const schedule::Collective collective = pricer.settings().operation.collective;
  const std::vector<Rank> own = part_of(pricer.machine().dims(), pricer.group().ranks());
  std::vector<AlgorithmConfig> configs;
  const auto serves = [&](const AlgorithmConfig& config, const schedule::Algorithm& algorithm) {
    if (config.segments > 1 && !worth_cutting(algorithm, collective)) return false;
    // The algorithm of a single level does the same by itself, except that it does not pipeline the halves of an
    // all_reduce.
    const bool halves = collective == schedule::Collective::all_reduce && config.segments > 1;
    if (algorithm.has_levels && config.dims.size() == 1 && (config.levels.empty() || !halves)) return false;
    if (!pricer.refusal(config).empty()) return false;
    return config.segments == 1 || !has_empty_chunks(task_of(algorithm, pricer.request(config)), pricer.options(bytes));
  };
  const auto add = [&](const schedule::Algorithm& algorithm, const std::vector<Rank>& dims,
                       const std::vector<std::string>& levels) {
    for (const std::int32_t segments : {1, 4, 16, 64})
      for (const std::int32_t channels : {1, 2, 4})
        if (AlgorithmConfig config{.algorithm = algorithm.name,
                                   .channels = channels,
                                   .segments = segments,
                                   .levels = levels,
                                   .dims = dims};
            serves(config, algorithm))
          configs.push_back(std::move(config));
  };
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (const auto& dims : shapes_for(algorithm, pricer.machine(), pricer.group().ranks())) {
      add(algorithm, dims, {});
      if (dims == own && worth_direct_levels(algorithm, dims, collective))
        add(algorithm, dims, std::vector<std::string>(dims.size(), "direct"));
    }
  return configs;
}

}  // namespace trellis::sim
