#include "sim/choice.h"

#include <algorithm>

namespace trellis::sim {
namespace {

constexpr std::int64_t most_moves = 40'000'000;  // beyond, a candidate is not tried

Rank product(const std::vector<Rank>& dims) {
  Rank n = 1;
  for (Rank d : dims) n *= d;
  return n;
}

// The machine's dims cut to the first so many ranks, if they are whole rows.
std::vector<Rank> part_of(const std::vector<Rank>& dims, Rank ranks) {
  std::vector<Rank> part;
  for (Rank d : dims) {
    if (ranks % d != 0 && d % ranks != 0) return {};
    part.push_back(std::min(d, ranks));
    ranks = ranks % d == 0 ? ranks / d : 1;
  }
  return ranks == 1 ? part : std::vector<Rank>{};
}

// As one row, as chips in a row, as they are, and as hosts in a row.
std::vector<std::vector<Rank>> shapes(const Machine& machine, Rank ranks) {
  std::vector<std::vector<Rank>> all{{ranks}};
  const auto add = [&](std::vector<Rank> dims) {
    if (!dims.empty() && product(dims) == ranks && std::ranges::find(all, dims) == all.end())
      all.push_back(std::move(dims));
  };
  const Rank cores = machine.cores();
  if (ranks % cores == 0 && cores > 1) add({cores, ranks / cores});
  add(part_of(machine.dims(), ranks));
  Rank inner = cores;
  for (const auto& fabric : machine.fabrics()) {
    if (fabric->attached() && inner > 1 && ranks % inner == 0 && ranks > inner) add({inner, ranks / inner});
    inner *= fabric->size();
  }
  return all;
}

}  // namespace

std::vector<Rank> usual_dims(std::string_view algorithm, const Machine& machine, Rank ranks) {
  const auto all = shapes(machine, ranks);
  const bool chips = algorithm == "mesh" || algorithm == "kangaring";
  const bool whole = algorithm == "torus" || algorithm == "rdh" || algorithm == "swing" ||
                     algorithm == "hierarchical" || algorithm == "bine";
  if (whole) {
    if (const auto dims = part_of(machine.dims(), ranks); !dims.empty()) return dims;
    return all.back();
  }
  if (chips && all.size() > 1) return all[1];
  return algorithm == "flat_ring" ? all.back() : all.front();
}

std::vector<Candidate> candidates(schedule::Collective collective, const Machine& machine, Rank ranks) {
  std::vector<Candidate> all;
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (const auto& dims : shapes(machine, ranks))
      for (const std::int32_t channels : {1, 2, 4}) {
        const schedule::Request request{.collective = collective, .dims = dims, .channels = channels};
        if (refusal(algorithm, request).empty()) all.push_back({&algorithm, request, 0});
      }
  return all;
}

// Those with few moves come first, and what takes half as long again as the best is given up.
std::vector<Candidate> best_first(schedule::Collective collective, const Machine& machine, Rank ranks,
                                  const PriceOptions& options) {
  std::vector<std::pair<Candidate, Pattern>> tries;
  for (Candidate& c : candidates(collective, machine, ranks)) {
    Pattern pattern = pattern_for(*c.algorithm, c.request, options);
    if (pattern.moves() > most_moves && static_cast<Rank>(pattern.classes().size()) > ranks / 8) continue;
    tries.emplace_back(std::move(c), std::move(pattern));
  }
  std::ranges::stable_sort(tries, {}, [](const auto& t) { return t.second.moves(); });
  PriceOptions quick = options;
  quick.explain = false;
  std::vector<Candidate> all;
  for (auto& [candidate, pattern] : tries) {
    candidate.time = price(pattern, machine, quick).time;
    if (candidate.time == forever) continue;
    quick.limit = std::min(quick.limit, candidate.time + candidate.time / 2);
    all.push_back(std::move(candidate));
  }
  std::ranges::stable_sort(all, {}, &Candidate::time);
  return all;
}

}  // namespace trellis::sim
