#include "sim/cluster/choose/rank_lower_bound.h"

#include <algorithm>

namespace trellis::sim {

const RankRoutes::PeerRoute& RankRoutes::between(Rank peer, bool out) {
  const auto [found, fresh] = known_.try_emplace(std::int64_t{peer} * 2 + (out ? 1 : 0));
  PeerRoute& way = found->second;
  if (!fresh) return way;
  static_cast<UncontendedRoute&>(way) = uncontended_route(machine_, out ? rank_ : peer, out ? peer : rank_, links_);
  way.links = !links_.empty();
  if (!out) std::ranges::reverse(links_);
  for (const ResourceId r : links_)
    if (way.narrow.empty() || machine_.rate(r) < machine_.rate(way.narrow.back())) way.narrow.push_back(r);
  return way;
}

void ResourceLoads::add(ResourceId r, double bytes) {
  if (r == no_resource) return;
  Load& load = loads_[r];
  if (load.rate == 0) load.rate = machine_.rate(r);
  load.bytes += bytes;
  busiest_ = std::max(busiest_, load.bytes / load.rate);
}

// Within a chip a transfer may move no bytes of its own, a local step may be done in another move's pass, and chunks
// may be empty. So none of these takes time for bytes here, but only for overheads and latency. Waiting for other ranks
// is left out.
RankLowerBound::RankLowerBound(Rank rank, const schedule::Task& task, const Machine& machine,
                               const PriceOptions& options, RankRoutes& ways, ResourceLoads& loads)
    : rank_(options.place(rank)),
      machine_(machine),
      options_(options),
      overheads_(machine.overheads(options.era)),
      launch_(overheads_.launched(task.ranks)),
      chunk_(least_chunk_bytes(task, options)),
      ways_(ways),
      loads_(loads) {}

void RankLowerBound::add(const schedule::Program& program, const schedule::Step& s) {
  Time end = 0;
  for (const std::int32_t before : program.after(s)) end = std::max(end, ends_[static_cast<std::size_t>(before)]);
  end += overheads_.semaphore;
  moves_ += receives(s.op) ? 0 : 1;
  if (sends(s.op) || receives(s.op)) {
    const bool out = sends(s.op);
    const RankRoutes::PeerRoute& uncontended = ways_.between(options_.place(s.end.peer), out);
    const double bytes = uncontended.links ? chunk_ * (out ? s.from : s.to).count : 0;
    end = later(end + overheads_.message + overheads_.handshake, out ? 0 : uncontended.latency);
    if (out) turns_ = later(turns_, overheads_.message);
    if (bytes > 0) {
      end = later(end + overheads_.dma_start,
                  time_of_picoseconds(bytes / uncontended.rate * static_cast<double>(second)));
      for (const ResourceId r : uncontended.narrow) loads_.add(r, bytes);
      loads_.add(machine_.hbm(rank_), bytes);
      if (out) loads_.add(machine_.dma(rank_), 2 * bytes);
      if (out && uncontended.away) sent_away_ += bytes / uncontended.rate + in_seconds(overheads_.away);
    }
  }
  chain_ = std::max(chain_, end);
  ends_.push_back(end);
}

// The simulator rounds times to picoseconds at every event, so a sum of times may slightly exceed the simulated time:
// the bound is lowered a little.
Time RankLowerBound::least() const {
  constexpr double rounding = 1e-5;
  const double seconds = std::max(loads_.busiest(), sent_away_ - in_seconds(overheads_.away));
  const Time turns = turns_ + (turns_ > 0 ? overheads_.handshake : 0);
  const Time least = std::max({chain_, turns, time_of_picoseconds(seconds * static_cast<double>(second))});
  return launch_ + static_cast<Time>(static_cast<double>(least) * (1 - rounding));
}

}  // namespace trellis::sim
