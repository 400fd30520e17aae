// Handshake of a TCP store: client and server prove to each other that they know the store's secret, without sending
// it. The client says hello, the server answers, the client proves itself. Each proof and the keys of the following
// frames cover all that both have said, so a man in the middle cannot send frames of its own.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "ccl/rendezvous/sha256.h"
#include "ccl/store.h"

namespace trellis::ccl {

using Nonce = std::array<std::byte, 32>;
using StoreName = std::array<std::byte, 16>;  // among the stores of one server; zeros: the only one

inline constexpr std::string_view magic = "trellis2";  // the last character is the protocol's version

struct Hello {
  StoreName store = {};
  std::uint16_t port = 0;  // the port that the client connected to; the server checks that it is its own
  Nonce nonce = {};
};

// In this order: the magic, the store, the port, the nonce, and a code that requires the secret. It lets a server
// reject strangers at once, without keeping state for them.
inline constexpr std::size_t hello_bytes = magic.size() + sizeof(StoreName) + 2 + sizeof(Nonce) + sizeof(Digest);
Bytes bytes_of_hello(const Hello&, std::string_view secret);
Hello hello_in(std::span<const std::byte, hello_bytes>);
bool made_with(std::string_view secret, std::span<const std::byte, hello_bytes>);

struct Greeting {
  Hello hello;
  Nonce servers = {};
};

enum class Side : std::uint8_t { client, server };
Digest proof(Side of, std::string_view secret, const Greeting&);
Digest frame_key(Side from, std::string_view secret, const Greeting&);

// A verdict (ccl/rendezvous/tcp/refused.h); after a welcome, the server's nonce and its proof. After the client has
// sent its own proof, the server admits it with a first frame.
inline constexpr std::size_t welcome_bytes = sizeof(Nonce) + sizeof(Digest);
inline constexpr std::size_t proof_bytes = sizeof(Digest);

}  // namespace trellis::ccl
