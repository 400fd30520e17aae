// The host as a device. Other devices build on it: a simulated device does what the host does, and adds time.
#pragma once

#include <atomic>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/host/shared_memory_arena.h"
#include "device/memory_accounting.h"
#include "device/messages/tcp_channel_factory.h"
#include "device/program.h"
#include "device/streams/thread_stream.h"
#include "device/topology.h"

namespace trellis::device {

class HostDevice : public Device {
 public:
  explicit HostDevice(std::string name = "host", std::size_t memory_limit = 0);

  std::string_view name() const override { return name_; }
  Capabilities capabilities() const override;
  const Topology& topology() const override { return topology_; }
  void* allocate(std::size_t bytes, std::string_view what) override;
  void release(void* pointer) override;
  MemoryUse memory() const override;
  Window window() const override { return arena_.window(); }
  InWindow find(const void* data, std::size_t bytes) const override { return arena_.find(data, bytes); }
  std::unique_ptr<Shared> share(void* data, std::size_t bytes) override { return arena_.share(data, bytes); }
  std::unique_ptr<Attached> attach(void* data, std::size_t bytes) override;
  Exported export_memory(const void* data, std::size_t bytes) override;
  std::size_t allocated_bytes() const override { return arena_.allocated_bytes(); }
  using Device::copy;
  using Device::fill;
  using Device::launch;
  void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores) override;
  void fill(void* dst, std::byte value, std::size_t bytes) override;
  void reduce(kernels::Reduction, kernels::DType, std::span<const void* const> sources, void* dst, std::size_t n,
              const kernels::ReduceOptions&) override;
  void divide(kernels::DType, void* data, std::size_t n, std::uint32_t divisor) override;
  void launch(const KernelLaunch& what) override { run_launch(what); }
  std::unique_ptr<LoadedProgram> load(std::span<const std::byte>) override;
  std::unique_ptr<Stream> stream() override { return std::make_unique<ThreadStream>(); }
  std::unique_ptr<Event> event() override { return std::make_unique<ThreadEvent>(std::make_shared<ThreadClock>()); }
  ChannelFactory* channels() override { return &messages_; }

 protected:
  Topology topology_;

 private:
  const std::string name_;
  MemoryAccount account_;
  SharedMemoryArena arena_;
  TcpChannelFactory messages_{*this};
};

}  // namespace trellis::device
