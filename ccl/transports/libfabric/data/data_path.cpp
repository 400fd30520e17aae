#include "ccl/transports/libfabric/data/data_path.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ccl/transports/libfabric/control/control_link.h"
#include "ccl/transports/libfabric/data/register_region.h"
#include "ccl/transports/libfabric/lanes/lane_receiver.h"
#include "ccl/transports/libfabric/lanes/lane_sender.h"
#include "ccl/transports/libfabric/wire/address_list.h"
#include "ccl/transports/libfabric/wire/open_wire.h"
#include "ccl/transports/message.h"
#include "net/sha256.h"
#include "text/refuse.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::size_t usual_eager = std::size_t{32} << 10;
constexpr std::size_t least_piece = std::size_t{32} << 10, usual_piece = std::size_t{512} << 10;
constexpr std::size_t slowest = 125'000;  // bytes a second, of the slowest link that still counts as alive

// This rank's number among the ranks of its host.
LocalRank among_ranks(const Roster& roster) {
  LocalRank among{.rank = 0, .ranks = 0};
  for (Rank r = 0; r < roster.ranks(); ++r) {
    if (!roster.here(r)) continue;
    among.rank += r < roster.rank() ? 1 : 0;
    ++among.ranks;
  }
  return among;
}

// Three quarters of the operations that a wire takes at a time: packets take the others and need not wait behind
// pieces.
std::size_t pieces_of(std::size_t outstanding) { return outstanding - outstanding / 4; }

// The most bytes of a piece. An arriving piece counts as a heartbeat, so over the slowest link it must take only a part
// of the timeout.
std::size_t in_time(std::chrono::milliseconds timeout) {
  constexpr std::size_t parts = 12, page = 4096;
  return slowest * static_cast<std::size_t>(timeout.count()) / 1000 / parts / page * page;
}

}  // namespace

DataPath::DataPath(const FabricSettings& s, bool on_device, std::shared_ptr<Presence> p, std::shared_ptr<ControlLink> c,
                   int lanes)
    : presence_(std::move(p)),
      control_(std::move(c)),
      settings_(s),
      use_{.among = among_ranks(presence_->roster()), .device_memory = on_device},
      rails_(s.rails),
      registrations_(static_cast<std::size_t>(s.registrations),
                     [this](const RegistrationCache::Range& r, bool for_peers) { return registered(r, for_peers); }),
      ends_(*this, presence_->roster().ranks(), lanes),
      traffic_(presence_->roster().ranks()),
      monitor_(*presence_, *control_, rails_, traffic_),
      watch_(device::watched_memory().watch([this](const std::byte* begin, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        registrations_.end(begin, bytes);
      })) {
  for (int rail = 0; rail < s.rails; ++rail)
    wires_.push_back(open_wire(s, static_cast<std::uint64_t>(presence_->roster().rank()), rail, rail, use_));
  limits_ = common_limits(wires_);
  rails_ = RailLoadBalancer(s.rails, pieces_of(limits_.outstanding));
  landings_ = PieceArrivalTracker(limits_.places, net::random_number());
  eager_bytes_ = std::min(usual_eager, limits().message - sizeof(PacketHeader));
  most_piece_ = std::clamp(in_time(presence_->lock().detector().timeout()), least_piece, usual_piece);
  known_.resize(static_cast<std::size_t>(presence_->roster().ranks()));
  packets_ = std::make_unique<PacketChannel>(sizeof(PacketHeader) + std::max(eager_bytes_, sizeof(Grant)),
                                             limits().outstanding);
  packets_->open(wire(packet_rail()), packet_rail());
}

DataPath::~DataPath() {
  watch_.reset();
  close();
}

void DataPath::close() {
  if (closed()) return;
  for (const auto& wire : wires_)
    if (wire) wire->end();
  ends_.each([](auto& end) { end.drop(); });
  registrations_.drop();
  packets_.reset();
  wires_.clear();
  monitor_.end();
}

RegisteredMemory DataPath::registered(const RegistrationCache::Range& r, bool for_peers) {
  std::vector<std::unique_ptr<MemoryRegion>> regions;
  for (const auto& wire : wires_) regions.push_back(wire ? register_region(*wire, r, for_peers) : nullptr);
  return {r, for_peers, std::move(regions)};
}

// Remote writes choose a rail by load; tagged messages use the rail on which their receives are posted.
int DataPath::rail_for(std::size_t bytes) const { return limits().writes ? rails_.choose(bytes) : packet_rail(); }

std::vector<std::byte> DataPath::address() const {
  return address_list(std::span(wires_).subspan(static_cast<std::size_t>(packet_rail())));
}

// Peers send their wires' addresses when asked; until then the address is unknown.
fi_addr_t DataPath::address_of(Rank r, int rail) {
  PeerAddresses& peer = known(r);
  const auto at = static_cast<std::size_t>(rail);
  if (peer.addresses.size() < wires_.size()) peer.addresses.resize(wires_.size(), FI_ADDR_UNSPEC);
  if (peer.addresses[at] != FI_ADDR_UNSPEC) return peer.addresses[at];
  const PublicState theirs = presence_->lock().states().of(r);
  const auto addresses = addresses_in(theirs.address);
  const auto first = static_cast<std::size_t>(RailSet(theirs.head.rails_left).first_outside());  // its first open rail
  if (at < first || addresses.size() <= at - first || addresses[at - first].empty()) {
    if (!addresses.empty() && first + addresses.size() < static_cast<std::size_t>(settings_.rails))
      text::refuse("rank {} has fewer than our {} rails: expected the same TRELLIS_RAILS", r, settings_.rails);
    if (peer.is_to_be_asked(Clock::now())) {
      presence_->lock().heartbeats().ask(r, Clock::now());
      control_->wake();
    }
    return FI_ADDR_UNSPEC;
  }
  return peer.addresses[at] = wire(rail).know(addresses[at - first], static_cast<std::uint32_t>(r));
}

bool DataPath::send(Rank to, PacketHeader packet, const void* more, std::size_t more_bytes) {
  if (!known(to).moved) return false;
  const int rail = packet_rail();
  const fi_addr_t address = address_of(to, rail);
  if (address == FI_ADDR_UNSPEC) return false;
  const std::span payload(static_cast<const std::byte*>(more), more_bytes);
  packet.token = presence_->roster().identity();
  packet.from = presence_->roster().rank();
  packet.to = to;
  LaneReceiver* const back = ends_.known_receiver(to, packet.lane);
  packet.taken = back == nullptr ? 0 : back->taken();
  if (checks()) packet.checksum = checksum_of(packet, payload);
  if (!packets_->send(address, packet, payload, settings_.rails == 1)) return false;
  if (back != nullptr) back->told();
  traffic_.sent(to, rail);
  return true;
}

bool DataPath::send_piece(Rank to, const PieceOut& p) {
  const fi_addr_t address = address_of(to, p.rail);
  // A rail that was opened after the grant is not in it: this waits until the receiver has sent the grant again.
  if (address == FI_ADDR_UNSPEC || rails_.full(p.rail) || !p.grant.is_for(p.rail)) return false;
  PieceOut& op = pieces_out_.next();
  op = p;
  op.what = WireOperation::What::piece_out;
  const std::size_t at = slot_of(p.rail);
  const WriteTarget target{address, p.grant.address[at] + std::uint64_t{p.piece} * p.grant.piece, p.grant.key[at]};
  const std::uint32_t number = p.grant.first + p.piece;
  op.posted = Clock::now();
  op.under_way = true;
  const bool sent = limits().writes ? wire(p.rail).write(target, p.bytes, number, op)
                                    : wire(p.rail).send_tagged(address, p.bytes, number, op);
  op.under_way = sent;
  if (!sent) return false;
  pieces_out_.free.pop_back();
  rails_.posted(op.rail, op.bytes.bytes, op.posted);
  traffic_.sent(to, op.rail);
  return true;
}

bool DataPath::receive_piece(const LocalBytes& b, std::uint32_t number) {
  PieceIn& op = pieces_in_.next();
  op.what = WireOperation::What::piece_in;
  op.number = number;
  if (!wire(packet_rail()).receive_tagged(b, number, op)) return false;
  pieces_in_.free.pop_back();
  return true;
}

void DataPath::progress() {
  if (closed()) return;
  packets_->repeat();
  std::array<WireEvent, 16> events;
  for (int rail = packet_rail(); rail < rails(); ++rail)
    for (int rounds = 0; rounds < 4 && has_rail(rail); ++rounds) {
      const std::size_t count = wire(rail).poll(events);
      for (std::size_t i = 0; i < count; ++i) happened(events[i], rail);
      packets_->post_receives();
      if (count < events.size()) break;
    }
  look_after_rails();
  if (!all_moved_ || !all_resumed_ || !all_told_) begin_again_with_those_who_moved();
}

void DataPath::happened(const WireEvent& e, int rail) {
  if (e.what == WireEvent::What::immediate) return land(e.immediate, rail);
  if (e.operation == nullptr) return;
  const bool well = e.what == WireEvent::What::done;
  switch (e.operation->what) {
    case WireOperation::What::packet_in: {
      auto* const b = static_cast<PacketBuffer*>(e.operation);
      packets_->received();
      return well ? take(b) : packets_->give(b);
    }
    case WireOperation::What::packet_out: {
      // A failed packet is sent again for as long as its receiver may be alive: no other packet says the same. The
      // receiver drops a duplicate by its number.
      auto* const b = static_cast<PacketBuffer*>(e.operation);
      return packets_->sent(b, well || presence_->lock().states().left(b->peer));
    }
    case WireOperation::What::piece_in: {
      auto* const in = static_cast<PieceIn*>(e.operation);
      if (well) land(in->number, rail);
      return pieces_in_.free.push_back(in);
    }
    case WireOperation::What::piece_out: {
      auto* const out = static_cast<PieceOut*>(e.operation);
      rails_.done(out->rail, out->bytes.bytes, out->posted, well, Clock::now());
      return piece_ended(*out, well);
    }
  }
}

void DataPath::piece_ended(PieceOut& p, bool well) {
  p.under_way = false;
  if (!well) traffic_.failed(p.sender->to(), p.rail);
  p.sender->piece_done(p, well);
  pieces_out_.free.push_back(&p);
}

void DataPath::land(std::uint32_t piece, int rail) {
  if (const Rank from = landings_.land(piece); from >= 0) traffic_.arrived(from, rail);
}

void DataPath::expect_undamaged() const {
  if (damaged_by_) throw MessageDamaged{.sender = *damaged_by_};
}

void DataPath::take(PacketBuffer* b) {
  const std::span<const std::byte> all(b->data, b->pool->packet_bytes());
  const ReceiverIdentity self{presence_->roster().identity(), presence_->roster().rank(), presence_->roster().ranks(),
                              ends_.lanes()};
  if (checks())
    if (const auto from = sender_of_damaged(all, self)) {
      damaged_by_ = from;
      if (*from >= 0) traffic_.arrived(*from, b->rail);  // counted as arrived, so that its sender does not wait
      return packets_->give(b);
    }
  PacketHeader p;
  if (!read_packet(all, self, p)) return packets_->give(b);
  const std::span<const std::byte> payload = payload_of(p, all);
  traffic_.arrived(p.from, b->rail);
  LaneSender& there = ends_.sender(p.from, p.lane);
  there.taken(p.taken);
  if (p.kind == PacketHeader::Kind::sum) ends_.receiver(p.from, p.lane).summed(p, sum_in(payload));
  if (p.kind == PacketHeader::Kind::grant) there.granted(p, grant_in(payload));
  if (p.kind == PacketHeader::Kind::ask || p.kind == PacketHeader::Kind::lack) {
    std::vector<std::uint32_t> pieces(p.bytes);
    if (!pieces.empty()) std::memcpy(pieces.data(), payload.data(), payload.size());
    if (p.kind == PacketHeader::Kind::lack)
      there.lacking(p, pieces);
    else
      ends_.receiver(p.from, p.lane).asked(p, std::move(pieces));
  }
  const bool message = p.kind == PacketHeader::Kind::eager || p.kind == PacketHeader::Kind::announce;
  if (!message || !ends_.receiver(p.from, p.lane).arrive(p, b)) packets_->give(b);
}

bool DataPath::could_advance() const {
  return ends_.any([](const auto& end) { return end.could_advance(); });
}

std::optional<std::uint32_t> DataPath::unread(Rank from, int lane) const {
  const LaneReceiver* const end = ends_.known_receiver(from, lane);
  return end != nullptr ? end->unread() : std::nullopt;
}

bool DataPath::all_arrived(Deadline heard_since) {
  bool all = true;
  const auto p = presence_->lock();
  const Deadline now = Clock::now();
  for (Rank r = 0; r < presence_->roster().ranks(); ++r) {
    const bool moved = known(r).moved;
    const RailCounts& sent = traffic_.sent_to(r);
    const RailSet left = rails_.left() | p.states().rails_left_by(r);
    const RailCounts& arrived = p.states().of(r).head.arrived;
    const bool nothing = sent == RailCounts{} && (all_resumed_ || !moved);  // nothing was sent, nor has to be resent
    bool whole = true;
    for (int rail = packet_rail(); rail < rails(); ++rail)
      whole = whole && (left.has(rail) || arrived[slot_of(rail)] >= sent[slot_of(rail)]);
    if (nothing || !p.verdict().alive(r, now)) continue;  // a rank that has left may never report
    if (p.detector().last_heard(r) < heard_since) continue;
    if (moved && all_resumed_ && p.states().rails_left_by(r).first_outside() == packet_rail() && whole) continue;
    p.heartbeats().ask(r, now);
    all = false;
  }
  return all;
}

std::size_t DataPath::memory_bytes() const { return (packets_ ? packets_->memory_bytes() : 0) + ends_.memory_bytes(); }

}  // namespace trellis::ccl::libfabric
