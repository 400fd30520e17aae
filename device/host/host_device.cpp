#include "device/host/host_device.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "device/backends.h"
#include "device/zero_copy_memory.h"
#include "kernels/dispatch/available_memory.h"
#include "kernels/dispatch/cpu.h"
#include "kernels/reduce/divide.h"
#include "text/refuse.h"

namespace trellis::device {
namespace {

std::vector<Nic> nics_of_host() {
  std::vector<Nic> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/infiniband", none))
    out.push_back({.name = entry.path().filename().string()});
  return out;
}

const RegisteredBackend host({.name = "host",
                              .pattern = "host",
                              .summary = "this machine: its memory, its cores, threads as streams",
                              .open = [](std::string_view, const Opening& opening) -> std::shared_ptr<Device> {
                                if (opening.core != 0)
                                  text::refuse("host: core {}: it is one device, with core 0", opening.core);
                                return std::make_shared<HostDevice>();
                              },
                              .names = [] { return std::vector<std::string>{"host"}; },
                              .missing = [] { return std::string(); }});

}  // namespace

HostDevice::HostDevice(std::string name, std::size_t memory_limit)
    : topology_{.machine = "host",
                .chip = std::string(kernels::name(kernels::cpu().best)),
                .cores = 1,
                .physical_of_core = kernels::cpu().cores,
                .memory_bytes = static_cast<double>(kernels::total_memory()),
                .nics = nics_of_host()},
      name_(std::move(name)),
      account_(name_, memory_limit) {}

Capabilities HostDevice::capabilities() const {
  return {Capability::host_access, Capability::window, Capability::share, Capability::export_memory,
          Capability::send_recv};
}

void* HostDevice::allocate(std::size_t bytes, std::string_view what) {
  account_.reserve(bytes, what);
  void* at = nullptr;
  try {
    at = arena_.allocate(bytes);
  } catch (const std::bad_alloc&) {
    account_.cancel(bytes);
    throw OutOfMemory(name_, what, bytes, memory());
  }
  account_.hold(at, bytes, what);
  return at;
}

void HostDevice::release(void* pointer) {
  if (pointer == nullptr) return;
  if (!account_.release(pointer)) text::refuse("release: {} was not allocated here", pointer);
  arena_.release(pointer);
}

MemoryUse HostDevice::memory() const {
  MemoryUse use = account_.use();
  // The limit is the host's memory: the window usually has more addresses, so that there is room between pieces.
  if (use.limit == 0) {
    const std::size_t window = arena_.window().bytes;
    use.limit = topology_.memory_bytes < static_cast<double>(window) ? static_cast<std::size_t>(topology_.memory_bytes)
                                                                     : window;
  }
  return use;
}

std::unique_ptr<Attached> HostDevice::attach(void* data, std::size_t bytes) {
  return std::make_unique<ZeroCopyMemory>(data, bytes);
}

Exported HostDevice::export_memory(const void* data, std::size_t bytes) {
  const InWindow found = find(data, bytes);
  if (found.outside != 0 || found.bytes < bytes)
    text::refuse("export_memory: {} bytes at {} are not allocated or shared by {}", bytes, data, name_);
  const int fd = fcntl(arena_.window().fd, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "export_memory: dup");
  return {Exported::Kind::mapped_file, fd, found.offset, bytes};
}

void HostDevice::copy(void* dst, const void* src, std::size_t bytes, kernels::Stores stores) {
  kernels::copy(dst, src, bytes, stores);
}

void HostDevice::fill(void* dst, std::byte value, std::size_t bytes) {
  if (bytes != 0) std::memset(dst, std::to_integer<int>(value), bytes);
}

void HostDevice::reduce(kernels::Reduction op, kernels::DType type, std::span<const void* const> sources, void* dst,
                        std::size_t n, const kernels::ReduceOptions& options) {
  kernels::reduce(op, type, sources, dst, n, options);
}

void HostDevice::divide(kernels::DType type, void* data, std::size_t n, std::uint32_t divisor) {
  kernels::divide(type, data, n, divisor);
}

std::unique_ptr<LoadedProgram> HostDevice::load(std::span<const std::byte>) {
  throw Unsupported(why_not(Capability::programs) + "; open sim:MACHINE for a simulated one");
}

}  // namespace trellis::device
