// Which messages between ranks are read: those of the right kind and version, for this rank, and sealed if they are
// control messages.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/control/message_authenticator.h"
#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/lanes/received_grants.h"
#include "ccl/transports/libfabric/presence/public_state.h"
#include "ccl/transports/libfabric/presence/replay_window.h"

namespace trellis::ccl::libfabric {
namespace {

using Message = std::vector<std::byte>;

constexpr ReceiverIdentity rank_one{.token = 77, .rank = 1, .ranks = 3, .lanes = 2};

Message bytes_of(const PacketHeader& p, std::size_t payload) {
  Message m(sizeof p + payload, std::byte{1});
  std::memcpy(m.data(), &p, sizeof p);
  return m;
}

PacketHeader to_rank_one(MessageKind kind, std::uint64_t bytes = 4) {
  return {.kind = kind, .lane = 1, .from = 2, .token = 77, .to = 1, .number = 3, .bytes = bytes};
}

Message grant(const Grant& g, std::uint64_t bytes = 1000) {
  Message m = bytes_of(to_rank_one(MessageKind::grant, bytes), sizeof g);
  std::memcpy(m.data() + sizeof(PacketHeader), &g, sizeof g);
  return m;
}

bool is_read(const Message& m) {
  PacketHeader p;
  return read_packet(m, rank_one, p);
}

Message sealed(const MessageAuthenticator& seal, std::size_t body) {
  Message m(sizeof(MessageAuthenticator::Head) + body, std::byte{5});
  seal.close(m);
  return m;
}

TEST(Packets, AreReadWithWhatFollowsThem) {
  using enum MessageKind;
  for (const auto& [kind, payload] : {std::pair{eager, 4}, {announce, 0}, {credit, 0}, {ask, 16}, {lack, 16}}) {
    const Message m = bytes_of(to_rank_one(kind), static_cast<std::size_t>(payload));
    PacketHeader p;
    ASSERT_TRUE(read_packet(m, rank_one, p));
    EXPECT_EQ(payload_of(p, m).size(), static_cast<std::size_t>(payload));
    EXPECT_EQ(p.number, 3U);
    EXPECT_FALSE(payload != 0 && is_read({m.begin(), m.end() - 1}));
    EXPECT_FALSE(is_read({m.begin(), m.begin() + sizeof p - 1}));
  }
}

TEST(Packets, AreForThisRankFromAnotherOfItsCommunicator) {
  const PacketHeader good = to_rank_one(MessageKind::credit);
  ASSERT_TRUE(is_read(bytes_of(good, 0)));
  std::vector<PacketHeader> wrong(9, good);
  wrong[0].token = 78;
  wrong[1].to = 2;
  wrong[2].from = 1;  // its own, sent back
  wrong[3].from = 3;
  wrong[4].from = -1;
  wrong[5].lane = 2;
  wrong[6].version = protocol_version - 1;
  wrong[7].kind = MessageKind::state;
  wrong[8].kind = MessageKind{0};
  for (const PacketHeader& p : wrong) EXPECT_FALSE(is_read(bytes_of(p, 0))) << &p - wrong.data();
}

TEST(Packets, GrantRoomOfTheirMessageInPiecesThatCanBeNumbered) {
  EXPECT_TRUE(is_read(grant({.offset = 400, .bytes = 600, .piece = 100})));
  EXPECT_FALSE(is_read(grant({.offset = 401, .bytes = 600, .piece = 100})));
  EXPECT_FALSE(is_read(grant({.offset = 2, .bytes = ~std::uint64_t{0}, .piece = 100})));
  EXPECT_FALSE(is_read(grant({.offset = 0, .bytes = 600, .piece = 0})));
  EXPECT_FALSE(is_read(grant({.offset = 0, .bytes = 0, .piece = 100})));
  EXPECT_TRUE(is_read(grant({.offset = 0, .bytes = 4096, .piece = 1}, 5000)));
  EXPECT_FALSE(is_read(grant({.offset = 0, .bytes = 4097, .piece = 1}, 5000)));
  EXPECT_FALSE(is_read(bytes_of(to_rank_one(MessageKind::ask, 1001), 4004)));
  EXPECT_FALSE(is_read(bytes_of(to_rank_one(MessageKind::lack, std::uint64_t{1} << 62), 4004)));
}

// The changed bit may be in any field, in what follows, or in the checksum itself.
TEST(Packets, WithABitChangedAreDamagedAndTheirSenderIsKnown) {
  using enum MessageKind;
  for (const auto& [kind, payload] : {std::pair{eager, 4}, {announce, 0}, {credit, 0}, {ask, 16}, {lack, 16}}) {
    const auto bytes = static_cast<std::size_t>(payload);
    PacketHeader p = to_rank_one(kind);
    Message m = bytes_of(p, bytes);
    p.checksum = checksum_of(p, payload_of(p, m));
    m = bytes_of(p, bytes);
    m.resize(m.size() + 20);
    EXPECT_EQ(sender_of_damaged(m, rank_one), std::nullopt);
    for (std::size_t bit = 0; bit < 8 * (sizeof p + bytes); ++bit) {
      Message changed = m;
      changed[bit / 8] ^= std::byte{1} << bit % 8;
      EXPECT_EQ(sender_of_damaged(changed, rank_one), std::optional<Rank>(2)) << bit;
    }
    PacketHeader former = to_rank_one(kind);
    former.token = 78;
    Message theirs = bytes_of(former, bytes);
    former.checksum = checksum_of(former, payload_of(former, theirs));
    EXPECT_EQ(sender_of_damaged(bytes_of(former, bytes), rank_one), std::nullopt);
  }
}

// A stranger may repeat at a control port what he has heard at a data port, and the other way round.
TEST(Packets, AreNotTakenForControlNorControlForThem) {
  const MessageAuthenticator seal("secret", {.identity = 77});
  EXPECT_TRUE(seal.open(bytes_of(to_rank_one(MessageKind::eager, 400), 400)).empty());
  Message state = sealed(seal, sizeof(PublicStateHeader));
  EXPECT_FALSE(is_read(state));
  const PacketHeader head = to_rank_one(MessageKind::state);
  std::memcpy(state.data() + 8, std::bit_cast<std::array<std::byte, sizeof head>>(head).data() + 8, sizeof head - 8);
  EXPECT_FALSE(is_read(state));
}

TEST(MessageAuthenticator, OpensWhatARankOfTheJobHasSealedAndNothingElse) {
  const CommunicatorNonce origin = fresh_origin();
  const MessageAuthenticator mine("secret", origin), theirs("secret", origin);
  const Message m = sealed(mine, 90);
  Message longer = m;
  longer.resize(200);
  for (const Message& whole : {m, longer}) {
    const auto body = theirs.open(whole);
    ASSERT_EQ(body.size(), 90U);
    EXPECT_EQ(std::ranges::count(body, std::byte{5}), 90);
  }
  for (std::size_t bit = 0; bit < 8 * m.size(); ++bit) {
    Message flipped = m;
    flipped[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_TRUE(theirs.open(flipped).empty()) << bit;
  }
  for (std::size_t size = 0; size < m.size(); ++size)
    EXPECT_TRUE(theirs.open(std::span(m).first(size)).empty()) << size;
}

TEST(MessageAuthenticator, NeedsTheSecretAndTheOrigin) {
  const CommunicatorNonce origin = fresh_origin(), other = fresh_origin();
  const Message m = sealed(MessageAuthenticator("secret", origin), 30);
  EXPECT_FALSE(MessageAuthenticator("secret", origin).open(m).empty());
  EXPECT_TRUE(MessageAuthenticator("", origin).open(m).empty());
  EXPECT_TRUE(MessageAuthenticator("secret", {.identity = other.identity, .nonce = origin.nonce}).open(m).empty());
  EXPECT_TRUE(MessageAuthenticator("secret", {.identity = origin.identity, .nonce = other.nonce}).open(m).empty());
}

TEST(ReceivedGrants, AreKnownByTheirPlaceAndBounded) {
  ReceivedGrants all;
  const auto add = [&](std::uint32_t number, std::uint64_t offset, std::uint64_t key, bool passed = false) {
    Grant g{.offset = offset, .bytes = 8, .piece = 8};
    g.key[0] = key;
    all.add({.number = number}, g, passed);
  };
  add(1, 0, 5);
  add(1, 0, 6);
  add(2, 0, 7, true);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.front().grant.key[0], 6U);
  for (std::uint64_t offset = 8; offset < 100'000; offset += 8) add(2, offset, 1);  // no receiver grants so much
  EXPECT_EQ(all.size(), ReceivedGrants::most);
  add(1, 0, 9);
  EXPECT_EQ(all.front().grant.key[0], 9U);
  all.end_of(2);
  EXPECT_EQ(all.size(), 1U);
}

TEST(ReplayWindow, TakesEachOfTheLastOnce) {
  ReplayWindow w;
  EXPECT_FALSE(w.take(0));
  for (const std::uint64_t number : {1, 3, 2, 70, 7}) EXPECT_TRUE(w.take(number)) << number;
  for (const std::uint64_t number : {1, 2, 3, 7, 70, 6, 5}) EXPECT_FALSE(w.take(number)) << number;
  EXPECT_TRUE(w.take(8));
  EXPECT_TRUE(w.take(~std::uint64_t{0}));
  EXPECT_FALSE(w.take(71));
  EXPECT_TRUE(w.take(~std::uint64_t{0} - 63));
  EXPECT_FALSE(w.take(~std::uint64_t{0} - 64));
}

// The fuzzers' seeds must have the current layout: any other is refused at once, and would leave a fuzzer without a
// start.
TEST(Seeds, AreMessagesOfThisVersion) {
  const auto reads = [](const std::string& seed) {
    std::ifstream file(TRELLIS_SOURCE_DIR "/tests/fuzz/corpus/" + seed, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    PublicState s;
    return read_public(std::as_bytes(std::span(bytes)), s) && public_bytes(s) == bytes.size();
  };
  for (const char* const one : {"barrier", "plain", "rails", "splitting", "with_parts"})
    EXPECT_TRUE(reads(std::string("public_state/") + one)) << one;
  for (const char* const one : {"state", "state_of_loss", "state_of_suspicion", "state_that_suspects_the_hearer",
                                "state_splitting", "state_to_another", "state_with_news"})
    EXPECT_TRUE(reads(std::string("fabric_message/") + one)) << one;
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
