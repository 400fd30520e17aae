// Server side of one TCP store connection after its greeting, as a state machine without I/O: received bytes go in,
// whole requests come out.
#pragma once

#include <optional>
#include <span>

#include "ccl/rendezvous/tcp/authenticated_frame.h"
#include "ccl/rendezvous/tcp/message.h"
#include "net/greeting.h"

namespace trellis::ccl {

class StoreServerCodec {
 public:
  explicit StoreServerCodec(const net::Transcript& greeting)
      : heard_(greeting.key(net::Side::caller)), sent_(greeting.key(net::Side::listener)) {}

  void take(std::span<const std::byte> arrived) { net::put(input_, arrived); }
  bool in_the_middle() const { return !input_.empty(); }  // of a frame
  std::optional<StoreRequest> request();                  // the next whole one; throws ProtocolError
  Bytes frame_of(const Reply& r) { return sent_.frame(body_of(r)); }

 private:
  Bytes input_;
  FrameChain heard_, sent_;
};

}  // namespace trellis::ccl
