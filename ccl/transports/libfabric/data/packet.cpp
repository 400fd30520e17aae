#include "ccl/transports/libfabric/data/packet.h"

#include <cstring>

#include "ccl/transports/libfabric/data/landings.h"

namespace trellis::ccl::libfabric {
namespace {

bool is_of_data(MessageKind k) { return k >= MessageKind::eager && k <= MessageKind::lack; }

bool is_for(const Addressee& a, const Packet& p) {
  return p.token == a.token && p.to == a.rank && p.from >= 0 && p.from < a.ranks && p.from != a.rank &&
         p.lane < a.lanes;
}

// It is part of the message, in pieces that can be numbered.
bool makes_sense(const Grant& g, const Packet& p) {
  return g.piece != 0 && g.bytes != 0 && g.offset <= p.bytes && g.bytes <= p.bytes - g.offset &&
         (g.bytes - 1) / g.piece < Landings::most_pieces;
}

}  // namespace

std::size_t payload_bytes(const Packet& p) {
  switch (p.kind) {
    case MessageKind::eager:
      return p.bytes;
    case MessageKind::grant:
      return sizeof(Grant);
    case MessageKind::ask:
    case MessageKind::lack:
      return p.bytes * sizeof(std::uint32_t);
    default:
      return 0;
  }
}

Grant grant_in(std::span<const std::byte> payload) {
  Grant g;
  std::memcpy(&g, payload.data(), sizeof g);
  return g;
}

bool read_packet(std::span<const std::byte> from, const Addressee& a, Packet& p) {
  if (from.size() < sizeof p || !is_of_data(static_cast<MessageKind>(from[0])) ||
      from[1] != std::byte{protocol_version})
    return false;
  std::memcpy(&p, from.data(), sizeof p);
  const bool lists = p.kind == MessageKind::ask || p.kind == MessageKind::lack;
  if (!is_for(a, p) || (lists && p.bytes > most_pieces_asked)) return false;
  if (payload_bytes(p) > from.size() - sizeof p) return false;
  return p.kind != MessageKind::grant || makes_sense(grant_in(payload_of(p, from)), p);
}

}  // namespace trellis::ccl::libfabric
