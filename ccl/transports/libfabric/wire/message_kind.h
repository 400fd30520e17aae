// The kinds of messages between ranks. A message begins with its kind and the protocol's version, a byte each: they are
// checked before anything else is read, so that no message is taken for another kind, whatever port it comes to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trellis::ccl::libfabric {

inline constexpr int protocol_version = 5;  // of messages and of what ranks tell each other for control

// No kind is a byte of only zeros or only ones, which strangers send.
enum class MessageKind : std::uint8_t {
  // On the data path, each with a PacketHeader:
  eager = 0x11,  // a whole message follows
  announce,      // a large message waits for grants
  grant,         // where pieces of a large message may be put: a Grant follows
  credit,        // nothing but PacketHeader::taken
  ask,           // which of these pieces of a large message have not arrived: their numbers follow
  lack,          // the answer: the numbers of those that have not
  sum,           // the checksum of bytes of a large message, where checksums are on: a GrantChecksum follows
  // On the control path:
  state = 0x51  // a rank's public state, sealed
};

// Layout of a data message: offsets of the PacketHeader's fields that differ from run to run, and the header's size.
inline constexpr std::size_t token_at = 8, taken_at = 28, packet_bytes = 48;

}  // namespace trellis::ccl::libfabric
