#include "ccl/transports/libfabric/control/message_authenticator.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace trellis::ccl::libfabric {
namespace {

// The store's protocol computes codes with the same secret. The label makes the key differ from all of them.
net::Digest key_of(std::string_view secret, const CommunicatorNonce& o) {
  return net::HmacKey(net::bytes_of(secret))
      .of({net::bytes_of("trellis fabric: control"), std::as_bytes(std::span(&o.identity, 1)), o.nonce});
}

}  // namespace

CommunicatorNonce fresh_origin() {
  CommunicatorNonce o{.identity = net::random_number()};
  net::fill_random(o.nonce);
  return o;
}

MessageAuthenticator::MessageAuthenticator(std::string_view secret, const CommunicatorNonce& o)
    : key_(key_of(secret, o)) {}

std::array<std::byte, 16> MessageAuthenticator::code_of(const Head& head, std::span<const std::byte> body) const {
  std::array<std::byte, 16> code;
  const net::Digest whole = key_.of({std::as_bytes(std::span(&head, 1)).first(offsetof(Head, code)), body});
  std::copy_n(whole.begin(), code.size(), code.begin());
  return code;
}

void MessageAuthenticator::close(std::span<std::byte> message) const {
  const auto body = message.subspan(sizeof(Head));
  Head head{.bytes = static_cast<std::uint32_t>(body.size())};
  head.code = code_of(head, body);
  std::memcpy(message.data(), &head, sizeof head);
}

std::span<const std::byte> MessageAuthenticator::open(std::span<const std::byte> message) const {
  Head head;
  if (message.size() < sizeof head) return {};
  std::memcpy(&head, message.data(), sizeof head);
  if (head.kind != MessageKind::state || head.version != protocol_version) return {};
  const auto rest = message.subspan(sizeof head);
  if (head.bytes > rest.size()) return {};
  const auto body = rest.first(head.bytes);
  return net::equal_in_constant_time(head.code, code_of(head, body)) ? body : std::span<const std::byte>{};
}

}  // namespace trellis::ccl::libfabric
