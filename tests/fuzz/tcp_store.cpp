// Sends arbitrary bytes to a store's server after the greeting, and to a client as a reply. The first byte chooses how,
// the second the size of the pieces that arrive at a time. Sent as they are, they never make a request. Sent in a
// client's authenticated frames, they are refused or are requests that come back the same when written again. If one
// bit of the first frame is changed, no request is accepted.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "ccl/rendezvous/blocking_map.h"
#include "ccl/rendezvous/tcp/greeting.h"
#include "ccl/rendezvous/tcp/store_server_codec.h"

namespace {

using namespace trellis::ccl;

enum class Sender : std::uint8_t { known, client, changed };
constexpr int senders = 3;

void apply(BlockingMap& board, const StoreRequest& r) {
  try {
    if (r.verb == Verb::set) {
      board.set(r.key, r.value);
      if (board.find(r.key) != r.value) std::abort();
    } else if (r.verb == Verb::add) {
      const std::int64_t sum = board.add(r.key, r.amount);
      if (board.find(r.key) != counter_of(sum)) std::abort();
    } else if (r.verb == Verb::leave) {
      board.leave(r.key, r.amount);
    }
  } catch (const std::invalid_argument&) {  // no counter, or a sum that does not fit
  } catch (const std::system_error&) {      // full
  }
}

void expect_same(const StoreRequest& r) {
  const StoreRequest again = request_in(body_of(r));
  if (again.verb != r.verb || again.key != r.key || again.value != r.value || again.amount != r.amount ||
      again.wait != r.wait)
    std::abort();
}

// A client's frames, each with a body of the length that its first byte says.
Bytes frames_of(std::span<const std::byte> bytes, FrameChain& sent) {
  Bytes frames;
  while (bytes.size() > 1) {
    const std::size_t length = std::clamp<std::size_t>(std::to_integer<std::size_t>(bytes[0]), 1, bytes.size() - 1);
    std::ranges::copy(sent.frame(bytes.subspan(1, length)), std::back_inserter(frames));
    bytes = bytes.subspan(1 + length);
  }
  return frames;
}

void serve(std::span<const std::byte> bytes, Sender sender, std::size_t piece) {
  const trellis::net::GreetingCaller calling(store_greeting, "secret", StoreHello{.port = 29500}.terms());
  StoreServerCodec session(calling.transcript());
  FrameChain sent(calling.transcript().key(trellis::net::Side::caller));
  BlockingMap board;
  Bytes frames;
  if (sender >= Sender::client) frames = frames_of(bytes, sent);
  if (sender == Sender::changed && !frames.empty())  // in the first frame, where the first byte says
    frames[std::to_integer<std::size_t>(bytes[0]) % std::min(frames.size(), length_bytes + 1 + code_bytes)] ^=
        std::byte{1};
  if (sender >= Sender::client) bytes = frames;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    session.take(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    while (const auto request = session.request()) {
      if (sender != Sender::client) std::abort();  // nobody guesses a frame's code
      expect_same(*request);
      apply(board, *request);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  try {
    serve(bytes, static_cast<Sender>(data[0] % senders), std::size_t{1} + data[1]);
  } catch (const trellis::net::ProtocolError&) {
  }
  try {
    const Reply reply = reply_in(bytes);
    if (!std::ranges::equal(body_of(reply), bytes)) std::abort();
  } catch (const trellis::net::ProtocolError&) {
  }
  return 0;
}
