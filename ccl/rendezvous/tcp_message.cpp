#include "ccl/rendezvous/tcp_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <utility>

namespace trellis::ccl {
namespace {

template <std::integral Int>
void put(Bytes& to, Int value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    to.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
}

void put(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

// Takes parts off the front of a frame's body.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> body) : rest_(body) {}

  template <class Int>
  Int number(const char* of) {
    std::uint64_t value = 0;
    const std::span<const std::byte> bytes = some(sizeof(Int), of);
    for (std::size_t i = sizeof(Int); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return static_cast<Int>(value);
  }

  std::span<const std::byte> some(std::size_t count, const char* of) {
    if (rest_.size() < count)
      throw Refused(fmt::format("a frame that ends within its {}: {} bytes of {}", of, rest_.size(), count));
    const std::span<const std::byte> part = rest_.first(count);
    rest_ = rest_.subspan(count);
    return part;
  }

  std::span<const std::byte> rest() { return some(rest_.size(), "rest"); }
  std::size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

Bytes frame_with_room_for(std::size_t body) {
  Bytes frame;
  frame.reserve(length_bytes + body);
  frame.resize(length_bytes);
  return frame;
}

// Fills in the length that four bytes were left for.
Bytes finished(Bytes frame) {
  const std::size_t body = frame.size() - length_bytes;
  for (std::size_t i = 0; i < length_bytes; ++i) frame[i] = static_cast<std::byte>(body >> (8 * i));
  return frame;
}

}  // namespace

Digest proof(Side of, std::string_view secret, const Nonce& clients, const Nonce& servers) {
  Bytes message;
  put(message, bytes_of(of == Side::client ? "trellis store: client" : "trellis store: server"));
  put(message, clients);
  put(message, servers);
  return hmac_sha256(bytes_of(secret), message);
}

Bytes hello(const Nonce& clients) {
  Bytes bytes;
  put(bytes, bytes_of(magic));
  put(bytes, clients);
  return bytes;
}

Bytes frame_of(const Request& r) {
  check_key(r.key);
  Bytes frame = frame_with_room_for(16 + r.key.size() + r.value.size());
  put(frame, static_cast<std::uint8_t>(r.verb));
  put(frame, static_cast<std::uint16_t>(r.key.size()));
  put(frame, bytes_of(r.key));
  if (r.verb == Verb::set) {
    check_value(r.value);
    put(frame, r.value);
  } else if (r.verb == Verb::get) {
    put(frame, static_cast<std::uint32_t>(std::clamp<std::int64_t>(r.wait.count(), 0, Request::longest.count())));
  } else {
    put(frame, r.amount);
  }
  return finished(std::move(frame));
}

Request request_in(std::span<const std::byte> body) {
  Reader reader(body);
  Request r;
  const auto verb = reader.number<std::uint8_t>("verb");
  if (verb < 1 || verb > 3) throw Refused(fmt::format("a request with the unknown verb {}", verb));
  r.verb = static_cast<Verb>(verb);
  const auto key = reader.some(reader.number<std::uint16_t>("key's length"), "key");
  if (key.empty() || key.size() > most_key_bytes) throw Refused(fmt::format("a key of {} bytes", key.size()));
  r.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  if (r.verb == Verb::set) {
    const auto value = reader.rest();
    if (value.size() > most_value_bytes) throw Refused(fmt::format("a value of {} bytes", value.size()));
    r.value.assign(value.begin(), value.end());
  } else if (r.verb == Verb::get) {
    r.wait = std::min(std::chrono::milliseconds(reader.number<std::uint32_t>("wait")), Request::longest);
  } else {
    r.amount = reader.number<std::int64_t>("amount");
  }
  if (reader.left() != 0) throw Refused(fmt::format("a request with {} bytes too many", reader.left()));
  return r;
}

Bytes frame_of(const Reply& r) {
  Bytes frame = frame_with_room_for(1 + r.content.size());
  put(frame, static_cast<std::uint8_t>(r.outcome));
  put(frame, r.content);
  return finished(std::move(frame));
}

Reply reply_in(std::span<const std::byte> body) {
  Reader reader(body);
  const auto outcome = reader.number<std::uint8_t>("outcome");
  if (outcome < 1 || outcome > 4) throw Refused(fmt::format("a reply with the unknown outcome {}", outcome));
  const auto content = reader.rest();
  return {static_cast<Outcome>(outcome), Bytes(content.begin(), content.end())};
}

std::size_t body_bytes(std::span<const std::byte, length_bytes> length) {
  const auto bytes = Reader(length).number<std::uint32_t>("length");
  if (bytes == 0 || bytes > most_frame_bytes)
    throw Refused(fmt::format("a frame of {} bytes, where 1 to {} may be", bytes, most_frame_bytes));
  return bytes;
}

void Session::take(std::span<const std::byte> arrived) {
  input_.insert(input_.end(), arrived.begin(), arrived.end());
  while (!known() && greet()) {
  }
}

// Whether the greeting went a step on.
bool Session::greet() {
  const std::span<const std::byte> input(input_);
  if (stage_ == Stage::hello) {
    const std::size_t seen = std::min(input.size(), magic.size());
    if (!std::ranges::equal(input.first(seen), bytes_of(magic).first(seen)))
      throw Refused("a stranger: what it sent does not begin with a hello");
    if (input.size() < hello_bytes) return false;
    std::ranges::copy(input.subspan(magic.size(), sizeof(Nonce)), clients_.begin());
    put(answer_, nonce_);
    put(answer_, proof(Side::server, secret_, clients_, nonce_));
    drop(hello_bytes);
    stage_ = Stage::proof;
    return true;
  }
  if (input.size() < proof_bytes) return false;
  if (!equal_in_constant_time(input.first(proof_bytes), proof(Side::client, secret_, clients_, nonce_)))
    throw Refused("a client that does not know the secret");
  drop(proof_bytes);
  stage_ = Stage::known;
  return false;
}

std::optional<Request> Session::request() {
  const std::span<const std::byte> input(input_);
  if (!known() || input.size() < length_bytes) return std::nullopt;
  const std::size_t bytes = body_bytes(input.first<length_bytes>());
  if (input.size() < length_bytes + bytes) return std::nullopt;
  Request r = request_in(input.subspan(length_bytes, bytes));
  drop(length_bytes + bytes);
  return r;
}

void Session::drop(std::size_t bytes) {
  input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (input_.empty() && input_.capacity() > 4096) input_.shrink_to_fit();  // idle ones are many
}

Bytes Session::answer() { return std::exchange(answer_, {}); }

}  // namespace trellis::ccl
