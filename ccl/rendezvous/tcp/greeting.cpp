#include "ccl/rendezvous/tcp/greeting.h"

#include <algorithm>

#include "ccl/rendezvous/tcp/wire_bytes.h"

namespace trellis::ccl {
namespace {

constexpr std::size_t code_at = hello_bytes - sizeof(Digest);

Digest code_of(std::span<const std::byte> hello, std::string_view secret) {
  return HmacKey(bytes_of(secret)).of({bytes_of("trellis store: hello"), hello.first(code_at)});
}

// Labels prevent that one code is used as another.
Digest code_of(std::string_view label, std::string_view secret, const Greeting& g) {
  Bytes said;
  put(said, g.hello.store);
  put(said, g.hello.port);
  put(said, g.hello.nonce);
  put(said, g.servers);
  return HmacKey(bytes_of(secret)).of({bytes_of(label), said});
}

}  // namespace

Bytes bytes_of_hello(const Hello& hello, std::string_view secret) {
  Bytes bytes;
  bytes.reserve(hello_bytes);
  put(bytes, bytes_of(magic));
  put(bytes, hello.store);
  put(bytes, hello.port);
  put(bytes, hello.nonce);
  put(bytes, code_of(bytes, secret));
  return bytes;
}

Hello hello_in(std::span<const std::byte, hello_bytes> bytes) {
  Reader reader(bytes.subspan(magic.size()));
  Hello hello;
  std::ranges::copy(reader.some(hello.store.size(), "store"), hello.store.begin());
  hello.port = reader.number<std::uint16_t>("port");
  std::ranges::copy(reader.some(hello.nonce.size(), "nonce"), hello.nonce.begin());
  return hello;
}

bool made_with(std::string_view secret, std::span<const std::byte, hello_bytes> hello) {
  return equal_in_constant_time(hello.subspan(code_at), code_of(hello, secret));
}

Digest proof(Side of, std::string_view secret, const Greeting& g) {
  return code_of(of == Side::client ? "trellis store: client" : "trellis store: server", secret, g);
}

Digest frame_key(Side from, std::string_view secret, const Greeting& g) {
  return code_of(from == Side::client ? "trellis store: client's frames" : "trellis store: server's frames", secret, g);
}

}  // namespace trellis::ccl
