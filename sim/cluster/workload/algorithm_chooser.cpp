#include "sim/cluster/workload/algorithm_chooser.h"

#include <algorithm>
#include <limits>

#include "text/refuse.h"

namespace trellis::sim {
namespace {

// The candidates: `only` if it names a whole config, the usual configs of the algorithm that it names, or all usual
// ones. A message between two ranks needs no shape.
std::vector<AlgorithmConfig> configs_for(const Pricer& pricer, const std::string& only, double bytes) {
  if (!only.empty()) {
    AlgorithmConfig config = algorithm_config_named(only);
    schedule::algorithm_named(config.algorithm);
    if (config != AlgorithmConfig{.algorithm = config.algorithm}) {
      if (const std::string why = pricer.refusal(config); !why.empty()) text::refuse("'{}': {}", only, why);
      return {std::move(config)};
    }
  }
  const bool two = pricer.settings().operation.collective == schedule::Collective::send_recv;
  std::vector<AlgorithmConfig> configs = two ? configs_of(pricer, {}, {1}, {1}) : usual_configs(pricer, bytes);
  if (only.empty()) return configs;
  const std::vector<Rank> dims = two ? std::vector<Rank>{} : usual_dims(only, pricer.machine(), pricer.group().ranks());
  std::erase_if(configs,
                [&](const AlgorithmConfig& config) { return config.algorithm != only || config.dims != dims; });
  return configs;
}

// The pairs of a permute: in a graph, each rank of the group sends to the next one. None for other collectives.
std::vector<schedule::Pair> to_the_next(schedule::Collective c, Rank ranks) {
  std::vector<schedule::Pair> pairs;
  for (Rank r = 0; c == schedule::Collective::permute && r < ranks; ++r) pairs.push_back({r, (r + 1) % ranks});
  return pairs;
}

}  // namespace

ChosenAlgorithm AlgorithmChooser::chosen(const WorkloadTask& part, const std::vector<Rank>& members) const try {
  const auto ranks = static_cast<Rank>(members.size());
  const schedule::CollectiveOperation operation = part.operation();
  const schedule::Collective collective = operation.collective;
  const double bytes = part.task->bytes;
  const bool two = collective == schedule::Collective::send_recv;
  Pricer pricer(machine_, {"", {ranks}, ranks == machine_.ranks() ? std::vector<Rank>{} : members},
                {.operation = {.collective = collective,
                               .root = two ? 0 : operation.root,
                               .peer = last_rank,
                               .pairs = to_the_next(collective, ranks)},
                 .era = options_.era,
                 .element = options_.element,
                 .stopped = options_.stopped,
                 .shelf = shelves_->of(collective, ranks, two ? 0 : operation.root)});
  if (part.schedule) {
    if (part.schedule->task.ranks != ranks)
      text::refuse("{}: a schedule for {} ranks among {}", part.task->name, part.schedule->task.ranks, ranks);
    if (part.schedule->task.operation.collective != collective)
      text::refuse("{}: a schedule of {} for {}", part.task->name, name(part.schedule->task.operation.collective),
                   name(collective));
    ChosenAlgorithm given{.words = "the schedule given",
                          .pattern = std::make_shared<const CompiledSchedule>(*part.schedule)};
    given.alone = price(*given.pattern, machine_, pricer.options(bytes)).time;
    return given;
  }
  const std::string& only = part.algorithm().empty() && !two ? options_.algorithm : part.algorithm();
  const std::vector<AlgorithmConfig> configs = configs_for(pricer, only, bytes);
  if (configs.empty())
    text::refuse("{}: no algorithm{} serves {} among {}", part.task->name, only.empty() ? "" : " called " + only,
                 name(collective), ranks);
  if (configs.size() == 1) {
    const auto pattern = std::make_shared<const CompiledSchedule>(pricer.pattern(configs[0], bytes));
    return {text_of(configs[0]), pattern, pattern->sized() ? options_.element : 0,
            pricer.price(configs[0], bytes).time};
  }
  ChoiceLimits limits{.within = options_.within};
  if (options_.most_effort > 0) limits.most_effort = options_.most_effort;
  if (!only.empty()) limits.most_moves = std::numeric_limits<std::int64_t>::max();
  const AlgorithmChoice choice = sim::choose(pricer, configs, bytes, limits);
  if (choice.best.empty() && pricer.stopped()) return {};
  if (choice.best.empty() && choice.untried.empty() && !choice.left_out.empty())
    text::refuse("{}: {}", part.task->name, choice.left_out.front().why);
  if (choice.best.empty())
    text::refuse("{}: {} among {} is too much to try every algorithm: name one", part.task->name, name(collective),
                 ranks);
  const ConfigCost& best = choice.best.front();
  const auto pattern = std::make_shared<const CompiledSchedule>(pricer.pattern(best.config, bytes));
  return {text_of(best.config), pattern, pattern->sized() ? options_.element : 0, best.time};
} catch (const CompilationStopped&) {
  return {};
}

// Renumbers the ranks of a group so that groups that differ only by a symmetry of the fabric get the same numbers. In a
// row that may be rotated, positions are counted from the first rank's; in a row whose chips are interchangeable, they
// are numbered in order of appearance.
void AlgorithmChooser::rename(std::vector<Rank>& place) const {
  std::vector<Rank> renamed(place.size(), 0);
  Rank stride = 1;
  for (const RowSymmetry& row : alike_) {
    std::vector<Rank> seen;
    const auto digit = [&](Rank r) { return r / stride % row.size; };
    for (std::size_t i = 0; i < place.size(); ++i) {
      Rank d = digit(place[i]);
      if (row.kind == RowSymmetry::Kind::rotate) d = (d - digit(place[0]) + row.size) % row.size;
      if (row.kind == RowSymmetry::Kind::any) {
        const auto found = std::ranges::find(seen, d);
        d = static_cast<Rank>(found - seen.begin());
        if (found == seen.end()) seen.push_back(digit(place[i]));
      }
      renamed[i] += d * stride;
    }
    stride *= row.size;
  }
  if (stride == machine_.ranks()) place = std::move(renamed);
}

// Without defects, groups with the same spacing and the same offset from an aligned group cost about the same, so one
// choice serves all of them.
const ChosenAlgorithm& AlgorithmChooser::choose(const WorkloadTask& part, const std::vector<Rank>& members) {
  std::vector<Rank> place = members;
  if (machine_.spec().defects.empty()) {
    rename(place);
    const Rank first = place[0], size = static_cast<Rank>(members.size());
    for (Rank& r : place) r -= first - first % size;
  }
  const schedule::CollectiveOperation o = part.operation();
  Key key{o.collective, part.task->bytes, o.root, o.peer, part.algorithm(), part.schedule.get(), std::move(place)};
  auto found = chosen_.find(key);
  if (found == chosen_.end()) found = chosen_.emplace(std::move(key), chosen(part, members)).first;
  return found->second;
}

}  // namespace trellis::sim
