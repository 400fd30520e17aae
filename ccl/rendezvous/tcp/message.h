// Requests of a TCP store's clients and the server's replies: the bodies of frames.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "ccl/rendezvous/bounded_map.h"
#include "net/protocol_error.h"

namespace trellis::ccl {

enum class Verb : std::uint8_t { set = 1, get = 2, add = 3, leave = 4 };
struct StoreRequest {
  Verb verb = Verb::get;
  std::string key = {};                                          // leave: a prefix, which may be empty
  Bytes value = {};                                              // of set
  std::int64_t amount = 0;                                       // of add; leave: the number of members
  std::chrono::milliseconds wait{0};                             // get: how long the server may hold the request
  static constexpr std::chrono::milliseconds longest{1u << 31};  // limit of one such wait
};
Bytes body_of(const StoreRequest&);
StoreRequest request_in(std::span<const std::byte> body);  // throws ProtocolError

// The reply to every request but leave, which has none.
enum class StoreOutcome : std::uint8_t {
  done = 1,     // set: no data; get: the value; add: the sum as a counter
  not_yet = 2,  // get: the wait is over
  wrong = 3,    // a text: the caller's mistake
  full = 4      // a text: no room
};
struct Reply {
  StoreOutcome outcome = StoreOutcome::done;
  Bytes content = {};
};
Bytes body_of(const Reply&);
Reply reply_in(std::span<const std::byte> body);  // throws ProtocolError

}  // namespace trellis::ccl
