// The data path and the control link of a rank whose wires carry nothing.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/control/control_link.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/libfabric/lanes/lane_sender.h"
#include "ccl/transports/libfabric/wire/wire_wrapper.h"
#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

// What a rank asks of its wires.
struct Asked {
  std::vector<std::pair<int, std::uint64_t>> writes;  // rail and key of each
  std::vector<PacketHeader> requests;                 // for pieces that are missing
  std::vector<WireOperation*> receives;               // that are posted
  int regions = 0, closed_late = 0;                   // registered; of these, closed after their wire
};

class LeasedRegion : public MemoryRegion {
 public:
  LeasedRegion(std::shared_ptr<const bool> wire_is_there, Asked& asked)
      : wire_is_there_(std::move(wire_is_there)), asked_(asked) {
    ++asked_.regions;
  }
  ~LeasedRegion() override { asked_.closed_late += *wire_is_there_ ? 0 : 1; }
  void* descriptor() const override { return nullptr; }
  std::uint64_t key() const override { return 0; }
  std::uint64_t address() const override { return 0; }

 private:
  const std::shared_ptr<const bool> wire_is_there_;
  Asked& asked_;
};

// A wire that takes every operation and ends none.
class SilentWire : public Wire {
 public:
  SilentWire(int rail, Asked& asked) : rail_(rail), asked_(asked) {
    limits_ = {.message = std::size_t{1} << 16,
               .piece = std::size_t{1} << 30,
               .outstanding = 64,
               .writes = true,
               .registers_local = true,
               .listens = true,
               .provider = "silent"};
  }
  ~SilentWire() override { *is_there_ = false; }
  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return {}; }
  fi_addr_t know(std::span<const std::byte>, std::uint32_t peer) override { return peer; }
  std::unique_ptr<MemoryRegion> region(const MemoryDescription&, bool) override {
    return std::make_unique<LeasedRegion>(is_there_, asked_);
  }
  bool inject(fi_addr_t, const void*, std::size_t) override { return true; }
  bool send(fi_addr_t, const LocalBytes& b, WireOperation&) override {
    PacketHeader p;
    std::memcpy(&p, b.data, sizeof p);
    if (p.kind == PacketHeader::Kind::ask) asked_.requests.push_back(p);
    return true;
  }
  bool write(const WriteTarget& to, const LocalBytes&, std::uint32_t, WireOperation&) override {
    asked_.writes.emplace_back(rail_, to.key);
    return true;
  }
  bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t, WireOperation&) override { return true; }
  bool receive(const LocalBytes&, WireOperation& o) override {
    asked_.receives.push_back(&o);
    return true;
  }
  bool receive_tagged(const LocalBytes&, std::uint32_t, WireOperation&) override { return true; }
  void end() override {}
  int refusal() const override { return 0; }
  std::size_t poll(std::span<WireEvent>) override { return 0; }
  int descriptor() override { return none; }

 private:
  const int rail_;
  Asked& asked_;
  WireLimits limits_;
  const std::shared_ptr<bool> is_there_ = std::make_shared<bool>(true);
};

class SilentFabric : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = library_absence(); !why.empty()) GTEST_SKIP() << why;
    wrap_wires([this](std::unique_ptr<Wire>, const WireRole& role) {
      return std::make_unique<SilentWire>(role.rail, asked_);
    });
  }
  void TearDown() override { wrap_wires({}); }

  // Not the provider "net", which libfabric would choose: in 1.17, each of its endpoints leaks a description.
  const FabricSettings settings_{.provider = "tcp"};
  Asked asked_;
  const std::shared_ptr<Presence> zero_ = std::make_shared<Presence>(roster_of(0, 2), 10s, ControlPaths{});
  Presence one_ = presence_of(1, 2);
};

TEST_F(SilentFabric, DataUnderWayAreNobodysFaultOnceTheDataPathIsClosed) {
  DataPath data(settings_, false, zero_, std::make_shared<ControlLink>(settings_), 1);
  one_.lock().states().announce([](PublicState& s) { s.head.activity.running = true; });
  tell(one_, *zero_);
  data.traffic().sent(1, 0);
  data.progress();
  EXPECT_FALSE(zero_->lock().detector().answers(1, Clock::now() + 1h)) << "it takes no data";
  data.close();
  EXPECT_TRUE(zero_->lock().detector().answers(1, Clock::now() + 1h));
}

// Rail 4 takes over the slot of rail 0, which was closed. The grant of a message under way still has, in this slot, the
// key of memory on rail 0.
TEST_F(SilentFabric, APlaceOnAClosedRailIsNotUsedOnTheRailThatTakesItsSlot) {
  constexpr std::uint32_t pieces = 8, bytes = 1U << 16;
  FabricSettings settings = settings_;
  settings.rails = 4;
  DataPath data(settings, false, zero_, std::make_shared<ControlLink>(settings), 1);
  const auto leave = [&](std::initializer_list<int> rails) {
    one_.lock().states().announce([&](PublicState& s) {
      RailSet left;
      for (const int rail : rails) left.add(rail);
      s.head.rails_left = left.word();
      s.address.assign(std::size_t{2} * most_rails, std::byte{1});  // of wires whose addresses are a byte long
    });
    tell(one_, *zero_);
    data.progress();
  };
  leave({});
  const PacketHeader packet{.kind = PacketHeader::Kind::grant, .bytes = std::uint64_t{pieces} * bytes};
  Grant grant{.bytes = packet.bytes, .piece = bytes};
  for (int rail = 0; rail < settings.rails; ++rail) {
    grant.add(rail);
    grant.key[slot_of(rail)] = 10U + static_cast<std::uint64_t>(rail);
  }
  LaneSender& sender = data.ends().sender(1, 0);
  sender.granted(packet, grant);
  const std::vector<std::byte> memory(packet.bytes);
  Sending s{.data = memory.data(), .bytes = memory.size()};
  sender.advance(s);
  EXPECT_EQ(asked_.writes.size(), pieces);

  leave({1, 2, 3});
  leave({0, 1, 2, 3});
  ASSERT_TRUE(holds_in_time([&] {
    sender.advance(s);
    return !asked_.requests.empty();
  }));
  EXPECT_EQ(asked_.requests.back().bytes, pieces);
  std::vector<std::uint32_t> lacking(pieces);
  std::iota(lacking.begin(), lacking.end(), 0U);
  sender.lacking(asked_.requests.back(), lacking);
  sender.advance(s);
  EXPECT_EQ(asked_.writes.size(), pieces) << "no place on rail 4 is known";
  grant.rails = 0;
  grant.add(4);
  grant.key[slot_of(4)] = 20;
  sender.granted(packet, grant);
  sender.advance(s);
  ASSERT_EQ(asked_.writes.size(), 2 * pieces);
  for (std::uint32_t i = pieces; i < 2 * pieces; ++i) EXPECT_EQ(asked_.writes[i], std::pair(4, std::uint64_t{20}));
  data.close();
  EXPECT_EQ(asked_.closed_late, 0);
}

TEST_F(SilentFabric, TheControlLinkClosesItsMemoryBeforeItsWires) {
  {
    ControlLink link(settings_);
    link.begin(std::vector<Member>(2), MessageAuthenticator("secret", {}));
  }
  EXPECT_GT(asked_.regions, 0);
  EXPECT_EQ(asked_.closed_late, 0);
}

// A link that stops again and again has a new rail each time.
TEST(PacketChannel, GivesUpTheBuffersOfFormerWires) {
  constexpr std::size_t bytes = 1024;
  Asked asked;
  PacketChannel channel(bytes, 8);
  auto wire = std::make_unique<SilentWire>(0, asked);
  channel.open(*wire, 0);
  auto* const kept = static_cast<PacketBuffer*>(asked.receives.front());
  channel.received();
  std::memset(kept->data, 7, bytes);
  auto reopened = [&, rail = 0](int times) mutable {
    for (int i = 0; i < times; ++i) {
      auto next = std::make_unique<SilentWire>(++rail, asked);
      channel.open(*next, rail);
      wire = std::move(next);
    }
    return channel.memory_bytes();
  };
  const std::size_t most = reopened(10);
  EXPECT_EQ(reopened(10), most);
  EXPECT_TRUE(std::ranges::all_of(std::span(kept->data, bytes), [](std::byte b) { return b == std::byte{7}; }));
  channel.give(kept);
  EXPECT_LT(reopened(1), most);
  EXPECT_EQ(asked.closed_late, 0);
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
