#include "sim/cluster/choose/uncontended_route.h"

#include <algorithm>
#include <limits>

namespace trellis::sim {

UncontendedRoute uncontended_route(const Machine& machine, Rank from, Rank to, std::vector<ResourceId>& links) {
  links.clear();
  machine.route(from, to, links);
  UncontendedRoute way;
  double narrowest = std::numeric_limits<double>::infinity();
  for (const ResourceId r : links) {
    way.latency = later(way.latency, machine.latency(r));
    way.away |= machine.between_hosts(r);
    narrowest = std::min(narrowest, machine.rate(r));
  }
  way.rate = links.empty() ? 0 : narrowest;
  return way;
}

double least_chunk_bytes(const schedule::Task& task, const PriceOptions& options) {
  if (has_empty_chunks(task, options)) return 0;
  return options.bytes / static_cast<double>(std::max<std::int64_t>(1, schedule::data_chunks(task)));
}

}  // namespace trellis::sim
