// Framing of an authenticated connection to a TCP store: a length in four bytes, lowest first, a body, and an HMAC over
// both and the frame's number in its direction. A changed, dropped, repeated or reflected frame is detected.
#pragma once

#include <cstdint>
#include <span>

#include "ccl/rendezvous/bounded_map.h"
#include "net/sha256.h"

namespace trellis::ccl {

inline constexpr std::size_t length_bytes = 4;
inline constexpr std::size_t code_bytes = sizeof(net::Digest);
inline constexpr std::size_t most_body_bytes = 1 + 2 + most_key_bytes + most_value_bytes;

// Reads a frame's length. Throws ProtocolError for 0 and for more than most_body_bytes, before memory is allocated.
std::size_t body_bytes(std::span<const std::byte, length_bytes>);

// One direction of a connection, at either end.
class FrameChain {
 public:
  explicit FrameChain(const net::Digest& key) : key_(key) {}
  Bytes frame(std::span<const std::byte> body);  // the next frame to send
  // Checks the next received frame. Throws ProtocolError when it is not what the other end sent next.
  void check(std::span<const std::byte> body, std::span<const std::byte> code);

 private:
  net::Digest next_code(std::span<const std::byte> body);
  net::HmacKey key_;
  std::uint64_t frames_ = 0;
};

}  // namespace trellis::ccl
