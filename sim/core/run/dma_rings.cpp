#include "sim/core/run/dma_rings.h"

#include <algorithm>
#include <cassert>

namespace trellis::sim::core {

DmaRings::DmaRings(const ChipSpec& chip, int cores, EventQueue<CoreEvent>& queue)
    : chip_(chip),
      queue_(queue),
      rings_(static_cast<std::size_t>(cores * chip.dma.rings)),
      servers_(static_cast<std::size_t>(cores * chip.dma.engines)),
      busy_(static_cast<std::size_t>(cores * chip.dma.engines)) {}

void DmaRings::ask(int r, std::uint32_t instruction, std::uint32_t stream, std::int64_t span, std::int32_t registers,
                   const DmaWork& work, Time asked) {
  std::uint32_t number = 0;
  if (free_.empty()) {
    number = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  entries_[number] = {{instruction, stream, span, asked, 0, 0, registers, 0}, &work, r, false};
  rings_[static_cast<std::size_t>(r)].waiting.push_back(number);
  plan(r);
}

// Sets the ring's next start, unless it is set or must wait for the end of the transfer before.
void DmaRings::plan(int r) {
  Ring& ring = rings_[static_cast<std::size_t>(r)];
  if (ring.starting || ring.waiting.empty() || (!chip_.dma.prefetch && ring.busy > 0)) return;
  const Entry& entry = entries_[ring.waiting.front()];
  Time begin = entry.transfer.asked + entry.work->start;
  if (ring.last >= 0) begin = std::max(begin, ring.last + chip_.dma.generate + chip_.dma.interval);
  ring.starting = true;
  queue_.push(std::max(begin, queue_.now()), {CoreEventKind::ring, static_cast<std::uint16_t>(r), 0});
}

void DmaRings::ring_event(int r) {
  Ring& ring = rings_[static_cast<std::size_t>(r)];
  const std::uint32_t number = ring.waiting.front();
  ring.waiting.pop_front();
  ring.flying.push_back(number);
  ring.starting = false;
  ring.last = queue_.now();
  ++ring.busy;
  Entry& entry = entries_[number];
  entry.transfer.start = queue_.now();
  const int engines = chip_.dma.engines;
  const int first = r / chip_.dma.rings * engines;
  for (int e = 0; e < engines; ++e) {
    if (entry.work->shares[static_cast<std::size_t>(e)].time <= 0) continue;
    ++entry.transfer.missing;
    const Time late = engines > 1 ? chip_.dma.stagger * e / (engines - 1) : 0;
    queue_.push(queue_.now() + late, {CoreEventKind::share, static_cast<std::uint16_t>(first + e), number});
  }
  assert(entry.transfer.missing > 0);
  plan(r);
}

void DmaRings::share_event(int e, std::uint32_t number) {
  const Entry& entry = entries_[number];
  const DmaEngineShare& share = entry.work->shares[static_cast<std::size_t>(e % chip_.dma.engines)];
  const double packets = std::max(1.0, share.bytes / chip_.dma.packet);
  const Time packet = std::max<Time>(1, static_cast<Time>(static_cast<double>(share.time) / packets));
  DmaEngineQueue& server = servers_[static_cast<std::size_t>(e)];
  server.shares.push_back({number, entry.ring, share.time, packet});
  const Time now = queue_.now();
  if (server.shares.size() == 1) {
    if (at_work_++ == 0) any_since_ = now;
    return serve(e, now);
  }
  const Share& first = server.shares.front();
  if (first.ring == entry.ring) return;
  // A ring that had the engine alone yields after its current packet.
  const Time gone = now - server.since;
  const Time cut = server.since + (gone / first.packet + 1) * first.packet;
  if (cut >= server.until) return;
  server.until = cut;
  queue_.push(cut, {CoreEventKind::packet, static_cast<std::uint16_t>(e), ++server.version});
}

void DmaRings::serve(int e, Time now) {
  DmaEngineQueue& server = servers_[static_cast<std::size_t>(e)];
  if (server.shares.empty()) return;
  const Share& first = server.shares.front();
  const bool alone = std::ranges::all_of(server.shares, [&](const Share& s) { return s.ring == first.ring; });
  server.since = now;
  server.until = now + (alone ? first.left : std::min(first.left, first.packet));
  queue_.push(server.until, {CoreEventKind::packet, static_cast<std::uint16_t>(e), ++server.version});
}

const std::vector<RingTransfer>& DmaRings::packet_event(int e, std::uint32_t version) {
  done_.clear();
  DmaEngineQueue& server = servers_[static_cast<std::size_t>(e)];
  if (version != server.version) return done_;
  const Time now = queue_.now();
  busy_[static_cast<std::size_t>(e)] += now - server.since;
  Share share = server.shares.front();
  server.shares.pop_front();
  share.left -= now - server.since;
  if (share.left > 0) {
    // Rings take turns. The parts of one ring keep their order.
    auto place = std::ranges::find_if(server.shares, [&](const Share& s) { return s.ring == share.ring; });
    server.shares.insert(place, share);
  } else {
    Entry& entry = entries_[share.transfer];
    entry.transfer.end = std::max(entry.transfer.end, now);
    if (--entry.transfer.missing == 0) {
      entry.done = true;
      Ring& ring = rings_[static_cast<std::size_t>(entry.ring)];
      --ring.busy;
      if (!chip_.dma.prefetch) ring.last = now;
      settle(entry.ring);
      plan(entry.ring);
    }
  }
  if (server.shares.empty() && --at_work_ == 0) any_busy_ += now - any_since_;
  serve(e, now);
  return done_;
}

// Returns finished transfers in the ring's order.
void DmaRings::settle(int r) {
  Ring& ring = rings_[static_cast<std::size_t>(r)];
  while (!ring.flying.empty() && entries_[ring.flying.front()].done) {
    done_.push_back(entries_[ring.flying.front()].transfer);
    free_.push_back(ring.flying.front());
    ring.flying.pop_front();
  }
}

}  // namespace trellis::sim::core
