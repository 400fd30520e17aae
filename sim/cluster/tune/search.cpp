#include "sim/cluster/tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "schedule/proof/algorithm_refutation.h"

namespace trellis::sim {
namespace {

using schedule::Algorithm;
using schedule::Collective;
using Shape = std::vector<Rank>;

// The most pieces of a rank's block. Levels whose cuts have no common divisor would multiply the chunks without bound.
constexpr std::int64_t most_pieces = 8;
constexpr const char* composed = "hierarchical";

// The prime factors of each dimension, one dimension after the other.
Shape factors_of(const Shape& dims) {
  Shape factors;
  for (Rank dim : dims)
    for (Rank p = 2; dim > 1; ++p)
      while (dim % p == 0) factors.push_back(p), dim /= p;
  return factors;
}

// The collectives that a level may have to do within the whole collective.
std::vector<Collective> parts_of(Collective c) {
  if (c == Collective::all_reduce) return {c, Collective::reduce_scatter, Collective::all_gather};
  return {c};
}

// The algorithms that are not refuted and whose schedules for so many ranks in a row differ; of equal ones, the first
// by name.
std::vector<std::string> different(const Pricer& pricer, const std::vector<std::string>& names, Rank ranks) {
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
    for (const Collective part : parts_of(pricer.settings().operation.collective)) {
      const schedule::Request request{.operation = {.collective = part}, .dims = {ranks}};
      if (schedule::refusal(algorithm, request).empty() && schedule::refutation(algorithm, request).empty())
        one.emplace_back(make_or_stop(algorithm, request, [&] { return pricer.stopped(); }));
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

// Calls visit(levels) for every choice of one name for each level.
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

std::vector<ConfigCost> sorted(std::vector<ConfigCost> costs) {
  std::ranges::stable_sort(costs, [](const ConfigCost& a, const ConfigCost& b) {
    return a.time != b.time ? a.time < b.time : a.config < b.config;
  });
  return costs;
}

std::int64_t pieces_of(const Pricer& pricer, const AlgorithmConfig& config) {
  return task_of(schedule::algorithm_named(config.algorithm), pricer.request(config)).pieces;
}

// The first `finalists` of the priced configs, each with every other number of channels and segments.
std::vector<AlgorithmConfig> finer_configs(const Pricer& pricer, const SearchOptions& how,
                                           const std::vector<ConfigCost>& costs) {
  std::vector<AlgorithmConfig> configs;
  for (std::size_t i = 0; i < std::min(how.finalists, costs.size()); ++i)
    for (const std::int32_t channels : how.channels)
      for (const std::int32_t segments : how.segments) {
        AlgorithmConfig config = costs[i].config;
        config.channels = channels, config.segments = segments;
        if (channels * segments > 1 && pricer.refusal(config).empty()) configs.push_back(std::move(config));
      }
  return configs;
}

// Keeps the configs with the lowest bounds by one rank's steps, within the budget of moves. Counts those left out.
std::vector<AlgorithmConfig> promising(Pricer& pricer, std::vector<AlgorithmConfig> configs, double bytes,
                                       std::int64_t most_moves, std::size_t& left_out) {
  struct Known {
    Pricer::Outline outline;
    std::size_t place = 0;
  };
  std::vector<Known> known;
  for (std::size_t i = 0; i < configs.size(); ++i) {
    if (pricer.stopped()) throw CompilationStopped();
    known.push_back({pricer.outline(configs[i], bytes), i});
  }
  std::ranges::stable_sort(known, {}, [](const Known& k) { return k.outline.least; });
  const std::int64_t most_for_one = most_moves / SearchOptions::configs_at_least;
  std::vector<AlgorithmConfig> kept;
  for (const Known& k : known) {
    if (k.outline.moves > most_for_one) continue;
    if (k.outline.moves > most_moves) break;
    most_moves -= k.outline.moves;
    kept.push_back(std::move(configs[k.place]));
  }
  left_out += configs.size() - kept.size();
  return kept;
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

std::vector<AlgorithmConfig> compositions(const Pricer& pricer, const std::vector<std::string>& algorithms,
                                          std::size_t most_levels) {
  std::vector<std::string> names = algorithms;
  if (names.empty())
    for (const auto& [name, algorithm] : schedule::algorithms())
      if (!algorithm.has_levels) names.push_back(name);
  std::map<Rank, std::vector<std::string>> by_size;
  std::vector<AlgorithmConfig> configs;
  for (const Shape& shape : shapes_of(pricer.group().dims)) {
    if (shape.size() < 2 || shape.size() > most_levels) continue;
    std::vector<const std::vector<std::string>*> by_level;
    for (const Rank size : shape) {
      const auto [found, fresh] = by_size.try_emplace(size);
      if (fresh) found->second = different(pricer, names, size);
      by_level.push_back(&found->second);
    }
    std::vector<std::string> levels;
    each_choice(by_level, levels, [&](const std::vector<std::string>& chosen) {
      if (pricer.stopped()) throw CompilationStopped();
      AlgorithmConfig config{composed, 1, 1, chosen, shape};
      if (pricer.refusal(config).empty() && pieces_of(pricer, config) <= most_pieces * pricer.group().ranks())
        configs.push_back(std::move(config));
    });
  }
  return configs;
}

std::vector<AlgorithmConfig> orders(const Pricer& pricer, const std::vector<std::string>& algorithms) {
  constexpr std::size_t most_dims = 4;  // 23 other orders
  const Shape& dims = pricer.group().dims;
  std::vector<AlgorithmConfig> configs;
  if (dims.size() < 2 || dims.size() > most_dims) return configs;
  std::vector<std::int32_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::ranges::next_permutation(order).found)
    for (const auto& [name, algorithm] : schedule::algorithms()) {
      if (pricer.stopped()) throw CompilationStopped();
      if (!algorithms.empty() && std::ranges::find(algorithms, name) == algorithms.end()) continue;
      if (AlgorithmConfig config{.algorithm = name, .dims = dims, .order = order}; pricer.refusal(config).empty())
        configs.push_back(std::move(config));
    }
  return configs;
}

std::vector<AlgorithmConfig> splits(const Pricer& pricer, const std::vector<ConfigCost>& fastest_first,
                                    std::size_t most_configs) {
  constexpr std::int64_t most_chunks = 512;  // of a block, for each rank
  std::vector<std::string> parts;
  for (const ConfigCost& c : fastest_first) {
    AlgorithmConfig config = c.config;
    config.channels = config.segments = 1;
    const std::string text = text_of(config);
    const bool split = schedule::algorithm_named(config.algorithm).has_levels && config.levels.empty();
    if (!split && std::ranges::find(parts, text) == parts.end()) parts.push_back(text);
    if (parts.size() == most_configs) break;
  }
  std::vector<AlgorithmConfig> configs;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t j = i + 1; j < parts.size(); ++j)
      for (const auto& [most, least] : {std::pair(1, 1), std::pair(3, 2), std::pair(2, 1), std::pair(3, 1)}) {
        AlgorithmConfig config{.algorithm = "split",
                               .levels = {fmt::format("{}:{}", parts[i], most), fmt::format("{}:{}", parts[j], least)}};
        if (pricer.refusal(config).empty() && pieces_of(pricer, config) <= most_chunks * pricer.group().ranks())
          configs.push_back(std::move(config));
      }
  return configs;
}

namespace {

class Searching {
 public:
  Searching(const Machine& machine, const RankGroup& group, const Pricer::Settings& settings, double bytes,
            const SearchOptions& how, const SweepControl& control)
      : machine_(machine),
        group_(group),
        settings_(settings),
        bytes_(bytes),
        how_(how),
        control_(control),
        counted_(control),
        wanted_(std::max(how.finalists, how.shown)),
        pricer_(machine, group, polled(settings, control)) {
    counted_.found = [this](const ConfigCost& c) {
      ++looked_at_;
      if (control_.found) control_.found(c);
    };
    counted_.given_up = [this](const ConfigCost& c) {
      ++looked_at_;
      if (control_.given_up) control_.given_up(c);
    };
  }

  SearchResult run() {
    try {
      look();
    } catch (const CompilationStopped&) {
      // The result is what has been found by now.
    }
    return std::move(result_);
  }

 private:
  static Pricer::Settings polled(Pricer::Settings settings, const SweepControl& control) {
    if (control.stopped) settings.stopped = [stopped = control.stopped](Time, double) { return stopped(); };
    return settings;
  }

  void look() {
    const SweepSpec plain{group_, settings_, right(configs_of(pricer_, {}, {1}, {1})), {bytes_}};
    result_.fixed = sorted(sweep(machine_, plain, control_));
    choose();
    result_.tried += add(result_.found, compositions(pricer_, how_.algorithms, how_.most_levels));
    result_.tried += add(result_.found, right(orders(pricer_, how_.algorithms)));
    std::vector<ConfigCost> both = result_.fixed;
    both.insert(both.end(), result_.found.begin(), result_.found.end());
    result_.tried += add(result_.found, splits(pricer_, sorted(std::move(both)), how_.finalists));
    result_.tried += add(result_.found, finer_configs(pricer_, how_, result_.found));
    add(result_.fixed, finer_configs(pricer_, how_, result_.fixed));
  }

  // What `trellis sim` would choose, unless it is among the fixed configs already.
  void choose() {
    const AlgorithmChoice choice =
        sim::choose(pricer_, usual_configs(pricer_, bytes_), bytes_, {.within = usual_within});
    result_.left_out.insert(result_.left_out.end(), choice.left_out.begin(), choice.left_out.end());
    if (choice.best.empty()) return;
    const ConfigCost& best = choice.best.front();
    if (std::ranges::find(result_.fixed, best.config, &ConfigCost::config) != result_.fixed.end()) return;
    result_.fixed.push_back(best);
    result_.fixed = sorted(std::move(result_.fixed));
  }

  std::vector<AlgorithmConfig> right(std::vector<AlgorithmConfig> configs) {
    std::erase_if(configs, [&](const AlgorithmConfig& config) {
      if (pricer_.stopped()) throw CompilationStopped();
      try {
        pricer_.expect_right(config);
        return false;
      } catch (const schedule::RefutedAlgorithm& error) {
        result_.left_out.push_back({config, error.what()});
        return true;
      }
    });
    return configs;
  }

  // Returns how many configs were tried: all that were promising or, if the search was stopped, only those that this
  // call had priced or given up by then.
  std::size_t add(std::vector<ConfigCost>& costs, std::vector<AlgorithmConfig> configs) {
    looked_at_ = 0;
    configs = promising(pricer_, std::move(configs), bytes_, how_.most_moves, result_.untried);
    const Time limit = costs.size() < wanted_ ? forever : costs[wanted_ - 1].time;
    const std::size_t all = configs.size();
    const SweepSpec some{group_, settings_, std::move(configs), {bytes_}, wanted_, limit};
    const std::vector<ConfigCost> more = sweep(machine_, some, counted_);
    costs.insert(costs.end(), more.begin(), more.end());
    costs = sorted(std::move(costs));
    costs.resize(std::min(costs.size(), wanted_));
    return pricer_.stopped() ? looked_at_ : all;
  }

  const Machine& machine_;
  const RankGroup& group_;
  const Pricer::Settings& settings_;
  const double bytes_;
  const SearchOptions& how_;
  const SweepControl& control_;
  SweepControl counted_;
  const std::size_t wanted_;
  std::size_t looked_at_ = 0;
  Pricer pricer_;
  SearchResult result_;
};

}  // namespace

SearchResult search(const Machine& machine, const RankGroup& group, const Pricer::Settings& settings, double bytes,
                    const SearchOptions& how, const SweepControl& control) {
  return Searching(machine, group, settings, bytes, how, control).run();
}

}  // namespace trellis::sim
