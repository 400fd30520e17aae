#include "device/capabilities.h"

#include <array>
#include <utility>

namespace trellis::device {
namespace {

struct Words {
  Capability capability;
  std::string_view name, meaning;
};

constexpr std::array<Words, capability_count> words = {{
    {Capability::host_access, "host_access", "the host reads and writes its memory through plain pointers"},
    {Capability::window, "window", "other processes can map its memory"},
    {Capability::share, "share", "the caller's own memory can be moved into the window"},
    {Capability::export_memory, "export_memory", "a range of memory as a file descriptor, for a fabric"},
    {Capability::programs, "programs", "loads and runs programs of a NeuronCore"},
    {Capability::simulated_time, "simulated_time", "streams and events carry the time of a simulated machine"},
    {Capability::async_queues, "async_queues", "programs and copies are queued on the device itself"},
    {Capability::collectives, "collectives", "has collectives of its own"},
    {Capability::send_recv, "send_recv", "sends memory to cores of other processes"},
    {Capability::memory_stats, "memory_stats", "the device itself counts its memory"},
    {Capability::profile, "profile", "records what a program does, and when"},
}};

constexpr std::array<Capability, capability_count> all = [] {
  std::array<Capability, capability_count> made{};
  for (std::size_t i = 0; i < capability_count; ++i) made[i] = words[i].capability;
  return made;
}();

}  // namespace

std::string_view name(Capability c) { return words[static_cast<std::size_t>(c)].name; }
std::string_view meaning(Capability c) { return words[static_cast<std::size_t>(c)].meaning; }
std::span<const Capability> every_capability() { return all; }

std::string text_of(const Capabilities& c) {
  std::string out;
  for (const Words& w : words)
    if (c.has(w.capability)) out.append(out.empty() ? "" : ", ").append(w.name);
  return out.empty() ? "nothing" : out;
}

}  // namespace trellis::device
