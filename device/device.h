// Device interface: memory, streams, events, kernels and programs of one accelerator, real or not. Pass a device's
// pointers only to its own functions. The host's are ordinary pointers.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <string_view>

#include "device/memory.h"
#include "device/stream.h"
#include "kernels/reduce/reduce.h"

namespace trellis::device {

class Capabilities;
class ChannelFactory;
class LoadedProgram;
class NativeCollectives;
class SimulatedTime;
enum class Capability : std::uint8_t;
struct KernelLaunch;
struct MemoryUse;
struct RankClock;
struct Topology;

// The device cannot do it. The text says which device, what, and why.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;
  virtual Capabilities capabilities() const = 0;
  virtual std::string why_not(Capability) const;  // one sentence; empty: it can
  virtual const Topology& topology() const = 0;

  // Memory is aligned to a page and zero; any part of it may be given to the functions below. `what` names the holder
  // in errors. Throws OutOfMemory.
  virtual void* allocate(std::size_t bytes, std::string_view what = "unnamed") = 0;
  virtual void release(void*) = 0;
  virtual MemoryUse memory() const = 0;
  virtual Window window() const = 0;
  virtual InWindow find(const void* data, std::size_t bytes) const = 0;
  // Moves the whole pages of memory from malloc or mmap into the window's file; addresses and contents stay. Nobody may
  // write to them during the move, there or back, and peers may not read them while the result is destroyed. Destroy
  // the result before the memory is freed and before the device. A process that is forked meanwhile cannot change these
  // pages: one that it writes becomes its own; the others show it what this process writes, and zeros once the result
  // is destroyed. Throws system_error, bad_alloc.
  virtual std::unique_ptr<Shared> share(void* data, std::size_t bytes) = 0;
  // Host memory that kernels and programs may use as the device's own until the result is destroyed.
  virtual std::unique_ptr<Attached> attach(void* data, std::size_t bytes) = 0;
  virtual Exported export_memory(const void* data, std::size_t bytes) = 0;  // throws Unsupported, invalid_argument
  virtual std::size_t allocated_bytes() const = 0;  // bytes of the window that are allocated or shared

  // These are done when they return. Either side of a copy may be the host's memory.
  virtual void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores = kernels::Stores::cached) = 0;
  virtual void fill(void* dst, std::byte value, std::size_t bytes) = 0;
  virtual void reduce(kernels::Reduction, kernels::DType, std::span<const void* const> sources, void* dst,
                      std::size_t n, const kernels::ReduceOptions&) = 0;
  virtual void divide(kernels::DType, void* data, std::size_t n, std::uint32_t divisor) = 0;
  virtual void launch(const KernelLaunch&) = 0;
  // These submit the same work to a stream.
  virtual void copy(Stream&, void* dst, const void* src, std::size_t bytes);
  void fill(Stream&, void* dst, std::byte value, std::size_t bytes);
  void launch(Stream&, KernelLaunch);

  // A program in a container of neff/. Throws Unsupported, invalid_argument.
  virtual std::unique_ptr<LoadedProgram> load(std::span<const std::byte> container) = 0;

  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event() = 0;

  // What only some devices have; null where the device lacks it, for the reason that why_not() gives.
  virtual NativeCollectives* collectives() { return nullptr; }
  virtual ChannelFactory* channels() { return nullptr; }
  virtual SimulatedTime* simulated_time() { return nullptr; }
};

RankClock clock_of(Device&);  // the simulated time of this thread's work, or else wall-clock time

struct Opening {
  int core = 0;              // among the visible ones
  bool timing_only = false;  // of a simulated device: programs take time and compute nothing
};

// "host", "sim:MACHINE", "neuron". Throws invalid_argument that names the known devices, Unsupported.
std::shared_ptr<Device> open(std::string_view name, const Opening& = {});
std::shared_ptr<Device> host_of_process();  // one per process, shared by all callers while any of them holds it

}  // namespace trellis::device
