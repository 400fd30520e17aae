// Any bytes sent to a store's server, and any reply of one. The first byte says how far the sender has come, the second
// into which pieces its bytes are cut. Without the secret they are refused or waited for; with it, and cut into frames
// as a client would, they are refused or are requests that come back the same when written again; and what is changed
// on the way from a client is never taken for a request.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "ccl/rendezvous/key_value_map.h"
#include "ccl/rendezvous/tcp/session.h"

namespace {

using namespace trellis::ccl;

enum class Sender : std::uint8_t { stranger, greeted, known, client, changed };
constexpr int senders = 5, port = 29500;

// Takes a session as far as this, and returns the keys of what is said then.
Greeting greet(Session& session, bool proven) {
  Greeting g{.hello = {.port = port}};
  session.take(bytes_of_hello(g.hello, "secret"));
  const Bytes answer = session.welcome("secret", port);
  if (answer.size() != 1 + welcome_bytes) std::abort();
  std::copy_n(answer.begin() + 1, g.servers.size(), g.servers.begin());
  if (proven) session.take(proof(Side::client, "secret", g));
  if (session.known() != proven) std::abort();
  return g;
}

void apply(KeyValueMap& board, const Request& r) {
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

void expect_same(const Request& r) {
  const Request again = request_in(body_of(r));
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
  Session session;
  KeyValueMap board;
  Bytes frames;
  if (sender != Sender::stranger) {
    const Greeting g = greet(session, sender != Sender::greeted);
    FrameChain sent(frame_key(Side::client, "secret", g));
    if (sender >= Sender::client) frames = frames_of(bytes, sent);
  }
  if (sender == Sender::changed && !frames.empty())  // in the first frame, where the first byte says
    frames[std::to_integer<std::size_t>(bytes[0]) % std::min(frames.size(), length_bytes + 1 + code_bytes)] ^=
        std::byte{1};
  if (sender >= Sender::client) bytes = frames;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    session.take(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    if (const auto hello = session.hello(); hello && sender == Sender::stranger) session.welcome("secret", port);
    if (session.known() && sender < Sender::known) std::abort();  // nobody guesses a proof
    while (const auto request = session.request()) {
      if (sender != Sender::client) std::abort();  // nor a frame's code
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
  } catch (const Refused&) {
  }
  try {
    const Reply reply = reply_in(bytes);
    if (!std::ranges::equal(body_of(reply), bytes)) std::abort();
  } catch (const Refused&) {
  }
  return 0;
}
