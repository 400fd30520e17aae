// Layout of the messages between the ranks of a communicator. Ranks of different versions refuse each other as they
// join.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trellis::ccl::libfabric {

inline constexpr int protocol_version = 2;  // of this layout and of what ranks tell each other for control
inline constexpr int most_rails = 4;
inline constexpr std::size_t most_pieces_asked = 1000;

struct Packet {
  enum class Kind : std::uint8_t {
    eager,     // a whole message follows
    announce,  // a large message waits for grants
    grant,     // where pieces of a large message may be put: a Grant follows
    credit,    // only `taken`
    ask,       // which of these pieces of a large message have not arrived: their numbers follow
    lack       // the answer: those
  };
  std::uint64_t token = 0;   // of the communicator
  std::int32_t from = 0;     // rank
  std::uint32_t number = 0;  // of the message on its lane
  std::uint32_t mark = 0;    // of the operation; of an ask and its answer: their number
  std::uint32_t taken = 0;   // messages that the sender of the packet has taken from the lane in the other direction
  std::uint64_t bytes = 0;   // of the message
  Kind kind = Kind::credit;
  std::uint8_t lane = 0;
};

// Room for the bytes from `offset` on of a message, in pieces of `piece` bytes. Pieces arrive in any order; each tells
// its number, added to `first`, as immediate data, or has it as its tag.
struct Grant {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint32_t piece = 0;
  std::uint32_t first = 0;
  std::uint64_t address[most_rails] = {};
  std::uint64_t key[most_rails] = {};
};

}  // namespace trellis::ccl::libfabric
