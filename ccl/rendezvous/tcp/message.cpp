#include "ccl/rendezvous/tcp/message.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/sha256.h"
#include "net/wire_bytes.h"

namespace trellis::ccl {

using net::ProtocolError;
using net::put;

Bytes body_of(const StoreRequest& r) {
  if (r.verb != Verb::leave || !r.key.empty()) check_key(r.key);
  Bytes body;
  body.reserve(16 + r.key.size() + r.value.size());
  put(body, static_cast<std::uint8_t>(r.verb));
  put(body, static_cast<std::uint16_t>(r.key.size()));
  put(body, net::bytes_of(r.key));
  if (r.verb == Verb::set) {
    check_value(r.value);
    put(body, r.value);
  } else if (r.verb == Verb::get) {
    put(body, static_cast<std::uint32_t>(std::clamp<std::int64_t>(r.wait.count(), 0, StoreRequest::longest.count())));
  } else {
    put(body, r.amount);
  }
  return body;
}

StoreRequest request_in(std::span<const std::byte> body) {
  net::WireReader reader(body);
  StoreRequest r;
  const auto verb = reader.number<std::uint8_t>("verb");
  if (verb < 1 || verb > 4) throw ProtocolError(fmt::format("a request with the unknown verb {}", verb));
  r.verb = static_cast<Verb>(verb);
  const auto key = reader.some(reader.number<std::uint16_t>("key's length"), "key");
  if ((key.empty() && r.verb != Verb::leave) || key.size() > most_key_bytes)
    throw ProtocolError(fmt::format("a key of {} bytes", key.size()));
  r.key.assign(reinterpret_cast<const char*>(key.data()), key.size());
  if (r.verb == Verb::set) {
    const auto value = reader.rest();
    if (value.size() > most_value_bytes) throw ProtocolError(fmt::format("a value of {} bytes", value.size()));
    r.value.assign(value.begin(), value.end());
  } else if (r.verb == Verb::get) {
    r.wait = std::min(std::chrono::milliseconds(reader.number<std::uint32_t>("wait")), StoreRequest::longest);
  } else {
    r.amount = reader.number<std::int64_t>("amount");
  }
  if (r.verb == Verb::leave && r.amount < 1) throw ProtocolError(fmt::format("a leave of {} members", r.amount));
  if (reader.left() != 0) throw ProtocolError(fmt::format("a request with {} bytes too many", reader.left()));
  return r;
}

Bytes body_of(const Reply& r) {
  Bytes body;
  body.reserve(1 + r.content.size());
  put(body, static_cast<std::uint8_t>(r.outcome));
  put(body, r.content);
  return body;
}

Reply reply_in(std::span<const std::byte> body) {
  net::WireReader reader(body);
  const auto outcome = reader.number<std::uint8_t>("outcome");
  if (outcome < 1 || outcome > 4) throw ProtocolError(fmt::format("a reply with the unknown outcome {}", outcome));
  const auto content = reader.rest();
  return {static_cast<StoreOutcome>(outcome), Bytes(content.begin(), content.end())};
}

}  // namespace trellis::ccl
