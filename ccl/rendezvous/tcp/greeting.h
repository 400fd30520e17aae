// The greeting of a TCP store (net/greeting.h): its client is the caller, its server the listener.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "net/greeting.h"

namespace trellis::ccl {

using StoreName = std::array<std::byte, 16>;  // tells apart the stores of one server; zeros: the only one

// Which store the client wants.
struct StoreHello {
  StoreName store = {};
  std::uint16_t port = 0;  // the port that the client connected to; the server checks that it is its own

  net::Bytes terms() const {
    net::Bytes bytes;
    net::put(bytes, store);
    net::put(bytes, port);
    return bytes;
  }
  static StoreHello in(std::span<const std::byte> terms) {
    net::WireReader reader(terms);
    StoreHello hello;
    std::ranges::copy(reader.some(hello.store.size(), "store"), hello.store.begin());
    hello.port = reader.number<std::uint16_t>("port");
    return hello;
  }
};

inline constexpr net::Greeting store_greeting = {
    .magic = "trellis3", .label = "trellis store", .terms = sizeof(StoreName) + sizeof(StoreHello::port)};

}  // namespace trellis::ccl
