// Sends arbitrary bytes to a GreetingListener, and to a GreetingCaller as an answer. The first byte chooses what comes
// before them: nothing, a right hello, or a hello with one bit changed. The second byte chooses the size of the pieces
// that arrive at a time. No one passes who does not know the secret, and the listener reads the terms that the caller
// sent.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "net/greeting.h"

namespace {

using namespace trellis::net;

enum class Caller : std::uint8_t { stranger, greeted, changed };
constexpr int callers = 3;
constexpr Greeting protocol = {.magic = "trellisc", .label = "trellis fuzz", .terms = 16};

// Returns the answer to a hello among the bytes.
Bytes in_pieces(GreetingListener& w, std::span<const std::byte> bytes, std::size_t piece) {
  Bytes answer;
  while (!bytes.empty() && w.wanted() != 0) {
    const std::size_t taken = std::min({piece, bytes.size(), w.wanted()});
    w.take(bytes.first(taken));
    if (w.expects_answer()) answer = w.answer("secret");
    bytes = bytes.subspan(taken);
  }
  return answer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  const auto caller = static_cast<Caller>(data[0] % callers);
  const std::size_t piece = std::size_t{1} + data[1];
  const Bytes terms(protocol.terms, std::byte{7});
  GreetingCaller calling(protocol, "secret", terms);
  GreetingListener listener(protocol);
  try {
    if (caller == Caller::stranger) {
      in_pieces(listener, bytes, piece);
    } else {
      Bytes hello = calling.hello();
      if (caller == Caller::changed && !bytes.empty())  // one bit, where the first byte says
        hello[std::to_integer<std::size_t>(bytes[0]) % hello.size()] ^= std::byte{1};
      const Bytes answer = in_pieces(listener, hello, piece);
      if (caller == Caller::changed && !bytes.empty()) std::abort();  // it was taken for a hello
      if (answer.size() != answer_bytes || !std::ranges::equal(listener.terms(), terms)) std::abort();
      in_pieces(listener, bytes, piece);
    }
    if (listener.proven()) std::abort();  // nobody guesses a proof
  } catch (const ProtocolError&) {
  }
  if (bytes.size() >= answer_bytes) try {
      calling.proof(bytes.first<answer_bytes>());
      std::abort();
    } catch (const ProtocolError&) {
    }
  return 0;
}
