// Any bytes at a listener for the job's processes. The first byte says how far the caller has come, the second into
// which pieces its bytes are cut. Nobody is taken for one of the job who does not know the secret, and what a caller
// says comes back the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "device/messages/greeting.h"

namespace {

using namespace trellis::device;

enum class Caller : std::uint8_t { stranger, greeted, changed };
constexpr int callers = 3;

CallBytes in_pieces(Welcome& w, std::span<const std::byte> bytes, std::size_t piece) {
  CallBytes answer;
  while (!bytes.empty() && w.wanted() != 0) {
    const std::size_t taken = std::min({piece, bytes.size(), w.wanted()});
    for (const std::byte b : w.take(bytes.first(taken))) answer.push_back(b);
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
  const CallHello said{.from = 7, .to = 3, .first_port = 2000};
  const Calling calling("secret", said);
  Welcome listener("secret", CallKind::messages, 3);
  try {
    if (caller == Caller::stranger) {
      in_pieces(listener, bytes, piece);
    } else {
      CallBytes hello = calling.hello();
      if (caller == Caller::changed && !bytes.empty())  // at the first byte's place
        hello[std::to_integer<std::size_t>(bytes[0]) % hello.size()] ^= std::byte{1};
      const CallBytes answer = in_pieces(listener, hello, piece);
      if (caller == Caller::changed && !bytes.empty()) std::abort();  // it was taken for a hello
      if (answer.size() != call_answer_bytes) std::abort();
      if (listener.hello().from != said.from || listener.hello().first_port != said.first_port) std::abort();
      in_pieces(listener, bytes, piece);
    }
    if (listener.proven()) std::abort();  // nobody guesses a proof
  } catch (const Stranger&) {
  }
  if (bytes.size() >= call_answer_bytes) try {
      calling.proof(bytes.first<call_answer_bytes>());
      std::abort();
    } catch (const Stranger&) {
    }
  return 0;
}
