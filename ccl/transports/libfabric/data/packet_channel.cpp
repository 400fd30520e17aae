#include "ccl/transports/libfabric/data/packet_channel.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_receives = 64;
constexpr std::size_t most_packets = std::size_t{1} << 20;
constexpr Clock::duration first_pause = 20us, longest_pause = 5ms;  // before a packet that failed is sent again

}  // namespace

// Buffers must outlive the wire that has operations on them. The wire that is replaced still exists, so its pools are
// kept; those of earlier wires are freed, except where a lane keeps a message in them.
void PacketChannel::open(Wire& wire, int rail) {
  to_repeat_.clear();
  std::erase_if(former_, [](const Former& f) { return f.kept == 0; });
  for (auto* const pool : {&incoming_, &outgoing_}) {
    if (!*pool) continue;
    (*pool)->leave_wire();
    const std::size_t kept = pool == &incoming_ ? incoming_->in_use() - posted_ : 0;
    former_.push_back({std::move(*pool), kept});
  }
  wire_ = &wire;
  rail_ = rail;
  incoming_ = std::make_unique<PacketPool>(wire, packet_bytes_, most_packets);
  outgoing_ = std::make_unique<PacketPool>(wire, packet_bytes_, most_sent_);
  posted_ = 0;
  post_receives();
}

void PacketChannel::post_receives() {
  if (posted_ < wanted_posted_ / 2) wanted_posted_ = std::min(2 * wanted_posted_, most_receives);
  for (; posted_ < wanted_posted_; ++posted_) {
    PacketBuffer* const b = incoming_->take(WireOperation::What::packet_in);
    if (b == nullptr) return;
    b->rail = rail_;
    if (wire_->receive({b->data, incoming_->packet_bytes(), b->descriptor}, *b)) continue;
    return give(b);
  }
}

bool PacketChannel::send(fi_addr_t to, const PacketHeader& packet, std::span<const std::byte> payload,
                         bool may_inject) {
  const std::size_t bytes = sizeof packet + payload.size();
  const auto write = [&](std::byte* at) {
    std::memcpy(at, &packet, sizeof packet);
    if (!payload.empty()) std::memcpy(at + sizeof packet, payload.data(), payload.size());
  };
  std::array<std::byte, 512> flat;
  if (may_inject && bytes <= std::min(wire_->limits().inject, flat.size())) {
    write(flat.data());
    return wire_->inject(to, flat.data(), bytes);
  }
  PacketBuffer* const b = outgoing_->take(WireOperation::What::packet_out);
  if (b == nullptr) return false;
  write(b->data);
  b->to = to;
  b->peer = packet.to;
  b->bytes = bytes;
  b->pause = {};
  const bool sent = wire_->send(to, {b->data, bytes, b->descriptor}, *b);
  if (!sent) give(b);
  return sent;
}

void PacketChannel::sent(PacketBuffer* b, bool over) {
  b->again = {};
  if (over) return give(b);
  b->pause = std::clamp<Clock::duration>(2 * b->pause, first_pause, longest_pause);
  b->again = Clock::now() + b->pause;
  to_repeat_.push_back(b);
}

void PacketChannel::repeat() {
  if (to_repeat_.empty()) return;
  const Deadline now = Clock::now();
  std::erase_if(to_repeat_, [&](PacketBuffer* b) {
    return now >= b->again && wire_->send(b->to, {b->data, b->bytes, b->descriptor}, *b);
  });
}

void PacketChannel::give(PacketBuffer* b) {
  b->pool->give(b);
  const auto former = std::ranges::find_if(former_, [&](const Former& f) { return f.pool.get() == b->pool; });
  if (former != former_.end()) --former->kept;
}

std::size_t PacketChannel::memory_bytes() const {
  std::size_t bytes = incoming_ ? incoming_->memory_bytes() + outgoing_->memory_bytes() : 0;
  for (const Former& f : former_) bytes += f.pool->memory_bytes();
  return bytes;
}

}  // namespace trellis::ccl::libfabric
