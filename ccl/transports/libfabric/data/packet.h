// Layout of the messages between the ranks of a communicator. Ranks of different versions refuse each other as they
// join.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ccl/errors.h"
#include "ccl/transports/libfabric/rails/rail_set.h"
#include "ccl/transports/libfabric/wire/message_kind.h"

namespace trellis::ccl::libfabric {

inline constexpr std::size_t most_pieces_asked = 1000;
// Messages of a lane that its sender may have under way before the receiver has taken them.
inline constexpr std::uint32_t window = 16;
// Messages of at most this many bytes may be copied so that their operation can end: that takes less time than to hear
// that they were taken.
inline constexpr std::size_t most_copied = std::size_t{128} << 10;

struct PacketHeader {
  using Kind = MessageKind;
  Kind kind = Kind::credit;
  std::uint8_t version = protocol_version;
  std::uint8_t lane = 0;
  std::uint8_t unused = 0;
  std::int32_t from = 0;       // rank
  std::uint64_t token = 0;     // of the communicator
  std::int32_t to = 0;         // rank
  std::uint32_t number = 0;    // of the message on its lane
  std::uint32_t mark = 0;      // of the operation; in a request (ask) and its answer, the request's number
  std::uint32_t taken = 0;     // messages that the sender of the packet has taken from the lane in the other direction
  std::uint32_t checksum = 0;  // of this PacketHeader, with 0 here, and of its payload; 0: checksums are off
  std::uint32_t unused_too = 0;
  std::uint64_t bytes = 0;  // of the message
};
static_assert(sizeof(PacketHeader) == packet_bytes && offsetof(PacketHeader, token) == token_at &&
              offsetof(PacketHeader, taken) == taken_at);

// Room for the bytes from `offset` on of a message, in pieces of `piece` bytes. Pieces arrive in any order; each tells
// its number, added to `first`, as immediate data, or has it as its tag.
struct Grant {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t piece = 0;
  std::uint32_t first = 0;
  std::uint8_t rails = 0;  // a bit for the slot of each rail over which the pieces may go

  bool is_for(int rail) const { return (rails >> slot_of(rail) & 1) != 0; }
  void add(int rail) { rails |= static_cast<std::uint8_t>(1U << slot_of(rail)); }
  void drop(int rail) { rails &= static_cast<std::uint8_t>(~(1U << slot_of(rail))); }
  std::uint64_t address[most_rails] = {};
  std::uint64_t key[most_rails] = {};
};

// The checksum of one Grant's bytes of a message, from `offset` on.
struct GrantChecksum {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
  std::uint32_t unused = 0;
};

// A rank of a communicator to which a packet may be addressed.
struct ReceiverIdentity {
  std::uint64_t token = 0;
  Rank rank = 0, ranks = 0;
  int lanes = 0;
};

// Reads a packet that arrived at this rank; any bytes may follow it. False: no rank of the communicator sends such a
// packet to this rank.
bool read_packet(std::span<const std::byte> from, const ReceiverIdentity&, PacketHeader&);
// The length of the payload that follows a packet.
std::size_t payload_bytes(const PacketHeader&);
inline std::span<const std::byte> payload_of(const PacketHeader& p, std::span<const std::byte> from) {
  return from.subspan(sizeof p, payload_bytes(p));
}
Grant grant_in(std::span<const std::byte> payload);
GrantChecksum sum_in(std::span<const std::byte> payload);

std::uint32_t checksum_of(const PacketHeader&, std::span<const std::byte> payload);
// With checksums on, the sender of an arrived packet that was damaged on the way, if it was for this rank; -1: the
// sender can't be told. None: the packet is whole, or was never meant for this rank.
std::optional<Rank> sender_of_damaged(std::span<const std::byte> from, const ReceiverIdentity&);

}  // namespace trellis::ccl::libfabric
