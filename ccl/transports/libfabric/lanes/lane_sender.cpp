#include "ccl/transports/libfabric/lanes/lane_sender.h"

#include <algorithm>

namespace trellis::ccl::libfabric {
namespace {

constexpr std::uint32_t most_outstanding = 16;  // pieces of a message
constexpr std::size_t staged_pieces = 4;
constexpr int looks_unannounced = 3;  // polls for a grant before it announces the message: receivers also grant unasked

}  // namespace

LaneSender::LaneSender(DataPath& path, Rank to, int lane)
    : path_(path), to_(to), lane_(lane), retransmission_(path, to, lane) {}

void LaneSender::drop() {
  source_.reset();
  produced_.drop();
  offers_.clear();
  retransmission_.drop();
  kept_.drop();
  lingers_ = false;
}

void LaneSender::drop_rail(int rail) {
  if (source_) source_->drop_rail(rail);
  produced_.drop_rail(rail);
  retransmission_.drop_rail(rail);
  for (ReceivedGrant& o : offers_) o.grant.drop(rail);  // another rail may take its slot before the next grant comes
  if (lingers_ && retransmission_.doubtful() != 0) path_.resume_later();
}

void LaneSender::begin_again() {
  announced_ = false;
  kept_.begin_again();
  retransmission_.begin_again();
  checksums_.begin_again();
}

void LaneSender::taken(std::uint32_t count) {
  if (static_cast<std::int32_t>(count - taken_) <= 0) return;
  taken_ = count;
  kept_.taken(count);
}

void LaneSender::granted(const PacketHeader& p, const Grant& g) {
  const bool passed = p.number - number_ >= window || (begun_ && p.number == number_ && g.offset < posted_);
  retransmission_.granted(p.number, g);
  offers_.add(p, g, passed);
}

void LaneSender::piece_done(const PieceOut& p, bool well) {
  --outstanding_;
  if (!well) {
    retransmission_.failed(p);
    if (lingers_) path_.resume_later();
  } else if (path_.sends_again()) {
    retransmission_.gone(p);
  }
}

bool LaneSender::resume() {
  if (lingers_) retransmit();  // its operation has ended, so nobody else does
  const bool whole = !lingers_ || retransmission_.doubtful() == 0;
  return kept_.resend([&](const PacketHeader& p, const auto& bytes) {
    return path_.send(to_, p, bytes.data(), bytes.size());
  }) && whole;
}

bool LaneSender::could_advance() const {
  if (!waiting_ || path_.closed() || refused_) return false;
  if (waits_to_be_free_) return has_been_taken();
  if (!begun_) return !full();
  if (posted_ == bytes_) return outstanding_ == 0 && (!path_.sends_again() || has_been_taken());
  return outstanding_ < most_outstanding && path_.takes_pieces() &&
         std::ranges::any_of(offers_, [&](const ReceivedGrant& o) {
           return o.packet.number == number_ && o.packet.bytes == bytes_ && o.packet.mark == mark_;
         });
}

bool LaneSender::advance(Sending& s) {
  const std::lock_guard lock(path_.mutex());
  waiting_ = !advance_now(s);
  return !waiting_;
}

bool LaneSender::advance_now(Sending& s) {
  if (path_.closed()) return false;
  refused_ = false;
  path_.expect_undamaged();
  const bool whole = s.bytes <= path_.eager_bytes();
  waits_to_be_free_ = !whole && !is_free();
  const bool done = whole ? send_eager(s) : !waits_to_be_free_ && send_large(s);
  if (!done) path_.progress();
  return done;
}

PacketHeader LaneSender::packet(PacketHeader::Kind kind, const Sending& s) const {
  return {.kind = kind, .lane = static_cast<std::uint8_t>(lane_), .number = number_, .mark = s.mark, .bytes = s.bytes};
}

bool LaneSender::send_eager(Sending& s) {
  if (full()) return false;
  // After 2^31 more messages, has_been_taken() could no longer tell that the large message was taken.
  if (lingers_ && has_been_taken()) is_free();
  const bool makes = s.producer != nullptr && s.bytes != 0;
  const std::byte* const bytes = makes ? produced_.whole(s) : s.data;
  refused_ = !path_.send(to_, packet(PacketHeader::Kind::eager, s), bytes, s.bytes);
  if (refused_) return false;
  if (path_.sends_again()) kept_.keep(packet(PacketHeader::Kind::eager, s), {bytes, s.bytes});
  produced_.begin();
  ++number_;
  s.done = s.bytes;
  return true;
}

bool LaneSender::begin(Sending& s) {
  if (full()) return false;
  begun_ = true;
  large_ = number_;
  announced_ = false;
  looks_ = 0;
  posted_ = 0;
  bytes_ = s.bytes;
  mark_ = s.mark;
  produced_.begin();
  retransmission_.begin(large_);
  checksums_.begin();
  if (s.producer == nullptr && path_.limits().registers_local)
    source_ = path_.registrations().of(s.data, s.bytes, false);
  return true;
}

// The sender waits for grants. If there are none, or they are for another message, it tells the receiver what it has.
bool LaneSender::send_large(Sending& s) {
  if (!begun_ && !begin(s)) return false;
  bool any = false, fits = true;
  for (const ReceivedGrant& o : offers_) {
    if (o.packet.number != number_) continue;
    any = true;
    fits = fits && o.packet.bytes == s.bytes && o.packet.mark == s.mark;
  }
  if (!announced_ && (!fits || (!any && looks_++ >= looks_unannounced)))
    announced_ = path_.send(to_, packet(PacketHeader::Kind::announce, s), nullptr, 0);
  if (!fits) return false;
  retransmit();
  while (posted_ < s.bytes && outstanding_ < most_outstanding) {
    const auto next = std::ranges::find_if(offers_, [&](const ReceivedGrant& o) {
      return o.packet.number == number_ && o.grant.offset + std::size_t{o.next} * o.grant.piece == posted_;
    });
    if (next == offers_.end() || !send_next_piece(s, *next)) break;
    if (posted_ != next->grant.offset + next->grant.bytes) continue;
    if (path_.checks()) checksums_.end_run(next->grant);
    offers_.erase(next);
  }
  s.done = posted_;
  const bool told = has_been_taken() || checksums_.send_all([&](const GrantChecksum& sum) {
    return path_.send(to_, packet(PacketHeader::Kind::sum, s), &sum, sizeof sum);
  });
  if (!told || posted_ != s.bytes || outstanding_ != 0 || retransmission_.doubtful() != 0) return false;
  if (path_.sends_again() && !has_been_taken()) return linger(s);  // only what was taken has surely arrived
  end_large();
  return true;
}

// Lets the operation end although the message was not taken yet: retransmissions then come from this end's own memory,
// to which a short message is copied, and where a producer's output is anyway. False: the caller's memory is still
// needed.
bool LaneSender::linger(const Sending& s) {
  if (!path_.copies() || (s.producer == nullptr && bytes_ > most_copied)) return false;
  if (s.producer == nullptr) {
    copy_.assign(s.data, s.data + bytes_);
    retransmission_.moved(s.data, copy_.data());
  }
  begun_ = false;
  produced_.begin();
  offers_.end_of(number_++);
  return lingers_ = true;
}

bool LaneSender::is_free() {
  if (!lingers_) return true;
  retransmit();
  if (!has_been_taken() || outstanding_ != 0) return false;
  lingers_ = false;
  retransmission_.end();
  return true;
}

void LaneSender::end_large() {
  begun_ = false;
  retransmission_.end();
  produced_.begin();
  offers_.end_of(number_);
  ++number_;
  source_.reset();
}

void LaneSender::retransmit() {
  if (retransmission_.doubtful() == 0) return;
  if (has_been_taken()) return retransmission_.has_arrived();
  retransmission_.advance([&](PieceOut p) {
    if (outstanding_ == most_outstanding) return false;
    p.rail = path_.rail_for(p.bytes.bytes);
    p.bytes = registered(static_cast<const std::byte*>(p.bytes.data), p.bytes.bytes, p.rail);
    if (!path_.send_piece(to_, p)) return false;
    ++outstanding_;
    return true;
  });
}

std::size_t LaneSender::slots_for(const Grant& g) const {
  return !path_.sends_again() ? staged_pieces : (bytes_ + g.piece - 1) / g.piece;
}

LocalBytes LaneSender::registered(const std::byte* data, std::size_t bytes, int rail) const {
  const RegistrationCache::Use& with = source_ ? source_ : produced_.registered();
  return {.data = data, .bytes = bytes, .descriptor = with ? with->descriptor(rail) : nullptr};
}

bool LaneSender::send_next_piece(Sending& s, ReceivedGrant& o) {
  const Grant& g = o.grant;
  // Produced pieces use the slots in turn: before the first slot is used again, this waits until none is in use.
  if (s.producer != nullptr && outstanding_ + retransmission_.doubtful() != 0 && posted_ / g.piece % slots_for(g) == 0)
    return false;
  const std::size_t bytes = std::min<std::size_t>(g.piece, g.offset + g.bytes - posted_);
  const int rail = path_.rail_for(bytes);
  RegistrationCache* const registrations = path_.limits().registers_local ? &path_.registrations() : nullptr;
  const std::byte* const data = s.producer == nullptr
                                    ? s.data + posted_
                                    : produced_.piece(s, posted_, bytes, g.piece, slots_for(g), registrations);
  PieceOut p;
  p.sender = this;
  p.grant = g;
  p.piece = o.next;
  p.bytes = registered(data, bytes, rail);
  p.rail = rail;
  refused_ = !path_.send_piece(to_, p);
  if (refused_) return false;
  if (path_.checks()) checksums_.add({data, bytes});
  ++outstanding_;
  ++o.next;
  posted_ += bytes;
  return true;
}

}  // namespace trellis::ccl::libfabric
