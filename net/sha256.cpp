#include "net/sha256.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "net/sha256_block.h"

namespace trellis::net {
void Sha256::add(std::span<const std::byte> data) {
  total_ += data.size();
  while (!data.empty()) {
    const std::size_t taken = std::min(data.size(), block_bytes - filled_);
    std::copy_n(data.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += taken;
    data = data.subspan(taken);
    if (filled_ == block_bytes) mix();
  }
}

Digest Sha256::end() {
  constexpr std::size_t length_at = block_bytes - 8;
  const std::uint64_t bits = total_ * 8;
  block_[filled_++] = std::byte{0x80};
  const auto zeros_until = [this](std::size_t end) {
    std::fill(block_.begin() + static_cast<std::ptrdiff_t>(filled_), block_.begin() + static_cast<std::ptrdiff_t>(end),
              std::byte{0});
  };
  if (filled_ > length_at) {
    zeros_until(block_bytes);
    mix();
  }
  zeros_until(length_at);
  for (std::size_t i = 0; i < 8; ++i) block_[length_at + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  mix();
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

void Sha256::mix() {
  static const auto mix_block = has_sha_instructions() ? mix_by_instructions : mix_plainly;
  mix_block(state_, block_);
  filled_ = 0;
}

HmacKey::HmacKey(std::span<const std::byte> key) {
  std::array<std::byte, 64> padded = {};  // zero-padded to the hash's block size
  if (key.size() > padded.size())
    std::ranges::copy(sha256(key), padded.begin());
  else
    std::ranges::copy(key, padded.begin());
  auto inner_key = padded, outer_key = padded;
  for (std::byte& b : inner_key) b ^= std::byte{0x36};
  for (std::byte& b : outer_key) b ^= std::byte{0x5c};
  inner_.add(inner_key);
  outer_.add(outer_key);
}

Digest HmacKey::of(std::initializer_list<std::span<const std::byte>> parts) const {
  Sha256 inner = inner_, outer = outer_;
  for (const std::span<const std::byte> part : parts) inner.add(part);
  outer.add(inner.end());
  return outer.end();
}

Digest sha256(std::span<const std::byte> data) {
  Sha256 hash;
  hash.add(data);
  return hash.end();
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  if (a.size() != b.size()) return false;
  volatile unsigned differences = 0;  // volatile: the loop must not stop at the first difference
  for (std::size_t i = 0; i < a.size(); ++i) differences = differences | std::to_integer<unsigned>(a[i] ^ b[i]);
  return differences == 0;
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw std::system_error(errno, std::generic_category(), "random bytes from the kernel");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  fill_random(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

std::string fresh_secret() {
  std::array<std::byte, 16> bits;
  fill_random(bits);
  return hexadecimal(bits);
}

std::string hexadecimal(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte b : bytes) {
    text += "0123456789abcdef"[std::to_integer<int>(b >> 4)];
    text += "0123456789abcdef"[std::to_integer<int>(b & std::byte{15})];
  }
  return text;
}

std::string short_digest(std::string_view text) {
  constexpr std::size_t digits = 16;
  return hexadecimal(sha256(bytes_of(text))).substr(0, digits);
}

}  // namespace trellis::net
