// Any bytes sent to a store's server: they are refused, or they are requests that come back the same when written
// again. The first byte says whether the sender has proven itself, the second into which pieces its bytes are cut.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "ccl/rendezvous/notes.h"
#include "ccl/rendezvous/tcp_message.h"

namespace {

using namespace trellis::ccl;

void greet(Session& session, const Nonce& servers) {
  const Nonce mine = {};
  session.take(hello(mine));
  session.take(proof(Side::client, "secret", mine, servers));
  if (!session.known() || session.answer().size() != answer_bytes) std::abort();
}

void apply(Notes& notes, const Request& r) {
  try {
    if (r.verb == Verb::set) {
      notes.set(r.key, r.value);
      if (*notes.find(r.key) != r.value) std::abort();
    } else if (r.verb == Verb::add) {
      const std::int64_t sum = notes.add(r.key, r.amount);
      if (*notes.find(r.key) != counter_of(sum)) std::abort();
    }
  } catch (const std::invalid_argument&) {  // no counter, or a sum that does not fit
  } catch (const std::system_error&) {      // full
  }
}

void serve(std::span<const std::byte> bytes, bool known, std::size_t piece) {
  const Nonce servers = {std::byte{1}};
  Session session("secret", servers);
  Notes notes;
  if (known) greet(session, servers);
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    session.take(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    if (session.known() && !known) std::abort();  // nobody guesses a proof
    while (const auto request = session.request()) {
      const Bytes frame = frame_of(*request);
      const Request again = request_in(std::span<const std::byte>(frame).subspan(length_bytes));
      if (again.key != request->key || again.value != request->value || again.amount != request->amount ||
          again.wait != request->wait)
        std::abort();
      apply(notes, *request);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(2);
  try {
    serve(bytes, data[0] % 2 == 1, std::size_t{1} + data[1]);
  } catch (const Refused&) {
  }
  try {
    const Reply reply = reply_in(bytes);
    const Bytes frame = frame_of(reply);
    if (!std::ranges::equal(std::span<const std::byte>(frame).subspan(length_bytes), bytes)) std::abort();
  } catch (const Refused&) {
  }
  return 0;
}
