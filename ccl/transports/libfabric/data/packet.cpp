#include "ccl/transports/libfabric/data/packet.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ccl/transports/libfabric/lanes/piece_arrival_tracker.h"
#include "kernels/types/crc32c.h"

namespace trellis::ccl::libfabric {
namespace {

constexpr std::array kinds_of_data = {MessageKind::eager,  MessageKind::announce, MessageKind::grant,
                                      MessageKind::credit, MessageKind::ask,      MessageKind::lack,
                                      MessageKind::sum};

bool is_of_data(MessageKind k) { return std::ranges::find(kinds_of_data, k) != kinds_of_data.end(); }

bool is_for(const ReceiverIdentity& a, const PacketHeader& p) {
  return p.token == a.token && p.to == a.rank && p.from >= 0 && p.from < a.ranks && p.from != a.rank &&
         p.lane < a.lanes;
}

bool lists_pieces(const PacketHeader& p) { return p.kind == MessageKind::ask || p.kind == MessageKind::lack; }

bool is_part_of(const PacketHeader& p, std::uint64_t offset, std::uint64_t bytes) {
  return bytes != 0 && offset <= p.bytes && bytes <= p.bytes - offset;
}

// True if the grant lies within the message, in no more pieces than can be numbered.
bool makes_sense(const Grant& g, const PacketHeader& p) {
  return g.piece != 0 && is_part_of(p, g.offset, g.bytes) && (g.bytes - 1) / g.piece < PieceArrivalTracker::most_pieces;
}

bool is_whole(const PacketHeader& p, std::span<const std::byte> from) {
  const std::size_t payload = payload_bytes(p);
  return payload <= from.size() - sizeof p && p.checksum == checksum_of(p, from.subspan(sizeof p, payload));
}

// True if the checksum is right once the packet has the version, token, receiver and one of the kinds of a packet to
// this rank: then it was sent to this rank, and only these fields were damaged.
bool was_to(const ReceiverIdentity& a, PacketHeader p, std::span<const std::byte> from) {
  p.version = protocol_version;
  p.token = a.token;
  p.to = a.rank;
  for (const MessageKind kind : kinds_of_data) {
    p.kind = kind;
    if (is_whole(p, from)) return true;
  }
  return false;
}

}  // namespace

std::size_t payload_bytes(const PacketHeader& p) {
  switch (p.kind) {
    case MessageKind::eager:
      return p.bytes;
    case MessageKind::grant:
      return sizeof(Grant);
    case MessageKind::sum:
      return sizeof(GrantChecksum);
    case MessageKind::ask:
    case MessageKind::lack:
      return std::min<std::uint64_t>(p.bytes, most_pieces_asked + 1) * sizeof(std::uint32_t);
    default:
      return 0;
  }
}

Grant grant_in(std::span<const std::byte> payload) {
  Grant g;
  std::memcpy(&g, payload.data(), sizeof g);
  return g;
}

GrantChecksum sum_in(std::span<const std::byte> payload) {
  GrantChecksum s;
  std::memcpy(&s, payload.data(), sizeof s);
  return s;
}

std::uint32_t checksum_of(const PacketHeader& p, std::span<const std::byte> payload) {
  PacketHeader head = p;
  head.checksum = 0;
  return kernels::crc32c(payload, kernels::crc32c(std::as_bytes(std::span(&head, 1))));
}

std::optional<Rank> sender_of_damaged(std::span<const std::byte> from, const ReceiverIdentity& a) {
  PacketHeader p;
  if (from.size() < sizeof p) return std::nullopt;
  std::memcpy(&p, from.data(), sizeof p);
  const bool is_to = is_of_data(p.kind) && p.version == protocol_version && p.token == a.token && p.to == a.rank;
  if (is_to ? is_whole(p, from) : !was_to(a, p, from)) return std::nullopt;
  PacketHeader whole = p;
  for (whole.from = 0; whole.from < a.ranks; ++whole.from)  // perhaps only the sender's number was damaged
    if (is_to && whole.from != a.rank && is_whole(whole, from)) return whole.from;
  return p.from >= 0 && p.from < a.ranks && p.from != a.rank ? p.from : -1;
}

bool read_packet(std::span<const std::byte> from, const ReceiverIdentity& a, PacketHeader& p) {
  if (from.size() < sizeof p || !is_of_data(static_cast<MessageKind>(from[0])) ||
      from[1] != std::byte{protocol_version})
    return false;
  std::memcpy(&p, from.data(), sizeof p);
  if (!is_for(a, p) || (lists_pieces(p) && p.bytes > most_pieces_asked)) return false;
  if (payload_bytes(p) > from.size() - sizeof p) return false;
  if (p.kind == MessageKind::sum) {
    const GrantChecksum s = sum_in(payload_of(p, from));
    return is_part_of(p, s.offset, s.bytes);
  }
  return p.kind != MessageKind::grant || makes_sense(grant_in(payload_of(p, from)), p);
}

}  // namespace trellis::ccl::libfabric
