// The data path and the control link of a rank whose wires carry nothing.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ccl/transports/libfabric/control/control.h"
#include "ccl/transports/libfabric/data/data_path.h"
#include "ccl/transports/libfabric/wire/wire_wrapper.h"
#include "tests/ccl/fabric/presences.h"

namespace trellis::ccl::libfabric {
namespace {

using namespace std::chrono_literals;

// What a rank asks of its wires.
struct Asked {
  std::vector<std::pair<int, std::uint64_t>> writes;  // rail and key of each
  std::vector<Packet> requests;                       // for pieces that are missing
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
  std::unique_ptr<MemoryRegion> region(const FabricMemory&, bool) override {
    return std::make_unique<LeasedRegion>(is_there_, asked_);
  }
  bool inject(fi_addr_t, const void*, std::size_t) override { return true; }
  bool send(fi_addr_t, const LocalBytes& b, WireOperation&) override {
    Packet p;
    std::memcpy(&p, b.data, sizeof p);
    if (p.kind == Packet::Kind::ask) asked_.requests.push_back(p);
    return true;
  }
  bool write(const Target& to, const LocalBytes&, std::uint32_t, WireOperation&) override {
    asked_.writes.emplace_back(rail_, to.key);
    return true;
  }
  bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t, WireOperation&) override { return true; }
  bool receive(const LocalBytes&, WireOperation&) override { return true; }
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

  Asked asked_;
  const std::shared_ptr<Presence> zero_ = std::make_shared<Presence>(roster_of(0, 2), 10s, ControlPaths{});
  Presence one_ = presence_of(1, 2);
};

TEST_F(SilentFabric, DataUnderWayAreNobodysFaultOnceTheDataPathIsClosed) {
  DataPath data({}, false, zero_, std::make_shared<ControlLink>(FabricSettings{}), 1);
  one_.lock().states().announce([](PublicState& s) { s.head.activity.running = true; });
  tell(one_, *zero_);
  data.traffic().sent(1, 0);
  data.progress();
  EXPECT_FALSE(zero_->lock().detector().answers(1, Clock::now() + 1h)) << "it takes no data";
  data.close();
  EXPECT_TRUE(zero_->lock().detector().answers(1, Clock::now() + 1h));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
