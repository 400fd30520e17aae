#include "sim/cluster/price/price.h"

#include <algorithm>

#include "schedule/collective_traits.h"
#include "sim/cluster/price/critical_path.h"

namespace trellis::sim {
namespace {

constexpr Rank most_written = 1024;  // with more ranks, no chunk counts as empty

struct Busiest {
  ResourceId resource = no_resource;
  double seconds = 0;  // of busy time
};

// In a folded run only the resources of the representatives were simulated; they stand for all like ones.
Busiest busiest(const SimulationRun& run, const Machine& machine) {
  Busiest most;
  const auto look = [&](ResourceId r) {
    const double rate = machine.rate(r);
    if (rate <= 0) return;
    if (const double load = run.carried(r) / rate; load > most.seconds) most = {r, load};
  };
  if (const auto used = run.used()) {
    for (const ResourceId r : *used) look(r);
    return most;
  }
  const ResourceId ports = machine.resources() / static_cast<ResourceId>(machine.ranks());
  if (const RankFolding* folding = run.folding()) {
    const auto owners = folding->representatives();
    for (ResourceId port = 0; port < ports; ++port)
      for (Rank owner : owners) look(port * static_cast<ResourceId>(machine.ranks()) + static_cast<ResourceId>(owner));
  } else {
    for (ResourceId r = 0; r < machine.resources(); ++r) look(r);
  }
  return most;
}

std::unique_ptr<SimulationRun> run_of(const CompiledSchedule& pattern, const Machine& machine,
                                      const PriceOptions& options, RunSettings settings) {
  SimulatedCollective collective{.pattern = &pattern, .bytes = options.bytes, .members = options.members};
  if (pattern.sized()) collective.chunk_bytes = options.element;
  settings.era = options.era, settings.fold = options.fold;
  settings.limit = options.limit, settings.stopped = options.stopped, settings.noise = options.noise;
  return std::make_unique<SimulationRun>(machine, std::vector<SimulatedCollective>{collective}, std::move(settings));
}

}  // namespace

std::optional<std::vector<Rank>> folded_ranks(const schedule::Symmetry& schedule, const Machine& machine,
                                              const PriceOptions& options) {
  if (!options.fold || options.noise) return {};
  if (options.members.empty()) {
    const auto folded = folded_symmetry(schedule, machine);
    return folded ? std::optional(folded->representatives()) : std::nullopt;
  }
  const auto folded = folded_symmetry(machine, {{&schedule, {options.members}}});
  if (!folded) return {};
  std::vector<Rank> all;
  for (Rank r = 0; r < schedule.ranks(); ++r)
    if (folded->representative(options.place(r)) == options.place(r)) all.push_back(r);
  return all;
}

double moves_gone_through(const CompiledSchedule& pattern, const Machine& machine, const PriceOptions& options) {
  const auto folded = folded_ranks(pattern.symmetry(), machine, options);
  return static_cast<double>(pattern.moves()) * (folded ? static_cast<double>(folded->size()) : pattern.ranks()) /
         pattern.ranks();
}

std::unique_ptr<SimulationRun> run_for(const CompiledSchedule& pattern, const Machine& machine,
                                       const PriceOptions& options, bool trace) {
  return run_of(pattern, machine, options, {.trace = trace});
}

Price price(const CompiledSchedule& pattern, const Machine& machine, const PriceOptions& options) {
  const bool trace =
      options.explain && moves_gone_through(pattern, machine, options) <= static_cast<double>(most_traced);
  const auto run = run_for(pattern, machine, options, trace);
  Price price{.time = run->run(), .bytes = options.bytes};
  if (price.time == forever) return price;
  price.algbw = price.time > 0 ? options.bytes / in_seconds(price.time) : 0;
  price.busbw = price.algbw * bus_factor(pattern.task().operation.collective, pattern.task().ranks);
  price.bounds = lower_bounds(pattern.task(), machine, options, pattern.sized());
  price.simulated = run->simulated();
  price.transfers = run->transfers();
  price.exact = run->exact();
  if (const Busiest most = busiest(*run, machine); most.resource != no_resource && price.time > 0) {
    price.busiest = most.resource;
    price.busiest_name = machine.resource_name(most.resource);
    price.busiest_share = most.seconds / in_seconds(price.time);
  }
  const SoftwareOverheads o = machine.overheads(options.era);
  if (trace) price.path = critical_path(*run, critical_moves(*run), o.launched(pattern.ranks()) + o.counts, price.time);
  return price;
}

// The simulator rounds times to picoseconds at every event, so a sum of loads may slightly exceed the simulated time:
// the sum is lowered a little.
Time least_time(const CompiledSchedule& pattern, const Machine& machine, const PriceOptions& options) {
  constexpr double rounding = 1e-5;
  const auto run = run_of(pattern, machine, options, {.alone = true});
  const Time chain = run->run();
  if (chain == forever) return chain;
  const double load = busiest(*run, machine).seconds * static_cast<double>(second) * (1 - rounding);
  return std::max(chain, machine.overheads(options.era).launched(pattern.ranks()) + time_of_picoseconds(load));
}

Price price(const schedule::Schedule& s, const Machine& machine, const PriceOptions& options) {
  return price(CompiledSchedule(s), machine, options);
}

namespace {

std::int64_t elements_of_block(const schedule::Task& task, const PriceOptions& options) {
  const auto blocks = std::max<std::int64_t>(1, schedule::data_chunks(task) / task.pieces);
  return static_cast<std::int64_t>(options.bytes / options.element) / blocks;
}

}  // namespace

bool has_empty_chunks(const schedule::Task& task, const PriceOptions& options) {
  return options.bytes > 0 && elements_of_block(task, options) < task.pieces && task.ranks <= most_written;
}

CompiledSchedule pattern_for(const schedule::Algorithm& algorithm, const schedule::Request& request,
                             const PriceOptions& options) {
  const schedule::Task task = task_of(algorithm, request);
  CompiledSchedule::Stopped stopped;
  if (options.stopped) stopped = [&] { return options.stopped(0, 0); };
  if (!has_empty_chunks(task, options)) return CompiledSchedule(algorithm, request, stopped);
  return CompiledSchedule(make_or_stop(algorithm, request, stopped),
                          std::max<std::int64_t>(1, elements_of_block(task, options)), stopped);
}

Price price(const schedule::Algorithm& algorithm, const schedule::Request& request, const Machine& machine,
            const PriceOptions& options) {
  return price(pattern_for(algorithm, request, options), machine, options);
}

}  // namespace trellis::sim
