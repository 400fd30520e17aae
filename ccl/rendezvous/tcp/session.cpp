#include "ccl/rendezvous/tcp/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "ccl/rendezvous/tcp/wire_bytes.h"

namespace trellis::ccl {

void Session::take(std::span<const std::byte> arrived) {
  put(input_, arrived);
  if (stage_ == Stage::hello) expect_magic();
  if (stage_ == Stage::proof) expect_proof();
}

void Session::expect_magic() const {
  const std::size_t seen = std::min(input_.size(), magic.size());
  if (!std::ranges::equal(std::span(input_).first(seen), bytes_of(magic).first(seen)))
    throw Refused("a stranger: what it sent does not begin with a hello");
}

void Session::expect_proof() {
  if (input_.size() < proof_bytes) return;
  if (!equal_in_constant_time(std::span(input_).first(proof_bytes), awaited_proof_))
    throw Refused("a client that does not know the secret");
  drop(proof_bytes);
  stage_ = Stage::known;
}

std::optional<Hello> Session::hello() const {
  if (stage_ != Stage::hello || input_.size() < hello_bytes) return std::nullopt;
  return hello_in(std::span(input_).first<hello_bytes>());
}

Bytes Session::welcome(const std::string& secret, int port) {
  const auto said = std::span<const std::byte>(input_).first<hello_bytes>();
  if (!made_with(secret, said)) throw Refused("a client that does not know the secret", Verdict::other_secret);
  Greeting greeting{.hello = hello_in(said)};
  if (greeting.hello.port != port)
    throw Refused(fmt::format("a client that has called at port {}, not at {}: something passes connections on",
                              greeting.hello.port, port),
                  Verdict::elsewhere);
  drop(hello_bytes);
  if (!input_.empty()) throw Refused("a client that goes on before it is answered");
  fill_random(greeting.servers);
  awaited_proof_ = proof(Side::client, secret, greeting);
  heard_.emplace(frame_key(Side::client, secret, greeting));
  sent_.emplace(frame_key(Side::server, secret, greeting));
  stage_ = Stage::proof;
  Bytes answer;
  put(answer, static_cast<std::uint8_t>(Verdict::welcome));
  put(answer, greeting.servers);
  put(answer, proof(Side::server, secret, greeting));
  return answer;
}

std::optional<Request> Session::request() {
  const std::span<const std::byte> input(input_);
  if (!known() || input.size() < length_bytes) return std::nullopt;
  const std::size_t bytes = body_bytes(input.first<length_bytes>());
  if (input.size() < length_bytes + bytes + code_bytes) return std::nullopt;
  const auto body = input.subspan(length_bytes, bytes);
  heard_->check(body, input.subspan(length_bytes + bytes, code_bytes));
  Request r = request_in(body);
  drop(length_bytes + bytes + code_bytes);
  return r;
}

void Session::drop(std::size_t bytes) {
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (input_.empty() && input_.capacity() > 4096) input_.shrink_to_fit();  // there may be many idle connections
}

}  // namespace trellis::ccl
