#include "ccl/transports/segment/all_to_all_exchange.h"

#include <algorithm>
#include <cstring>

#include "ccl/transports/segment/shared_copy.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t line = 64;

// Asks for the cache lines of the cell for writing, as far as so many bytes of messages reach.
void own(const AllToAllCell& cell, std::size_t bytes) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&cell);
  const std::size_t end = offsetof(AllToAllCell, messages) + std::min(bytes, AllToAllCell::room);
  for (std::size_t at = 0; at < end; at += line) prefetch_for_writing(begin + at);
}

}  // namespace

AllToAllExchange::AllToAllExchange(const Segment& segment, Rank rank, PeerMemoryAccess& reach)
    : segment_(segment), rank_(rank), reach_(reach), in_place_reads_(InPlaceRead::counter(segment, rank, reach)) {}

// Publishes a round. Then asks for the cache lines of its next cell, while this rank waits: that cell is of the round
// three before this one, and all ranks have read it, as they have published the round before this one. Does not ask for
// those of peers' cells: a line that is fetched before it is written has to travel to its writer and back once more.
void AllToAllExchange::publish(std::uint32_t mark, std::span<const Message> messages, bool same, bool may_stay) {
  AllToAllCell& cell = segment_.round(rank_, tag());
  stays_ = may_stay && stay(cell, messages, same);
  if (!stays_) copy(cell, messages, same);
  cell.mark = mark;
  cell.number.store(tag(), std::memory_order_release);
  published_ = true;
  missing_.clear();
  for (Rank r = 0; r < segment_.shape().ranks; ++r) {
    if (r == rank_) continue;
    segment_.area(r).bell.ring_if_sleeping();
    missing_.push_back(r);
  }
  own(segment_.round(rank_, tag() + 1), bytes_);
}

std::byte* AllToAllExchange::place_for(AllToAllCell& cell, std::size_t bytes, std::size_t stride) {
  bytes_ = bytes;
  cell.stride = static_cast<std::uint32_t>(stride);
  cell.in_room = bytes > AllToAllCell::room ? 1 : 0;
  return cell.in_room != 0 ? segment_.room(rank_, tag()) : cell.messages;
}

bool AllToAllExchange::stay(AllToAllCell& cell, std::span<const Message> messages, bool same) {
  const Rank ranks = segment_.shape().ranks, first = rank_ == 0 ? 1 : 0;
  const std::size_t stride = same ? 0 : round_stride(sizeof(SenderMemoryRange), ranks);
  std::byte* const places = place_for(cell, same ? sizeof(SenderMemoryRange) : stride * messages.size(), stride);
  for (Rank r = 0; r < ranks; ++r) {
    if (r == rank_) continue;
    const Message m = messages[same ? 0 : static_cast<std::size_t>(r)];
    const PeerMemoryAccess::Offer offer = reach_.offer(r, m.data(), m.size());
    if (!offer.place || offer.bytes != m.size()) return false;
    if (r != first && offer.place->carried != cell.carried) return false;
    cell.carried = offer.place->carried;
    const SenderMemoryRange there{offer.place->where, offer.bytes};
    std::memcpy(places + stride * static_cast<std::size_t>(r), &there, sizeof there);
  }
  return true;
}

void AllToAllExchange::copy(AllToAllCell& cell, std::span<const Message> messages, bool same) {
  std::size_t most = 0;
  for (const Message& m : messages) most = std::max(most, m.size());
  const std::size_t stride = same ? 0 : round_stride(most, segment_.shape().ranks);
  cell.carried = PayloadLocation::state;
  std::byte* to = place_for(cell, same ? most : stride * messages.size(), stride);
  for (const Message& m : messages) {
    if (!m.empty()) copy_to_shared(to, m.data(), m.size());
    to += stride;
  }
}

const std::byte* AllToAllExchange::arrived(Rank from, std::size_t bytes, std::uint32_t mark) {
  const AllToAllCell& cell = segment_.round(from, tag());
  if (!has_published(from)) return nullptr;
  const bool stays = cell.carried != PayloadLocation::state;
  const std::size_t begin = std::size_t{cell.stride} * static_cast<std::size_t>(rank_);
  const std::size_t room = cell.in_room != 0 ? segment_.shape().round_bytes : AllToAllCell::room;
  const std::size_t taken = stays ? sizeof(SenderMemoryRange) : bytes;
  const std::byte* const message = (cell.in_room != 0 ? segment_.room(from, tag()) : cell.messages) + begin;
  SenderMemoryRange there{.where = 0, .size = bytes};
  const bool fits = begin <= room && taken <= room - begin;
  if (fits && stays) std::memcpy(&there, message, sizeof there);
  if (cell.mark != mark || !fits || there.size != bytes)
    throw MessageMismatch{.sender = from,
                          .bytes = bytes,
                          .due = bytes,
                          .whole = true,
                          .mark = cell.mark,
                          .mark_due = mark,
                          .in_round = true};
  return stays ? see(from, cell.carried, there) : message;
}

const std::byte* AllToAllExchange::see(Rank from, PayloadLocation carried, const SenderMemoryRange& message) {
  check_there(from);
  read_there_.push_back(from);
  const PeerMemoryAccess::Place place{carried, message.where};
  if (const std::byte* const mapped = reach_.see(from, place, message.size)) return mapped;
  fetched_.resize(static_cast<std::size_t>(segment_.shape().ranks));
  std::vector<std::byte>& copy = fetched_[static_cast<std::size_t>(from)];
  copy.resize(message.size);
  reach_.fetch(from, place, 0, copy.data(), message.size);
  return copy.data();
}

// Throws if the sender has withdrawn its data, whose memory may then be freed. Called both before that memory is read
// and after.
void AllToAllExchange::check_there(Rank sender) const {
  std::atomic_thread_fence(std::memory_order_acquire);
  if (segment_.area(sender).withdrawn.load(std::memory_order_acquire) != 0) throw MessageWithdrawn{sender};
}

void AllToAllExchange::check_all_there() const {
  for (const Rank r : read_there_) check_there(r);
}

void AllToAllExchange::end_reading() {
  if (read_there_.empty()) return;
  check_all_there();
  segment_.area(rank_).round_read.store(number_, std::memory_order_release);
  for (const Rank r : read_there_) segment_.area(r).bell.ring_if_sleeping();
  read_there_.clear();
}

// Until the rank has read this round's messages, its `round_read` is the number of an earlier round. It can't be that
// of a later one, which needs this rank's messages.
bool AllToAllExchange::is_reader(Rank r) const {
  return stays_ && r != rank_ && segment_.area(r).round_read.load(std::memory_order_acquire) != number_;
}

Rank AllToAllExchange::reader() const {
  for (Rank r = 0; stays_ && r < segment_.shape().ranks; ++r)
    if (is_reader(r)) return r;
  return -1;
}

void AllToAllExchange::end() {
  published_ = stays_ = false;
  ++number_;
}

bool AllToAllExchange::could_advance() const {
  if (missing_.empty()) return published_ && reader() < 0;
  return std::ranges::any_of(missing_, [&](Rank r) { return has_published(r); });
}

std::optional<std::uint32_t> AllToAllExchange::unread(Rank from) const {
  if (from == rank_ || !has_published(from)) return std::nullopt;
  if (published_ && std::ranges::find(missing_, from) == missing_.end()) return std::nullopt;
  return segment_.round(from, tag()).mark;
}

}  // namespace trellis::ccl
