#include "ccl/rendezvous/sha256.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <system_error>

namespace trellis::ccl {
namespace {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<std::uint32_t, 64> round_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

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
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = 0;
    for (std::size_t j = 0; j < 4; ++j) w[i] = w[i] << 8 | std::to_integer<std::uint32_t>(block_[4 * i + j]);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first =
        h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    const std::uint32_t second =
        (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::array<std::uint32_t, 8> end = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) state_[i] += end[i];
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

}  // namespace trellis::ccl
