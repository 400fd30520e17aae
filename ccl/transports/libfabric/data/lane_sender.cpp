#include "ccl/transports/libfabric/data/lane_sender.h"

#include <algorithm>
#include <utility>

#include "kernels/types/crc32c.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::uint32_t most_outstanding = 16;  // pieces of a message
constexpr std::size_t staged_pieces = 4;
constexpr int looks_unannounced = 3;  // for grants, as a receiver that comes at the same time grants without being told
constexpr std::chrono::milliseconds first_patience{100}, longest_patience{2000};  // for the answer to an ask

}  // namespace

// Pieces that a producer makes: a slot is used again when its piece has gone. With several rails there is one for each,
// as a producer makes a piece once.
struct LaneSender::Staged {
  std::size_t bytes = 0;  // of a slot
  std::size_t slots = 0;
  std::unique_ptr<std::byte[]> memory;
  Registrations::Use registered;
};

LaneSender::LaneSender(DataPath& path, Rank to, int lane)
    : path_(path), to_(to), lane_(lane), patience_(first_patience) {}

LaneSender::~LaneSender() = default;

void LaneSender::drop() {
  source_.reset();
  staged_.reset();
  offers_.clear();
  again_.clear();
  ended_.clear();
  kept_.clear();
  lingers_ = false;
}

void LaneSender::drop_rail(int rail) {
  if (source_) source_->drop_rail(rail);
  if (staged_ && staged_->registered) staged_->registered->drop_rail(rail);
  std::erase_if(ended_, [&](const PieceOut& p) {
    if (p.rail != rail) return false;
    again_.push_back({p});
    return true;
  });
  for (Offered& o : offers_) o.grant.drop(rail);  // another rail may take its slot before the next grant comes
  for (Again& a : again_) a.piece.grant.drop(rail);
  if (lingers_ && !again_.empty()) path_.resume_later();
}

void LaneSender::begin_again() {
  resumes_ = true;
  kept_sent_ = 0;
  announced_ = false;
  for (Again& a : again_) a.ask = 0;
  for (Summed& s : sums_) s.sent = false;
}

void LaneSender::taken(std::uint32_t count) {
  if (static_cast<std::int32_t>(count - taken_) <= 0) return;
  taken_ = count;
  while (!kept_.empty() && static_cast<std::int32_t>(taken_ - kept_.front().packet.number) > 0) {
    kept_.pop_front();
    kept_sent_ -= kept_sent_ == 0 ? 0 : 1;
  }
}

void LaneSender::granted(const Packet& p, const Grant& g) {
  const bool passed = p.number - number_ >= window || (begun_ && p.number == number_ && g.offset < posted_);
  if (p.number == large_)
    for (Again& a : again_)
      if (a.piece.grant.first == g.first) a.piece.grant = g;
  offers_.add(p, g, passed);
}

void LaneSender::piece_done(const PieceOut& p, bool well) {
  --outstanding_;
  if (!well) {
    again_.push_back({p});
    if (lingers_) path_.resume_later();
  } else if (path_.sends_again()) {
    ended_.push_back(p);
  }
}

// Ignores answers to earlier requests: those pieces may already have been retransmitted.
void LaneSender::lacking(const Packet& p, std::span<const std::uint32_t> pieces) {
  if (p.number != large_ || p.mark != asks_) return;
  std::erase_if(again_, [&](Again& a) {
    if (a.ask != asks_) return false;
    a.lacking = std::ranges::find(pieces, a.piece.grant.first + a.piece.piece) != pieces.end();
    if (!a.lacking) path_.traffic().had_arrived(to_, a.piece.rail);
    return !a.lacking;
  });
  patience_ = first_patience;
}

bool LaneSender::resume() {
  if (lingers_ && !again_.empty()) send_again();  // nobody else asks for it
  const bool whole = !lingers_ || again_.empty();
  if (!resumes_) return whole;
  for (; kept_sent_ < kept_.size(); ++kept_sent_) {
    const Kept& k = kept_[kept_sent_];
    if (!path_.send(to_, k.packet, k.bytes.data(), k.bytes.size())) return false;
  }
  resumes_ = false;
  return whole;
}

bool LaneSender::could_advance() const {
  if (!waiting_ || path_.closed() || refused_) return false;
  if (waits_to_be_free_) return has_been_taken();
  if (!begun_) return !full();
  if (posted_ == bytes_) return outstanding_ == 0 && (!path_.sends_again() || has_been_taken());
  return outstanding_ < most_outstanding && path_.takes_pieces() && std::ranges::any_of(offers_, [&](const Offered& o) {
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

Packet LaneSender::packet(Packet::Kind kind, const Sending& s) const {
  return {.kind = kind, .lane = static_cast<std::uint8_t>(lane_), .number = number_, .mark = s.mark, .bytes = s.bytes};
}

bool LaneSender::send_eager(Sending& s) {
  if (full()) return false;
  const bool makes = s.producer != nullptr && s.bytes != 0;
  if (makes && made_ == 0) {
    made_small_.resize(s.bytes);
    s.producer->make(s.producer->context, s.message, 0, made_small_.data(), s.bytes);
    made_ = s.bytes;
  }
  const std::byte* const bytes = makes ? made_small_.data() : s.data;
  refused_ = !path_.send(to_, packet(Packet::Kind::eager, s), bytes, s.bytes);
  if (refused_) return false;
  if (path_.sends_again()) {
    if (!resumes_) kept_sent_ = kept_.size() + 1;
    kept_.push_back({packet(Packet::Kind::eager, s), {bytes, bytes + s.bytes}});
  }
  made_ = 0;
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
  posted_ = made_ = 0;
  bytes_ = s.bytes;
  mark_ = s.mark;
  again_.clear();
  ended_.clear();
  sums_.clear();
  checksum_ = 0;
  if (s.producer == nullptr && path_.limits().registers_local)
    source_ = path_.registrations().of(s.data, s.bytes, false);
  return true;
}

// The sender waits for grants. If there are none, or they are for another message, it tells the receiver what it has.
bool LaneSender::send_large(Sending& s) {
  if (!begun_ && !begin(s)) return false;
  bool any = false, fits = true;
  for (const Offered& o : offers_) {
    if (o.packet.number != number_) continue;
    any = true;
    fits = fits && o.packet.bytes == s.bytes && o.packet.mark == s.mark;
  }
  if (!announced_ && (!fits || (!any && looks_++ >= looks_unannounced)))
    announced_ = path_.send(to_, packet(Packet::Kind::announce, s), nullptr, 0);
  if (!fits) return false;
  if (!again_.empty()) send_again();
  while (posted_ < s.bytes && outstanding_ < most_outstanding) {
    const auto next = std::ranges::find_if(offers_, [&](const Offered& o) {
      return o.packet.number == number_ && o.grant.offset + std::size_t{o.next} * o.grant.piece == posted_;
    });
    if (next == offers_.end() || !send_next_piece(s, *next)) break;
    if (posted_ != next->grant.offset + next->grant.bytes) continue;
    end_run(next->grant);
    offers_.erase(next);
  }
  s.done = posted_;
  const bool told = send_sums(s);
  if (!told || posted_ != s.bytes || outstanding_ != 0 || !again_.empty()) return false;
  if (path_.sends_again() && !has_been_taken()) return linger(s);  // only then is it sure that all has arrived
  end_large();
  return true;
}

// True if the caller's memory is no longer needed although the message was not taken yet. A producer's output is in
// this end's own memory anyway.
bool LaneSender::linger(const Sending& s) {
  if (!path_.copies() || (s.producer == nullptr && bytes_ > most_copied)) return false;
  if (s.producer == nullptr) {
    copy_.assign(s.data, s.data + bytes_);
    for (PieceOut& p : ended_) p.bytes.data = copy_.data() + (static_cast<const std::byte*>(p.bytes.data) - s.data);
  }
  begun_ = false;
  made_ = 0;
  offers_.end_of(number_++);
  return lingers_ = true;
}

bool LaneSender::is_free() {
  if (!lingers_) return true;
  if (!again_.empty()) send_again();
  if (!has_been_taken() || outstanding_ != 0) return false;
  lingers_ = false;
  ended_.clear();
  return true;
}

void LaneSender::end_large() {
  begun_ = false;
  ended_.clear();
  made_ = 0;
  offers_.end_of(number_);
  ++number_;
  source_.reset();
}

void LaneSender::end_run(const Grant& g) {
  if (path_.checks())
    sums_.push_back({{.offset = g.offset, .bytes = g.bytes, .checksum = std::exchange(checksum_, 0)}});
}

bool LaneSender::send_sums(const Sending& s) {
  return has_been_taken() || std::ranges::all_of(sums_, [&](Summed& one) {
           one.sent = one.sent || path_.send(to_, packet(Packet::Kind::sum, s), &one.sum, sizeof one.sum);
           return one.sent;
         });
}

void LaneSender::send_again() {
  if (has_been_taken()) {  // what failed had arrived
    for (const Again& a : again_) path_.traffic().had_arrived(to_, a.piece.rail);
    return again_.clear();
  }
  std::erase_if(again_, [&](const Again& a) {
    if (!a.lacking || outstanding_ == most_outstanding) return false;
    PieceOut next = a.piece;
    next.rail = path_.rail_for(next.bytes.bytes);
    describe(next.bytes, next.rail);
    if (!path_.send_piece(to_, next)) return false;
    ++outstanding_;
    return true;
  });
  ask();
}

// Asks the receiver which of the pieces that can no longer arrive it lacks.
void LaneSender::ask() {
  const Deadline now = Clock::now();
  const auto fit = [&](const Again& a) { return !a.lacking && path_.is_over(to_, a.piece.rail); };
  const bool fresh = std::ranges::any_of(again_, [&](const Again& a) { return a.ask == 0 && fit(a); });
  if (!fresh && now - asked_ < patience_) return;
  const std::size_t most = std::min(most_pieces_asked, path_.eager_bytes() / sizeof(std::uint32_t));
  std::vector<std::uint32_t> pieces;
  for (const Again& a : again_)
    if (fit(a) && pieces.size() < most) pieces.push_back(a.piece.grant.first + a.piece.piece);
  if (pieces.empty()) return;
  const Packet p{.kind = Packet::Kind::ask,
                 .lane = static_cast<std::uint8_t>(lane_),
                 .number = large_,
                 .mark = asks_ + 1,
                 .bytes = pieces.size()};
  if (!path_.send(to_, p, pieces.data(), pieces.size() * sizeof pieces[0])) return;
  ++asks_;
  asked_ = now;
  patience_ = std::min(2 * patience_, longest_patience);
  std::size_t left = pieces.size();
  for (Again& a : again_)
    if (fit(a) && left != 0) a.ask = asks_, --left;
}

// Where the next bytes are: in the caller's memory, or in a slot into which the producer has put them.
LocalBytes LaneSender::bytes_of(Sending& s, const Grant& g, std::size_t bytes, int rail) {
  if (s.producer == nullptr) {
    LocalBytes found{.data = s.data + posted_, .bytes = bytes};
    describe(found, rail);
    return found;
  }
  const std::size_t slots = slots_for(g);
  if (!staged_ || staged_->bytes < g.piece || staged_->slots < slots) {
    staged_ = std::make_unique<Staged>();
    staged_->bytes = g.piece;
    staged_->slots = slots;
    staged_->memory = std::make_unique_for_overwrite<std::byte[]>(slots * staged_->bytes);
    if (path_.limits().registers_local)
      staged_->registered = path_.registrations().alone(staged_->memory.get(), slots * staged_->bytes, false);
  }
  std::byte* const slot = staged_->memory.get() + posted_ / g.piece % slots * staged_->bytes;
  if (made_ <= posted_) {
    s.producer->make(s.producer->context, s.message, posted_, slot, bytes);
    made_ = posted_ + bytes;
  }
  LocalBytes found{.data = slot, .bytes = bytes};
  describe(found, rail);
  return found;
}

std::size_t LaneSender::slots_for(const Grant& g) const {
  return !path_.sends_again() ? staged_pieces : (bytes_ + g.piece - 1) / g.piece;
}

void LaneSender::describe(LocalBytes& b, int rail) const {
  const Registrations::Use& registered = !source_ && staged_ ? staged_->registered : source_;
  b.descriptor = registered ? registered->descriptor(rail) : nullptr;
}

bool LaneSender::send_next_piece(Sending& s, Offered& o) {
  const Grant& g = o.grant;
  // When all slots may be in use, it waits until none is.
  if (s.producer != nullptr && outstanding_ + again_.size() != 0 && posted_ / g.piece % slots_for(g) == 0) return false;
  const std::size_t bytes = std::min<std::size_t>(g.piece, g.offset + g.bytes - posted_);
  const int rail = path_.rail_for(bytes);
  PieceOut p;
  p.sender = this;
  p.grant = g;
  p.piece = o.next;
  p.bytes = bytes_of(s, g, bytes, rail);
  p.rail = rail;
  refused_ = !path_.send_piece(to_, p);
  if (refused_) return false;
  if (path_.checks()) checksum_ = kernels::crc32c({static_cast<const std::byte*>(p.bytes.data), bytes}, checksum_);
  ++outstanding_;
  ++o.next;
  posted_ += bytes;
  return true;
}

}  // namespace trellis::ccl::libfabric
