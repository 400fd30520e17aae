#include "ccl/transports/libfabric/lanes/lane_receiver.h"

#include <algorithm>

#include "kernels/types/crc32c.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::size_t least_placed_piece = std::size_t{128} << 10;  // smallest piece if rails share a message
constexpr std::size_t page = 4096;
constexpr std::size_t tagged_pieces = 8;  // of a grant: their receives are posted before it is sent
constexpr std::size_t placed_grants = 2;
constexpr std::size_t staged_piece = std::size_t{128} << 10;
constexpr std::size_t staged_grants = 4;

}  // namespace

// Room for pieces that are processed as they arrive.
struct LaneReceiver::Slots {
  std::unique_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(staged_grants * staged_piece);
  RegistrationCache::Use registered;
  std::size_t next = 0;
};

LaneReceiver::LaneReceiver(DataPath& path, Rank from, int lane) : path_(path), from_(from), lane_(lane) {}

LaneReceiver::~LaneReceiver() = default;

void LaneReceiver::drop() {
  place_.reset();
  slots_.reset();
  open_.clear();
  asked_.reset();
}

void LaneReceiver::drop_rail(int rail) {
  if (place_) place_->drop_rail(rail);
  if (slots_ && slots_->registered) slots_->registered->drop_rail(rail);
}

std::size_t LaneReceiver::memory_bytes() const { return sizeof *this + (slots_ ? staged_grants * staged_piece : 0); }

bool LaneReceiver::arrive(const PacketHeader& p, PacketBuffer* b) {
  if (p.number - number_ >= window) {  // a duplicate: it was taken, but its sender may not know that
    tell_taken();
    return false;
  }
  Arrived& a = window_[p.number % window];
  if (a.buffer != nullptr) return false;
  const bool whole = p.kind == PacketHeader::Kind::eager;
  a = {.there = true, .packet = p, .buffer = whole ? b : nullptr};
  return whole;
}

// Called when packets may be lost. resume() soon tells again how much was taken. The operation, when it goes on, sends
// its grants again and posts its receives again.
void LaneReceiver::begin_again() {
  resumes_ = true;
  told_ = number_ - 1;
  for (Opened& o : open_) {
    o.sent = false;
    o.posted = 0;
  }
}

bool LaneReceiver::resume() {
  resumes_ = resumes_ && told_ != number_ && !tell_taken();
  if (asked_ && answer()) asked_.reset();
  return !resumes_ && !asked_;
}

bool LaneReceiver::could_advance() const {
  if (!waiting_) return false;
  if (!begun_) return next().there;
  return open_.empty() ? path_.landings().has_room(next().there) : first_complete();
}

bool LaneReceiver::advance(Receiving& r) {
  const std::lock_guard lock(path_.mutex());
  waiting_ = !advance_now(r);
  return !waiting_;
}

bool LaneReceiver::advance_now(Receiving& r) {
  if (path_.closed()) return false;
  path_.expect_undamaged();
  if (!begun_ && !next().there) path_.progress();
  if (next().there) check(r);
  return r.bytes <= path_.eager_bytes() ? receive_eager(r) : receive_large(r);
}

void LaneReceiver::check(const Receiving& r) const {
  const PacketHeader& p = next().packet;
  if (p.bytes == r.bytes && p.mark == r.mark) return;
  throw MessageMismatch{
      .sender = from_, .bytes = p.bytes, .due = r.bytes, .whole = true, .mark = p.mark, .mark_due = r.mark};
}

// Tells the sender that a large message was taken. A sender that may have to retransmit waits for that. There is no
// hurry if it has copied the message: then only its next large message waits, and the grant for that one tells it as
// well.
void LaneReceiver::finish(std::size_t large) {
  next() = {};
  ++number_;
  const bool many = number_ - told_ >= window / 2;
  if (!many && !(large != 0 && path_.sends_again())) return;
  const bool copied = large != 0 && large <= most_copied && path_.copies();
  if (!(copied && !many) && tell_taken()) return;
  resumes_ = true;
  if (copied)
    path_.tell_soon();
  else
    path_.resume_later();
}

// Answers which pieces are missing. If there is no room for the answer, it is kept, because the sender waits ever
// longer before it asks again. The sender heeds only the answer to its last request.
void LaneReceiver::asked(const PacketHeader& p, std::vector<std::uint32_t> pieces) {
  if (asked_ && static_cast<std::int32_t>(p.mark - asked_->packet.mark) < 0) return;
  asked_ = {p, std::move(pieces)};
  if (answer())
    asked_.reset();
  else
    path_.resume_later();
}

bool LaneReceiver::answer() {
  if (asked_->packet.number != number_) return tell_taken();
  std::vector<std::uint32_t>& pieces = asked_->pieces;
  std::erase_if(pieces, [&](std::uint32_t piece) { return !path_.landings().lacks(piece); });
  const PacketHeader lack{.kind = PacketHeader::Kind::lack,
                          .lane = static_cast<std::uint8_t>(lane_),
                          .number = number_,
                          .mark = asked_->packet.mark,
                          .bytes = pieces.size()};
  return path_.send(from_, lack, pieces.data(), pieces.size() * sizeof pieces[0]);
}

void LaneReceiver::summed(const PacketHeader& p, const GrantChecksum& s) {
  const auto one =
      std::ranges::find_if(open_, [&](const Opened& o) { return o.offset == s.offset && o.bytes == s.bytes; });
  if (p.number == number_ && one != open_.end()) one->checksum = s.checksum;
}

bool LaneReceiver::tell_taken() {
  return path_.send(from_,
                    {.kind = PacketHeader::Kind::credit, .lane = static_cast<std::uint8_t>(lane_), .number = number_},
                    nullptr, 0);
}

bool LaneReceiver::receive_eager(Receiving& r) {
  PacketBuffer* const b = next().buffer;
  if (b == nullptr) return false;
  if (r.bytes != 0) r.consumer.take(r.consumer.context, r.consumer.message, 0, b->data + sizeof(PacketHeader), r.bytes);
  r.done = r.bytes;
  path_.give(b);
  finish(0);
  return true;
}

void LaneReceiver::begin(Receiving& r) {
  begun_ = true;
  granted_ = 0;
  const bool registers = path_.limits().writes || path_.limits().registers_local;
  if (r.place != nullptr) {
    if (registers) place_ = path_.registrations().of(r.place, r.bytes, true);
    return;
  }
  if (slots_) return;
  slots_ = std::make_unique<Slots>();
  if (registers)
    slots_->registered = path_.registrations().alone(slots_->memory.get(), staged_grants * staged_piece, true);
}

// The size of a piece that gives each rail a part of the message.
std::size_t LaneReceiver::placed_piece_of(std::size_t bytes) const {
  const auto rails = static_cast<std::size_t>(path_.open_rails());
  const std::size_t share = (bytes + rails - 1) / rails;
  const std::size_t most = path_.most_piece();
  return rails == 1 ? most : std::clamp((share + page - 1) / page * page, std::min(least_placed_piece, most), most);
}

void LaneReceiver::grant_more(Receiving& r) {
  const bool placed = r.place != nullptr;
  const std::size_t piece =
      std::min({placed ? placed_piece_of(r.bytes) : staged_piece, path_.most_piece(), path_.limits().piece});
  const std::size_t pieces = !placed                 ? 1
                             : path_.limits().writes ? std::size_t{PieceArrivalTracker::most_pieces}
                                                     : tagged_pieces;
  while (granted_ < r.bytes && open_.size() < (placed ? placed_grants : staged_grants)) {
    Opened o{.offset = granted_, .bytes = std::min(r.bytes - granted_, pieces * piece)};
    o.pieces = static_cast<std::uint32_t>((o.bytes + piece - 1) / piece);
    const auto first = path_.landings().open(o.pieces, from_, next().there);
    if (!first) return;
    o.first = *first;
    if (!placed) o.slot = slots_->next++ % staged_grants;
    o.to = placed ? r.place + granted_ : slots_->memory.get() + o.slot * staged_piece;
    o.grant = {.offset = o.offset, .bytes = o.bytes, .piece = static_cast<std::uint32_t>(piece), .first = o.first};
    granted_ += o.bytes;
    open_.push_back(o);
  }
}

// If pieces are tagged messages, posts a receive for each: the sender may only begin then. False: not all could be
// posted.
bool LaneReceiver::post_pieces(Opened& o) {
  if (path_.limits().writes) return true;
  const RegistrationCache::Use& registered = registered_with(o);
  for (; o.posted < o.pieces; ++o.posted) {
    if (path_.landings().there(o.first + o.posted)) continue;
    const std::size_t at = std::size_t{o.posted} * o.grant.piece;
    const LocalBytes room{o.to + at, std::min<std::size_t>(o.grant.piece, o.bytes - at),
                          registered ? registered->descriptor(path_.packet_rail()) : nullptr};
    if (!path_.receive_piece(room, o.first + o.posted)) return false;
  }
  return true;
}

// Writes into the grant where the sender shall put the pieces: address and key for each rail.
void LaneReceiver::name_place(Opened& o) const {
  const RegistrationCache::Use& registered = registered_with(o);
  o.grant.rails = 0;
  for (int rail = path_.packet_rail(); rail < path_.rails(); ++rail) {
    if (!path_.has_rail(rail) || (registered && !registered->has(rail))) continue;
    o.grant.add(rail);
    if (!registered) continue;
    o.grant.address[slot_of(rail)] = registered->address(rail, o.to);
    o.grant.key[slot_of(rail)] = registered->key(rail);
  }
}

const RegistrationCache::Use& LaneReceiver::registered_with(const Opened& o) const {
  const bool staged =
      slots_ && o.to >= slots_->memory.get() && o.to < slots_->memory.get() + staged_grants * staged_piece;
  return staged ? slots_->registered : place_;
}

void LaneReceiver::send_grants(const Receiving& r) {
  for (Opened& o : open_) {
    if (o.sent) continue;
    if (!post_pieces(o)) return;
    name_place(o);
    const PacketHeader p{.kind = PacketHeader::Kind::grant,
                         .lane = static_cast<std::uint8_t>(lane_),
                         .number = number_,
                         .mark = r.mark,
                         .bytes = r.bytes};
    if (!path_.send(from_, p, &o.grant, sizeof o.grant)) return;
    o.sent = true;
  }
}

bool LaneReceiver::receive_large(Receiving& r) {
  if (!begun_) begin(r);
  for (;;) {
    grant_more(r);
    send_grants(r);
    if (!first_complete()) {
      path_.progress();
      if (!first_complete()) break;
    }
    const Opened o = open_.front();
    if (o.checksum && kernels::crc32c({o.to, o.bytes}) != *o.checksum) throw MessageDamaged{.sender = from_};
    open_.pop_front();
    path_.landings().close(o.first);
    if (r.place == nullptr)
      r.consumer.take(r.consumer.context, r.consumer.message, o.offset, slots_->memory.get() + o.slot * staged_piece,
                      o.bytes);
    r.done = o.offset + o.bytes;
    if (r.done != r.bytes) continue;
    begun_ = false;
    place_.reset();
    finish(r.bytes);
    return true;
  }
  if (open_.empty()) return false;
  const Opened& o = open_.front();
  r.done = std::max(r.done, o.offset + std::size_t{path_.landings().landed(o.first)} * o.grant.piece);
  r.done = std::min(r.done, r.bytes - 1);
  return false;
}

}  // namespace trellis::ccl::libfabric
