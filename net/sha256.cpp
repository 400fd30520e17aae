#include "net/sha256.h"

#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace trellis::net {
namespace {

const std::uint8_t* octets(std::span<const std::byte> b) { return reinterpret_cast<const std::uint8_t*>(b.data()); }
std::uint8_t* octets(Digest& d) { return reinterpret_cast<std::uint8_t*>(d.data()); }

}  // namespace

Digest sha256(std::span<const std::byte> data) {
  sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, data.size(), octets(data));
  Digest digest;
  sha256_digest(&hash, digest.size(), octets(digest));
  return digest;
}

struct HmacKey::State {
  hmac_sha256_ctx keyed;
};

HmacKey::HmacKey(std::span<const std::byte> key) {
  State state;
  hmac_sha256_set_key(&state.keyed, key.size(), octets(key));
  state_ = std::make_shared<State>(state);
}

Digest HmacKey::of(std::initializer_list<std::span<const std::byte>> parts) const {
  hmac_sha256_ctx hash = state_->keyed;
  for (const std::span<const std::byte> part : parts) hmac_sha256_update(&hash, part.size(), octets(part));
  Digest digest;
  hmac_sha256_digest(&hash, digest.size(), octets(digest));
  return digest;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && memeql_sec(a.data(), b.data(), a.size()) != 0;
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
  std::string text(BASE16_ENCODE_LENGTH(bytes.size()), '\0');
  base16_encode_update(text.data(), bytes.size(), octets(bytes));
  return text;
}

std::string short_digest(std::string_view text) {
  constexpr std::size_t digits = 16;
  return hexadecimal(sha256(bytes_of(text))).substr(0, digits);
}

}  // namespace trellis::net
