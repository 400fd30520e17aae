// Memory of a NeuronCore, which the stand-in for libnrt simulates, as a fabric registers it.
#if __has_include(<rdma/fabric.h>)

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "ccl/transports/libfabric/data/register_region.h"
#include "ccl/transports/libfabric/data/registration_cache.h"
#include "device/device.h"
#include "device/topology.h"

namespace trellis::ccl::libfabric {
namespace {

class NoRegion : public MemoryRegion {
 public:
  void* descriptor() const override { return nullptr; }
  std::uint64_t key() const override { return 0; }
  std::uint64_t address() const override { return 0; }
};

// A wire that notes what it is asked to register, and the first number in the file that it is given.
class NotingWire : public Wire {
 public:
  explicit NotingWire(bool device_memory, int error = 0) : error_(error) { limits_.device_memory = device_memory; }
  std::unique_ptr<MemoryRegion> region(const MemoryDescription& m, bool) override {
    asked.push_back(m);
    if (m.dmabuf >= 0) {
      const std::size_t page = 4096, from = m.dmabuf_offset / page * page;
      void* const at =
          mmap(nullptr, m.bytes + m.dmabuf_offset - from, PROT_READ, MAP_SHARED, m.dmabuf, static_cast<off_t>(from));
      if (at == MAP_FAILED) throw std::runtime_error("the file can't be mapped");
      std::memcpy(&first, static_cast<std::byte*>(at) + (m.dmabuf_offset - from), sizeof first);
      munmap(at, m.bytes + m.dmabuf_offset - from);
      if (error_ != 0) throw std::system_error(error_, std::generic_category(), "fi_mr_regattr");
    }
    return std::make_unique<NoRegion>();
  }
  std::vector<MemoryDescription> asked;
  float first = 0;

  const WireLimits& limits() const override { return limits_; }
  std::span<const std::byte> address() const override { return {}; }
  fi_addr_t know(std::span<const std::byte>, std::uint32_t) override { return 0; }
  bool inject(fi_addr_t, const void*, std::size_t) override { return false; }
  bool send(fi_addr_t, const LocalBytes&, WireOperation&) override { return false; }
  bool write(const WriteTarget&, const LocalBytes&, std::uint32_t, WireOperation&) override { return false; }
  bool send_tagged(fi_addr_t, const LocalBytes&, std::uint32_t, WireOperation&) override { return false; }
  bool receive(const LocalBytes&, WireOperation&) override { return false; }
  bool receive_tagged(const LocalBytes&, std::uint32_t, WireOperation&) override { return false; }
  void end() override {}
  int refusal() const override { return 0; }
  std::size_t poll(std::span<WireEvent>) override { return 0; }
  int descriptor() override { return none; }

 private:
  WireLimits limits_;
  int error_;
};

class DeviceMemory : public testing::Test {
 protected:
  DeviceMemory() {
    setenv("TRELLIS_LIBNRT", TRELLIS_STANDIN, 1);       // NOLINT(concurrency-mt-unsafe): before any other thread
    setenv("TRELLIS_NRT_MACHINE", "trn2.48xlarge", 1);  // NOLINT(concurrency-mt-unsafe)
    core = device::open("neuron", {.core = 9});
    memory = static_cast<float*>(core->allocate(bytes, "test"));
    const std::vector<float> values(bytes / sizeof(float), 2.5F);
    core->copy(memory, values.data(), bytes);
  }
  ~DeviceMemory() override { core->release(memory); }

  // What the wire is asked to register for a message from the middle of the memory.
  MemoryDescription asked_of(NotingWire& wire, std::size_t most_kept) const {
    RegistrationCache all(most_kept, [&](const RegistrationCache::Range& r, bool for_peers) {
      std::vector<std::unique_ptr<MemoryRegion>> regions;
      regions.push_back(register_region(wire, r, for_peers));
      return RegisteredMemory(r, for_peers, std::move(regions));
    });
    all.of(memory + 1000, 4000, true);
    return wire.asked.back();
  }

  static constexpr std::size_t bytes = 1 << 16;
  std::shared_ptr<device::Device> core;
  float* memory = nullptr;
};

TEST_F(DeviceMemory, IsRegisteredAsTheDeviceExportsIt) {
  NotingWire wire(true);
  const MemoryDescription whole = asked_of(wire, 4), part = asked_of(wire, 0);
  EXPECT_EQ(whole.of, MemoryDescription::Of::neuron);
  EXPECT_EQ(whole.device, core->topology().chip_of_core());
  EXPECT_GT(whole.device, 0);
  EXPECT_EQ(whole.data, memory);
  EXPECT_EQ(whole.bytes, bytes);
  EXPECT_EQ(part.data, memory + 1000) << "none may be kept";
  EXPECT_EQ(part.bytes, 4000u);
  EXPECT_EQ(part.dmabuf_offset, whole.dmabuf_offset + 1000 * sizeof(float));
  EXPECT_EQ(wire.first, 2.5F);
}

TEST_F(DeviceMemory, IsRegisteredByItsAddressWhereTheProviderKnowsNoDevices) {
  NotingWire wire(false), without_neuron(true, ENOSYS);
  for (NotingWire* one : {&wire, &without_neuron}) {
    const MemoryDescription m = asked_of(*one, 4);
    EXPECT_EQ(m.of, MemoryDescription::Of::host);
    EXPECT_EQ(m.dmabuf, -1);
    EXPECT_EQ(m.data, memory);
  }
  EXPECT_EQ(wire.asked.size(), 1u);
  EXPECT_EQ(without_neuron.asked.size(), 2u);
}

TEST_F(DeviceMemory, ThatIsReleasedIsNoDevicesAnyMore) {
  void* const other = core->allocate(100, "other");
  EXPECT_EQ(device::watched_memory().find(other, 100)->exporter, core.get());
  core->release(other);
  EXPECT_FALSE(device::watched_memory().find(other, 100));
  std::vector<float> host(100);
  EXPECT_FALSE(device::watched_memory().find(host.data(), 100));
}

}  // namespace
}  // namespace trellis::ccl::libfabric

#endif
