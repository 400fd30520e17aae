// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), random bytes, and a constant-time comparison.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace trellis::net {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  void add(std::span<const std::byte>);
  Digest end();

 private:
  static constexpr std::size_t block_bytes = 64;
  void mix();

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, block_bytes> block_ = {};
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

// A key for many messages: the work that depends only on the key is done once.
class HmacKey {
 public:
  explicit HmacKey(std::span<const std::byte> key);
  Digest of(std::initializer_list<std::span<const std::byte>> parts) const;  // HMAC of one message

 private:
  Sha256 inner_, outer_;
};

Digest sha256(std::span<const std::byte>);

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
