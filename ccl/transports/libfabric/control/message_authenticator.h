// MessageAuthenticator: seals control messages with an HMAC, whose key only the ranks of one job can compute. What does
// not bear this seal was made or changed by somebody else, and is dropped unread.
#pragma once

#include <span>
#include <string_view>

#include "ccl/transports/libfabric/wire/message_kind.h"
#include "net/sha256.h"

namespace trellis::ccl::libfabric {

// What rank 0 of a new communicator draws at random, and tells the others through the store.
struct CommunicatorNonce {
  std::uint64_t identity = 0;  // of the communicator
  net::Digest nonce = {};      // goes into the key, so that no two jobs share one
};
CommunicatorNonce fresh_origin();

class MessageAuthenticator {
 public:
  // `secret` is that of the store through which the nonce came.
  MessageAuthenticator(std::string_view secret, const CommunicatorNonce&);

  // A message is this head and a body.
  struct Head {
    MessageKind kind = MessageKind::state;
    std::uint8_t version = protocol_version;
    std::uint16_t unused = 0;
    std::uint32_t bytes = 0;  // of the body
    std::array<std::byte, 16> code = {};
  };
  void close(std::span<std::byte> message) const;  // writes its head
  // The body of a message at the beginning of these bytes; empty: no rank of this job has sealed it.
  std::span<const std::byte> open(std::span<const std::byte>) const;

 private:
  std::array<std::byte, 16> code_of(const Head&, std::span<const std::byte> body) const;
  net::HmacKey key_;
};

}  // namespace trellis::ccl::libfabric
