#include "device/device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "device/backends.h"
#include "device/capabilities.h"
#include "device/fork_safe_singleton.h"
#include "device/program.h"
#include "device/simulated_time.h"
#include "device/topology.h"
#include "text/refuse.h"
#include "text/registry.h"

namespace trellis::device {
namespace {

text::Registry<Backend>& registry() {
  static text::Registry<Backend> all("device");
  return all;
}

}  // namespace

Time wall_time() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
             .count() *
         1000;
}

RegisteredBackend::RegisteredBackend(Backend backend) { registry().add(std::move(backend)); }

const std::map<std::string, Backend, std::less<>>& backends() { return registry().entries(); }

const Backend& backend_named(std::string_view name) {
  std::string known;
  for (const auto& [key, b] : backends()) {
    if (key.ends_with(':') ? name.starts_with(key) : name == key) return b;
    known += (known.empty() ? "" : ", ") + b.pattern;
  }
  text::refuse("no device is called '{}'; known are {}", name, known);
}

std::shared_ptr<Device> open(std::string_view name, const Opening& opening) {
  return backend_named(name).open(name, opening);
}

std::shared_ptr<Device> host_of_process() {
  struct Known {
    std::mutex mutex;
    std::weak_ptr<Device> host;
  };
  auto& [mutex, known] = of_this_process([] { return new Known; });
  const std::lock_guard lock(mutex);
  std::shared_ptr<Device> host = known.lock();
  if (!host) known = host = open("host");
  return host;
}

RankClock clock_of(Device& d) {
  const SimulatedTime* const time = d.simulated_time();
  return time != nullptr ? time->now() : RankClock{wall_time(), d.topology().core};
}

std::string Device::why_not(Capability c) const {
  if (capabilities().has(c)) return {};
  return fmt::format("{} lacks {} ({})", name(), device::name(c), meaning(c));
}

void Device::copy(Stream& stream, void* dst, const void* src, std::size_t bytes) {
  stream.submit([this, dst, src, bytes] { copy(dst, src, bytes); });
}

void Device::fill(Stream& stream, void* dst, std::byte value, std::size_t bytes) {
  stream.submit([this, dst, value, bytes] { fill(dst, value, bytes); });
}

void Device::launch(Stream& stream, KernelLaunch what) {
  check_launch(what);  // a wrong launch throws here, and not in the stream's thread
  stream.submit([this, what = std::move(what)] { launch(what); });
}

Exported::~Exported() {
  if (fd_ >= 0) close(fd_);
}

void expect_within(std::string_view what, const MemoryPiece& range, const MemoryPiece* allocated) {
  if (allocated == nullptr) text::refuse("{}: {} is not memory of this device", what, fmt::ptr(range.at));
  const auto before = static_cast<std::size_t>(range.at - allocated->at);
  if (range.bytes <= allocated->bytes && before <= allocated->bytes - range.bytes) return;
  text::refuse("{}: {} bytes from byte {} of {} bytes go past their end", what, range.bytes, before, allocated->bytes);
}

}  // namespace trellis::device
