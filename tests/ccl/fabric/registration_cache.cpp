// Which registrations a RegistrationCache keeps, the keys of regions, and the requests to register memory.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string>
#include <vector>

#include "ccl/transports/libfabric/data/registration_cache.h"
#include "ccl/transports/libfabric/wire/endpoint_wire.h"
#include "ccl/transports/libfabric/wire/region_key_pool.h"
#include "ccl/transports/libfabric/wire/registration_request.h"
#include "device/device.h"
#include "net/sha256.h"

namespace trellis::ccl::libfabric {
namespace {

// Counts the regions that exist.
class Counted : public MemoryRegion {
 public:
  Counted(const std::byte* at, int& all) : at_(at), all_(all) { ++all_; }
  ~Counted() override { --all_; }
  void* descriptor() const override { return &all_; }
  std::uint64_t key() const override { return 7; }
  std::uint64_t address() const override { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  const std::byte* at_;
  int& all_;
};

struct Kept {
  explicit Kept(std::size_t most)
      : all(most, [this](const RegistrationCache::Range& r, bool for_peers) {
          ++made;
          if (r.bytes > most_bytes) throw failure(FI_ENOMEM, "fi_mr_regattr");
          std::vector<std::unique_ptr<MemoryRegion>> by_rail;
          by_rail.push_back(std::make_unique<Counted>(r.begin, alive));
          by_rail.push_back(std::make_unique<Counted>(r.begin, alive));
          return RegisteredMemory(r, for_peers, std::move(by_rail));
        }) {}
  int made = 0, alive = 0;
  std::size_t most_bytes = SIZE_MAX;
  RegistrationCache all;
};

std::byte memory[1 << 16];

TEST(RegistrationCache, OfExposedMemoryIsUsedAgain) {
  Kept k(4);
  k.all.expose({memory, 1000});
  const auto one = k.all.of(memory + 10, 100, true), other = k.all.of(memory + 500, 500, true);
  EXPECT_EQ(one, other);
  EXPECT_EQ(k.made, 1);
  EXPECT_EQ(other->address(1, memory + 500), reinterpret_cast<std::uint64_t>(memory + 500));
  EXPECT_NE(k.all.of(memory, 10, false), one);  // not for peers: another registration
  EXPECT_EQ(k.made, 2);
}

TEST(RegistrationCache, OfOtherMemoryEndsWithItsUse) {
  Kept k(4);
  k.all.expose({memory, 1000});
  for (int i = 0; i < 3; ++i) {
    k.all.of(memory + 2000, 100, true);
    k.all.of(memory + 990, 11, true);  // partly exposed
  }
  EXPECT_EQ(k.made, 6);
  EXPECT_EQ(k.alive, 0);
  EXPECT_EQ(k.all.kept(), 0U);
}

TEST(RegistrationCache, TheLeastRecentlyUsedGoesFirst) {
  Kept k(2);
  for (int i = 0; i < 3; ++i) k.all.expose({memory + 1000 * i, 1000});
  k.all.of(memory, 1, true);
  k.all.of(memory + 1000, 1, true);
  k.all.of(memory, 1, true);
  k.all.of(memory + 2000, 1, true);
  EXPECT_EQ(k.made, 3);
  k.all.of(memory, 1, true);
  EXPECT_EQ(k.made, 3);
  k.all.of(memory + 1000, 1, true);
  EXPECT_EQ(k.made, 4);
  EXPECT_EQ(k.all.kept(), 2U);
}

TEST(RegistrationCache, OneInUseStays) {
  Kept k(1);
  k.all.expose({memory, 1000});
  k.all.expose({memory + 1000, 1000});
  const auto used = k.all.of(memory, 1, true);
  k.all.of(memory + 1000, 1, true);
  k.all.of(memory + 1000, 1, true);  // there is no room to keep it: registered anew for each use
  EXPECT_EQ(k.made, 3);
  EXPECT_EQ(k.all.of(memory, 1, true), used);
}

TEST(RegistrationCache, NoneIsKeptWhereNoneMayBe) {
  Kept k(0);
  k.all.expose({memory, 1000});
  k.all.of(memory, 1000, true);
  EXPECT_EQ(k.all.kept(), 0U);
}

TEST(RegistrationCache, EndWithTheExposure) {
  Kept k(4);
  k.all.expose({memory, 1000});
  k.all.expose({memory, 1000});
  k.all.of(memory, 1000, true);
  k.all.end_exposed({memory, 1000});
  EXPECT_EQ(k.alive, 0);
  k.all.of(memory, 1000, true);  // exposed once more
  EXPECT_EQ(k.all.kept(), 1U);
  k.all.end_exposed({memory, 1000});
  k.all.of(memory, 1000, true);
  EXPECT_EQ(k.all.kept(), 0U);
}

TEST(RegistrationCache, OneInUseOutlivesItsMemoryAndIsNotUsedAgain) {
  Kept k(4);
  k.all.expose({memory, 1000});
  const auto old = k.all.of(memory, 1000, true);
  k.all.end(memory + 999, 1);
  EXPECT_EQ(k.alive, 2);
  EXPECT_NE(k.all.of(memory, 1000, true), old);
}

TEST(RegistrationCache, WhatCantBeRegisteredWholeIsRegisteredByMessage) {
  Kept k(4);
  k.most_bytes = 500;
  k.all.expose({memory, 1000});
  for (int i = 0; i < 3; ++i) EXPECT_NE(k.all.of(memory + 100, 400, true), nullptr);
  EXPECT_EQ(k.made, 4);
}

TEST(RegistrationCache, LeaveARail) {
  Kept k(4);
  k.all.expose({memory, 1000});
  k.all.of(memory, 1000, true);
  k.all.drop_rail(1);
  EXPECT_EQ(k.alive, 1);
  EXPECT_TRUE(k.all.of(memory, 1, true)->has(0));
  EXPECT_FALSE(k.all.of(memory, 1, true)->has(1));
}

TEST(RegistrationCache, TakeUpARail) {
  Kept k(1);
  k.all.expose({memory, 1000});
  const auto kept = k.all.of(memory, 1000, true), alone = k.all.alone(memory + 5000, 10, false);
  k.all.alone(memory + 6000, 10, false);  // ends at once: nobody holds it
  std::vector<std::pair<std::size_t, bool>> asked;
  k.all.add_rail([&](const RegistrationCache::Range& r, bool for_peers) {
    asked.emplace_back(r.bytes, for_peers);
    return std::make_unique<Counted>(r.begin, k.alive);
  });
  EXPECT_EQ(asked, (std::vector<std::pair<std::size_t, bool>>{{1000, true}, {10, false}}));
  EXPECT_TRUE(kept->has(2));
  EXPECT_EQ(kept->address(2, memory + 30), reinterpret_cast<std::uint64_t>(memory) + 30);
  EXPECT_TRUE(alone->has(2));
}

// If one of them cannot be registered with the new rail, none is.
TEST(RegistrationCache, AllHaveAFurtherRailOrNone) {
  Kept k(4);
  const auto one = k.all.alone(memory, 10, true), other = k.all.alone(memory + 10, 10, true);
  const auto no_room = [&](const RegistrationCache::Range& r, bool) -> std::unique_ptr<MemoryRegion> {
    if (r.begin != memory) throw failure(FI_ENOMEM, "fi_mr_regattr");
    return std::make_unique<Counted>(r.begin, k.alive);
  };
  EXPECT_THROW(k.all.add_rail(no_room), std::system_error);
  EXPECT_EQ(k.alive, 4) << "two rails for each";
  k.all.add_rail([&](const auto& r, bool) { return std::make_unique<Counted>(r.begin, k.alive); });
  for (const auto& use : {one, other}) EXPECT_EQ(use->address(2, use->of().begin), use->address(0, use->of().begin));
}

// As in a transport, the watcher ends registrations before the device gives the pages back: it can still read them.
TEST(RegistrationCache, OfADevicesMemoryEndBeforeItsPages) {
  Kept k(4);
  bool read = false;
  const auto watch = device::watched_memory().watch([&](const std::byte* begin, std::size_t bytes) {
    read = *begin == std::byte{5};
    k.all.end(begin, bytes);
  });
  const auto host = device::open("host");
  auto* const data = static_cast<std::byte*>(host->allocate(100'000));
  *data = std::byte{5};
  const auto first = k.all.of(data + 5000, 10, true);
  EXPECT_EQ(k.all.of(data + 90'000, 10'000, true), first);
  EXPECT_EQ(k.all.of(data, 10, true), first);
  host->release(data);
  EXPECT_TRUE(read);
  EXPECT_EQ(k.all.kept(), 0U);
  auto* const again = static_cast<std::byte*>(host->allocate(100'000));
  EXPECT_EQ(again, data);
  EXPECT_NE(k.all.of(again, 10, true), first);
  host->release(again);
}

// Does what another communicator may do: moves the memory into the device's window, and back.
TEST(RegistrationCache, EndWhenPagesMove) {
  Kept k(4);
  const auto watch =
      device::watched_memory().watch([&](const std::byte* begin, std::size_t bytes) { k.all.end(begin, bytes); });
  constexpr std::size_t bytes = 1 << 16;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  k.all.expose({static_cast<std::byte*>(at), bytes});
  k.all.of(at, bytes, true);
  const auto host = device::open("host");
  auto shared = host->share(at, bytes);
  ASSERT_EQ(shared->bytes(), bytes);
  EXPECT_EQ(k.all.kept(), 0U);
  k.all.of(at, bytes, true);
  shared.reset();
  EXPECT_EQ(k.all.kept(), 0U);
  munmap(at, bytes);
}

TEST(RegionKeyPool, BeginAtTheGivenNumberAsFarAsItFits) {
  EXPECT_EQ(RegionKeyPool(8, 0xFEDC'BA98'7654'3210).take(), 0xFEDC'BA98'7654'3210U);
  EXPECT_EQ(RegionKeyPool(0, 0xFEDC'BA98'7654'3210).take(), 0xFEDC'BA98'7654'3210U) << "the provider has not said";
  EXPECT_EQ(RegionKeyPool(16, 7).take(), 7U);
  EXPECT_EQ(RegionKeyPool(4, 0xFEDC'BA98'7654'3210).take(), 0x7654'3210U);
}

TEST(RegionKeyPool, AreNeverZeroNorInUse) {
  RegionKeyPool keys(1, 0x3FE);
  EXPECT_EQ(keys.take(), 0xFEU);
  EXPECT_EQ(keys.take(), 0xFFU);
  for (std::uint64_t key = 1; key < 0xFE; ++key) EXPECT_EQ(keys.take(), key);
  EXPECT_THROW(keys.take(), std::runtime_error);
  keys.give(200);
  keys.give(9);
  EXPECT_EQ(keys.take(), 9U);
  EXPECT_EQ(keys.take(), 200U);
}

TEST(RegionKeyPool, AreInUseAsLongAsTheirOwner) {
  const auto keys = std::make_shared<RegionKeyPool>(1, 1);
  std::vector<RegionKey> all;
  for (int i = 0; i < 255; ++i) all.emplace_back(keys);
  EXPECT_THROW(RegionKey{keys}, std::runtime_error);
  all.pop_back();
  EXPECT_EQ(RegionKey(keys).number(), 255U);
  EXPECT_EQ(RegionKey(keys).number(), 255U);
  EXPECT_EQ(RegionKey(nullptr).number(), 0U);
}

TEST(RegionKeyPool, BeginElsewhereEachTime) { EXPECT_NE(net::random_number(), net::random_number()); }

constexpr std::uint32_t old = FI_VERSION(1, 17), recent = FI_VERSION(2, 1);

std::string refused(const MemoryDescription& m, std::uint64_t caps, std::uint32_t version) {
  try {
    const RegistrationRequest request(m, FI_SEND, 1, caps, version);
    return "";
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
}

TEST(RegistrationRequest, OfTheHostsMemoryNamesItsPart) {
  const RegistrationRequest r({.data = memory, .bytes = 10}, FI_SEND | FI_RECV, 9, FI_MSG, old);
  EXPECT_EQ(r.attributes.mr_iov->iov_base, memory);
  EXPECT_EQ(r.attributes.mr_iov->iov_len, 10U);
  EXPECT_EQ(r.attributes.iov_count, 1U);
  EXPECT_EQ(r.attributes.access, std::uint64_t{FI_SEND | FI_RECV});
  EXPECT_EQ(r.attributes.requested_key, 9U);
  EXPECT_EQ(r.attributes.iface, FI_HMEM_SYSTEM);
  EXPECT_EQ(r.flags, 0U);
}

TEST(RegistrationRequest, OfANeuronDevicesMemoryNamesTheDevice) {
  const RegistrationRequest r({.data = memory, .bytes = 10, .of = MemoryDescription::Of::neuron, .device = 3}, FI_SEND,
                              1, FI_MSG | FI_HMEM, old);
  EXPECT_EQ(r.attributes.iface, FI_HMEM_NEURON);
  EXPECT_EQ(r.attributes.device.neuron, 3);
  EXPECT_EQ(r.attributes.mr_iov->iov_base, memory);
  EXPECT_EQ(r.flags, 0U);
}

TEST(RegistrationRequest, OfExportedMemoryHasTheFile) {
  const RegistrationRequest r(
      {.data = memory, .bytes = 10, .of = MemoryDescription::Of::neuron, .dmabuf = 17, .dmabuf_offset = 4096}, FI_SEND,
      1, FI_MSG | FI_HMEM, recent);
  EXPECT_EQ(r.flags, by_dmabuf);
  const auto* const d = reinterpret_cast<const Dmabuf*>(r.attributes.mr_iov);
  EXPECT_EQ(d->fd, 17);
  EXPECT_EQ(d->offset, 4096U);
  EXPECT_EQ(d->bytes, 10U);
  EXPECT_EQ(r.attributes.iov_count, 1U);
}

TEST(RegistrationRequest, WhatIsMissingIsNamed) {
  const MemoryDescription neuron = {.data = memory, .bytes = 10, .of = MemoryDescription::Of::neuron, .device = 3};
  EXPECT_EQ(refused(neuron, FI_MSG, recent),
            "10 bytes of Neuron device 3 can't be registered: expected a provider with FI_HMEM, such as efa");
  MemoryDescription exported = neuron;
  exported.dmabuf = 5;
  EXPECT_EQ(refused(exported, FI_HMEM, old),
            "libfabric 1.17 can't register a DMA-BUF: expected 1.20 or later, such as the EFA installer's");
  EXPECT_EQ(refused(exported, FI_HMEM, recent), "");
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
