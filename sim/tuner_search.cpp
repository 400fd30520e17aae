#include "sim/tuner_search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace trellis::sim {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using Shape = std::vector<Rank>;

// Of a block, for each rank: levels whose cuts have no common measure come to chunks without end.
constexpr std::int64_t most_pieces = 8;
constexpr const char* composed = "hierarchical";

// The prime factors of each dimension, one after the other.
Shape factors_of(const Shape& dims) {
  Shape factors;
  for (Rank dim : dims)
    for (Rank p = 2; dim > 1; ++p)
      while (dim % p == 0) factors.push_back(p), dim /= p;
  return factors;
}

// What a level may be asked for within the collective.
std::vector<Collective> parts_of(Collective c) {
  if (c == Collective::all_reduce) return {c, Collective::reduce_scatter, Collective::all_gather};
  return {c};
}

// Those that differ over so many ranks in a row, each by the name that comes first.
std::vector<std::string> different(const std::vector<std::string>& names, Collective collective, Rank ranks) {
  using Made = std::vector<std::optional<schedule::Schedule>>;
  const auto same = [](const Made& a, const Made& b) {
    return std::ranges::equal(a, b, [](const auto& s, const auto& t) {
      if (!s || !t) return !s && !t;
      return s->task == t->task && std::ranges::equal(s->programs, t->programs, [](const auto& p, const auto& q) {
               return schedule::same(p, q);
             });
    });
  };
  std::vector<std::string> kept;
  std::vector<Made> made;
  for (const std::string& name : names) {
    const Algorithm& algorithm = schedule::algorithm_named(name);
    Made one;
    for (const Collective part : parts_of(collective)) {
      const schedule::Request request{.collective = part, .dims = {ranks}};
      if (schedule::refusal(algorithm, request).empty())
        one.emplace_back(make(algorithm, request));
      else
        one.emplace_back();
    }
    if (std::ranges::none_of(one, [](const auto& s) { return s.has_value(); })) continue;
    if (std::ranges::any_of(made, [&](const Made& other) { return same(one, other); })) continue;
    kept.push_back(name);
    made.push_back(std::move(one));
  }
  return kept;
}

// Calls visit(levels) for every choice of one name a level.
template <class Visit>
void each_choice(const std::vector<const std::vector<std::string>*>& by_level, std::vector<std::string>& levels,
                 const Visit& visit) {
  if (levels.size() == by_level.size()) return visit(levels);
  for (const std::string& name : *by_level[levels.size()]) {
    levels.push_back(name);
    each_choice(by_level, levels, visit);
    levels.pop_back();
  }
}

std::vector<Cost> sorted(std::vector<Cost> costs) {
  std::ranges::stable_sort(
      costs, [](const Cost& a, const Cost& b) { return a.time != b.time ? a.time < b.time : a.way < b.way; });
  return costs;
}

std::int64_t pieces_of(const Pricer& pricer, const Way& way) {
  return task_of(schedule::algorithm_named(way.algorithm), pricer.request(way)).pieces;
}

// The first of them with other lanes and parts.
std::vector<Way> finer_ways(const Pricer& pricer, const Search& how, const std::vector<Cost>& costs) {
  std::vector<Way> ways;
  for (std::size_t i = 0; i < std::min(how.finalists, costs.size()); ++i)
    for (const std::int32_t channels : how.lanes)
      for (const std::int32_t segments : how.parts) {
        Way way = costs[i].way;
        way.channels = channels, way.segments = segments;
        if (channels * segments > 1 && pricer.refusal(way).empty()) ways.push_back(std::move(way));
      }
  return ways;
}

}  // namespace

std::vector<Shape> shapes_of(const Shape& dims) {
  const Shape factors = factors_of(dims);
  std::set<Shape> shapes;
  if (factors.empty()) return {{1}};
  const std::size_t cuts = factors.size() - 1;
  for (std::uint32_t where = 0; where < std::uint32_t{1} << cuts; ++where) {
    Shape shape = {factors.front()};
    for (std::size_t i = 0; i < cuts; ++i)
      if (where >> i & 1)
        shape.push_back(factors[i + 1]);
      else
        shape.back() *= factors[i + 1];
    shapes.insert(std::move(shape));
  }
  return {shapes.begin(), shapes.end()};
}

std::vector<Way> compositions(const Pricer& pricer, const std::vector<std::string>& algorithms,
                              std::size_t most_levels) {
  std::vector<std::string> names = algorithms;
  if (names.empty())
    for (const auto& [name, algorithm] : schedule::algorithms())
      if (!algorithm.has_levels) names.push_back(name);
  std::map<Rank, std::vector<std::string>> by_size;
  std::vector<Way> ways;
  for (const Shape& shape : shapes_of(pricer.group().dims)) {
    if (shape.size() < 2 || shape.size() > most_levels) continue;
    std::vector<const std::vector<std::string>*> by_level;
    for (const Rank size : shape) {
      const auto [found, fresh] = by_size.try_emplace(size);
      if (fresh) found->second = different(names, pricer.settings().collective, size);
      by_level.push_back(&found->second);
    }
    std::vector<std::string> levels;
    each_choice(by_level, levels, [&](const std::vector<std::string>& chosen) {
      Way way{composed, 1, 1, chosen, shape};
      if (pricer.refusal(way).empty() && pieces_of(pricer, way) <= most_pieces * pricer.group().ranks())
        ways.push_back(std::move(way));
    });
  }
  return ways;
}

SearchResult search(const Machine& machine, const Group& group, const Pricer::Settings& settings, double bytes,
                    const Search& how, const SweepControl& control) {
  const Pricer pricer(machine, group, settings);
  const auto plain_then_fine = [&](std::vector<Way> ways) {
    std::vector<Cost> all = sorted(sweep(machine, {group, settings, std::move(ways), {bytes}}, control));
    const std::vector<Cost> finer = sweep(machine, {group, settings, finer_ways(pricer, how, all), {bytes}}, control);
    all.insert(all.end(), finer.begin(), finer.end());
    return sorted(std::move(all));
  };
  SearchResult result;
  result.fixed = plain_then_fine(ways_of(pricer, {}, {1}, {1}));
  result.found = plain_then_fine(compositions(pricer, how.algorithms, how.most_levels));
  return result;
}

}  // namespace trellis::sim
