#include "sim/price.h"

#include <algorithm>

#include "sim/price_path.h"

namespace trellis::sim {
namespace {

constexpr Rank most_written = 1024;  // beyond, chunks that are empty are not told apart

// A folded run has gone through one resource of each kind that is alike.
void find_busiest(const Run& run, const Machine& machine, Price& price) {
  double most = 0;
  const auto look = [&](ResourceId r) {
    const double rate = machine.rate(r);
    if (rate <= 0) return;
    const double load = run.carried(r) / rate;
    if (load > most) most = load, price.busiest = r;
  };
  const ResourceId ports = machine.resources() / static_cast<ResourceId>(machine.ranks());
  if (const Folding* folding = run.folding()) {
    const auto owners = folding->representatives();
    for (ResourceId port = 0; port < ports; ++port)
      for (Rank owner : owners) look(port * static_cast<ResourceId>(machine.ranks()) + static_cast<ResourceId>(owner));
  } else {
    for (ResourceId r = 0; r < machine.resources(); ++r) look(r);
  }
  if (price.busiest == no_resource || price.time == 0) return;
  price.busiest_name = machine.resource_name(price.busiest);
  price.busiest_share = most / in_seconds(price.time);
}

}  // namespace

double moves_gone_through(const Pattern& pattern, const Machine& machine, const PriceOptions& options) {
  const auto all = static_cast<double>(pattern.moves());
  const bool whole = options.members.empty() && pattern.ranks() == machine.ranks();
  if (!options.fold || !whole || !machine.spec().defects.empty()) return all;
  return all * static_cast<double>(shared_symmetry(pattern.symmetry(), machine.alike()).classes()) /
         static_cast<double>(pattern.ranks());
}

std::unique_ptr<Run> run_for(const Pattern& pattern, const Machine& machine, const PriceOptions& options, bool trace) {
  Job job{.pattern = &pattern, .bytes = options.bytes, .members = options.members};
  if (pattern.sized()) job.chunk_bytes = options.element;
  return std::make_unique<Run>(machine, std::vector<Job>{job},
                               RunSettings{.era = options.era,
                                           .fold = options.fold,
                                           .packets = options.packets,
                                           .packet = options.packet,
                                           .limit = options.limit,
                                           .trace = trace,
                                           .stopped = options.stopped});
}

Price price(const Pattern& pattern, const Machine& machine, const PriceOptions& options) {
  const bool trace =
      options.explain && moves_gone_through(pattern, machine, options) <= static_cast<double>(most_traced);
  const auto run = run_for(pattern, machine, options, trace);
  Price price{.time = run->run(), .bytes = options.bytes};
  if (price.time == forever) return price;
  price.algbw = price.time > 0 ? options.bytes / in_seconds(price.time) : 0;
  price.busbw = price.algbw * bus_factor(pattern.task());
  price.bounds = lower_bounds(pattern.task(), machine, options);
  price.simulated = run->simulated();
  price.transfers = run->transfers();
  find_busiest(*run, machine, price);
  if (trace) price.path = critical_path(*run, critical_moves(*run), machine.overheads(options.era), price.time);
  return price;
}

Price price(const schedule::Schedule& s, const Machine& machine, const PriceOptions& options) {
  return price(Pattern(s), machine, options);
}

Pattern pattern_for(const schedule::Algorithm& algorithm, const schedule::Request& request,
                    const PriceOptions& options) {
  const schedule::Task task = task_of(algorithm, request);
  const auto blocks = std::max<std::int64_t>(1, schedule::data_chunks(task) / task.pieces);
  const auto elements = static_cast<std::int64_t>(options.bytes / options.element) / blocks;
  if (options.bytes > 0 && elements < task.pieces && task.ranks <= most_written)
    return Pattern(make(algorithm, request), std::max<std::int64_t>(1, elements));
  return Pattern(algorithm, request);
}

Price price(const schedule::Algorithm& algorithm, const schedule::Request& request, const Machine& machine,
            const PriceOptions& options) {
  return price(pattern_for(algorithm, request, options), machine, options);
}

}  // namespace trellis::sim
