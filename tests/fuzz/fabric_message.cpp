// Gives arbitrary bytes to a rank as a message from the fabric: as data, as control, and as the body of a control
// message that some rank has authenticated. Nothing beyond them is read, an accepted message has valid ranks and sizes,
// and no state is accepted twice.
#if __has_include(<rdma/fabric.h>)

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "ccl/transports/libfabric/control/message_authenticator.h"
#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/presence/presence.h"

namespace {

using namespace trellis::ccl;
using namespace trellis::ccl::libfabric;

constexpr std::uint64_t token = 0x0706050403020100;
constexpr Rank ranks = 40;  // a large communicator, in which ranks pass on what they hear

void expect(bool holds) {
  if (!holds) std::abort();
}

void as_data(std::span<const std::byte> bytes) {
  const ReceiverIdentity self{.token = token, .rank = 1, .ranks = ranks, .lanes = 3};
  if (const auto from = sender_of_damaged(bytes, self)) expect(*from >= -1 && *from < ranks && *from != self.rank);
  PacketHeader p;
  if (!read_packet(bytes, self, p)) return;
  const auto payload = payload_of(p, bytes);
  expect(p.from != 1 && p.from >= 0 && p.from < ranks && p.lane < 3 && payload.size() <= bytes.size());
  const std::vector<std::byte> copied(payload.begin(), payload.end());
  if (p.kind == MessageKind::sum) expect(sum_in(copied).offset + sum_in(copied).bytes <= p.bytes);
  if (p.kind != MessageKind::grant) return;
  const Grant g = grant_in(copied);
  expect(g.piece != 0 && g.offset + g.bytes <= p.bytes);
}

void as_control(const MessageAuthenticator& seal, std::span<const std::byte> bytes) {
  const auto body = seal.open(bytes);
  if (body.empty()) return;
  std::vector<std::byte> again(sizeof(MessageAuthenticator::Head) + body.size());
  std::ranges::copy(body, again.begin() + sizeof(MessageAuthenticator::Head));
  seal.close(again);
  expect(seal.open(again).size() == body.size());
}

void as_sealed(const MessageAuthenticator& seal, std::span<const std::byte> body) {
  std::vector<std::byte> message(sizeof(MessageAuthenticator::Head) + body.size());
  std::ranges::copy(body, message.begin() + sizeof(MessageAuthenticator::Head));
  seal.close(message);
  const auto opened = seal.open(message);
  expect(std::ranges::equal(opened, body));
  PublicState said;
  if (body.empty() || !read_public(opened, said)) return;
  std::vector<std::size_t> places(ranks);
  std::iota(places.begin(), places.end(), std::size_t{0});
  Presence hearer(Roster(token, 1, places, std::vector<Member>(ranks)), std::chrono::seconds(10), {.all = 2});
  const bool heard = hearer.hear(said, 0);
  expect(!hearer.hear(said, 1));
  if (!heard) return;
  for (const Rank r : hearer.take_owed()) {
    std::vector<std::byte> answer;
    expect(hearer.write_for(r, 0, 4096, answer) <= 4096);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const MessageAuthenticator seal("secret", {.identity = token});
  const auto bytes = std::as_bytes(std::span(data, size));
  as_data(bytes);
  as_control(seal, bytes);
  as_sealed(seal, bytes);
  return 0;
}

#else

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }

#endif
