// SHA-256 and HMAC-SHA-256, of the library nettle; random bytes of the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace trellis::net {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte>);

// A key for many messages: the work that depends only on the key is done once.
class HmacKey {
 public:
  explicit HmacKey(std::span<const std::byte> key);
  Digest of(std::initializer_list<std::span<const std::byte>> parts) const;  // HMAC of one message

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// Takes the same time for all contents of one length.
bool equal_in_constant_time(std::span<const std::byte>, std::span<const std::byte>);

// From the kernel's generator; suitable for secrets.
void fill_random(std::span<std::byte>);
std::uint64_t random_number();
std::string fresh_secret();  // 32 hexadecimal digits: 128 random bits

std::string hexadecimal(std::span<const std::byte>);
inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string short_digest(std::string_view text);  // the first 16 hexadecimal digits: enough to tell two texts apart

}  // namespace trellis::net
