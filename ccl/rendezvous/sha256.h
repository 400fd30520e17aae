// SHA-256 (FIPS 180-4), HMAC over it (RFC 2104), and what goes with them: random bytes, a comparison that tells no
// time.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace trellis::ccl {

using Digest = std::array<std::byte, 32>;

Digest sha256(std::span<const std::byte>);
Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);

// Takes as long for any contents of one length.
bool equal_in_constant_time(std::span<const std::byte>, std::span<const std::byte>);

// From the kernel's generator, fit for secrets.
void fill_random(std::span<std::byte>);
std::string fresh_secret();  // 32 hexadecimal digits: 128 random bits

std::string hexadecimal(std::span<const std::byte>);
inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace trellis::ccl
