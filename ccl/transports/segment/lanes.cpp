#include "ccl/transports/segment/lanes.h"

#include <algorithm>
#include <cstring>

#include "ccl/transports/segment/in_place_read.h"
#include "ccl/transports/segment/shared_copy.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t least_piece = std::size_t{16} << 10;
constexpr std::size_t bounce_bytes = std::size_t{128} << 10;  // stays in the L2 cache

// A large message is cut, so that its receiver can start before its sender has finished.
std::size_t piece_of(std::size_t message, std::size_t slot) {
  const std::size_t share = (message / 4 + 4095) / 4096 * 4096;
  return std::min(slot, std::max(share, least_piece));
}

void make(const Sending& s, std::byte* piece, std::size_t bytes) {
  s.producer->make(s.producer->context, s.message, s.done, piece, bytes);
}

}  // namespace

SharedTransport::LaneSender::LaneSender(SharedTransport& t, Rank to, int lane)
    : segment_(t.segment_),
      reach_(*t.reach_),
      ring_(segment_.ring(t.rank_, to, lane)),
      bell_(segment_.area(to).bell),
      slots_(segment_.slot(t.rank_, to, lane, 0)),
      slot_bytes_(segment_.shape().slot_bytes),
      to_(to) {}

bool SharedTransport::LaneSender::full() const {
  if (sent_ - taken_ < ring_cells) return false;
  look();
  return sent_ - taken_ >= ring_cells;
}

// Updates how many cells the receiver has finished.
void SharedTransport::LaneSender::look() const { taken_ = ring_.taken.load(std::memory_order_acquire); }

bool SharedTransport::LaneSender::could_advance() const {
  return waiting_ && static_cast<std::int32_t>(ring_.taken.load(std::memory_order_acquire) - wanted_) >= 0;
}

void SharedTransport::LaneSender::publish(LaneCell& cell, const Sending& s, std::size_t bytes,
                                          PayloadLocation carried) {
  cell.mark = s.mark;
  cell.bytes = static_cast<std::uint32_t>(bytes);
  cell.carried = carried;
  cell.last = s.done + bytes == s.bytes;
  cell.number.store(++sent_, std::memory_order_release);
  const LaneCell& next = ring_.cells[sent_ % ring_cells];
  prefetch_for_writing(&next);
  if (bytes > LaneCell::beside) prefetch_for_writing(next.state + LaneCell::beside);
  bell_.ring_if_sleeping();
}

bool SharedTransport::LaneSender::advance(Sending& s) {
  const bool done = advance_now(s);
  waiting_ = !done;
  return done;
}

bool SharedTransport::LaneSender::advance_now(Sending& s) {
  if (s.offered && s.done == s.bytes) {  // done once the receiver has read it in place
    look();
    return static_cast<std::int32_t>(taken_ - s.ticket) >= 0;
  }
  wanted_ = sent_ - ring_cells + 1;
  if (full()) return false;
  LaneCell& cell = ring_.cells[sent_ % ring_cells];
  if (s.bytes <= LaneCell::room) {
    if (s.producer != nullptr)
      make(s, cell.state, s.bytes);
    else if (s.bytes != 0)
      std::memcpy(cell.state, s.data, s.bytes);
    publish(cell, s, s.bytes, PayloadLocation::state);
    return true;
  }
  const PeerMemoryAccess::Offer offer = s.producer != nullptr ? PeerMemoryAccess::Offer{.bytes = s.bytes - s.done}
                                                              : reach_.offer(to_, s.data + s.done, s.bytes - s.done);
  if (offer.place) {
    cell.lies = {offer.place->where, offer.bytes};
    publish(cell, s, offer.bytes, offer.place->carried);
    s.offered = true;
    s.ticket = sent_;
    s.done += offer.bytes;
  } else {
    const std::size_t piece = std::min(piece_of(s.bytes, slot_bytes_), offer.bytes);
    std::byte* const slot = slots_ + (sent_ % ring_cells) * slot_bytes_;
    if (s.producer != nullptr)
      make(s, slot, piece);
    else
      copy_to_shared(slot, s.data + s.done, piece);
    publish(cell, s, piece, PayloadLocation::in_slot);
    s.done += piece;
  }
  wanted_ = s.done == s.bytes ? s.ticket : sent_ - ring_cells + 1;
  return s.done == s.bytes && !s.offered;
}

SharedTransport::LaneReceiver::LaneReceiver(SharedTransport& t, Rank from, int lane)
    : reach_(*t.reach_),
      in_place_reads_(InPlaceRead::counter(t.segment_, t.rank_, reach_)),
      ring_(t.segment_.ring(from, t.rank_, lane)),
      sender_(t.segment_.area(from)),
      bell_(t.segment_.area(from).bell),
      slots_(t.segment_.slot(from, t.rank_, lane, 0)),
      slot_bytes_(t.segment_.shape().slot_bytes),
      from_(from) {}

// Polls the cell's first cache line, and does not prefetch the second: a line that is fetched before it is written has
// to travel to its sender and back once more.
bool SharedTransport::LaneReceiver::comes(const Receiving& r) const {
  for (int look = 1; !arrived(); ++look)
    if (look >= r.looks) return false;
  return true;
}

bool SharedTransport::LaneReceiver::advance(Receiving& r) {
  waiting_ = !comes(r);
  if (waiting_) return false;
  consume(r, next());
  ring_.taken.store(++got_, std::memory_order_release);
  bell_.ring_if_sleeping();
  waiting_ = r.done < r.bytes;
  return !waiting_;
}

void SharedTransport::LaneReceiver::consume(Receiving& r, const LaneCell& cell) {
  const bool lies = cell.carried == PayloadLocation::window || cell.carried == PayloadLocation::address;
  const std::size_t bytes = lies ? cell.lies.size : cell.bytes;
  if (cell.mark != r.mark || bytes > r.bytes - r.done || (cell.last != 0) != (bytes == r.bytes - r.done) ||
      (cell.carried == PayloadLocation::in_slot && bytes > slot_bytes_) ||
      (cell.carried == PayloadLocation::state && bytes > LaneCell::room))
    throw MessageMismatch{.sender = from_,
                          .bytes = r.done + bytes,
                          .due = r.bytes,
                          .whole = cell.last != 0,
                          .mark = cell.mark,
                          .mark_due = r.mark};
  const PeerMemoryAccess::Place place{cell.carried, lies ? cell.lies.where : 0};
  const std::byte* piece = cell.state;
  if (cell.carried == PayloadLocation::in_slot) piece = slots_ + got_ % ring_cells * slot_bytes_;
  const InPlaceRead read(lies ? in_place_reads_ : nullptr);
  if (lies) check_there();
  if (lies) piece = reach_.see(from_, place, bytes);
  if (piece != nullptr) {
    r.consumer.take(r.consumer.context, r.consumer.message, r.done, piece, bytes);
    r.done += bytes;
  } else {
    fetch(r, place, bytes);
  }
  if (lies) check_there();
}

// Throws if the sender has withdrawn its data, whose memory may then be freed. Called both before a message in the
// sender's memory is read and after; one in a slot outlives its sender.
void SharedTransport::LaneReceiver::check_there() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (sender_.withdrawn.load(std::memory_order_acquire) != 0) throw MessageWithdrawn{from_};
}

void SharedTransport::LaneReceiver::fetch(Receiving& r, const PeerMemoryAccess::Place& place, std::size_t bytes) {
  if (r.place != nullptr) {
    reach_.fetch(from_, place, 0, r.place + r.done, bytes);
    r.done += bytes;
    return;
  }
  bounce_.resize(bounce_bytes);
  bounced_.store(bounce_bytes, std::memory_order_relaxed);
  for (std::size_t at = 0; at < bytes; at += bounce_bytes) {
    const std::size_t piece = std::min(bounce_bytes, bytes - at);
    reach_.fetch(from_, place, at, bounce_.data(), piece);
    r.consumer.take(r.consumer.context, r.consumer.message, r.done, bounce_.data(), piece);
    r.done += piece;
  }
}

}  // namespace trellis::ccl
