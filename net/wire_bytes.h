// Numbers (lowest byte first) and bytes, as protocols over a connection write and read them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "net/protocol_error.h"

namespace trellis::net {

using Bytes = std::vector<std::byte>;

template <std::integral Int>
void put(Bytes& to, Int value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    to.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

// Does not use insert(): GCC 12 warns at -O3 that it reads out of bounds.
inline void put(Bytes& to, std::span<const std::byte> bytes) {
  const std::size_t before = to.size();
  to.resize(before + bytes.size());
  std::ranges::copy(bytes, to.begin() + static_cast<std::ptrdiff_t>(before));
}

// Takes parts off the front. Throws ProtocolError when fewer bytes are left than a part needs.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::integral Int>
  Int number(const char* of) {
    std::uint64_t value = 0;
    const std::span<const std::byte> bytes = some(sizeof(Int), of);
    for (std::size_t i = sizeof(Int); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return static_cast<Int>(value);
  }

  std::span<const std::byte> some(std::size_t count, const char* of) {
    if (rest_.size() < count)
      throw ProtocolError(fmt::format("a frame that ends within its {}: {} bytes of {}", of, rest_.size(), count));
    const std::span<const std::byte> part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }

  std::span<const std::byte> rest() { return some(rest_.size(), "rest"); }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace trellis::net
