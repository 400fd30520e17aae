// What a device can do, as bits; a device can also say why it cannot do something.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trellis::device {

enum class Capability : std::uint8_t {
  host_access,     // the host reads and writes its memory through plain pointers
  window,          // other processes can map its memory
  share,           // the caller's own memory can be moved into the window
  export_memory,   // a range of memory as a file descriptor, for a fabric
  programs,        // loads and runs programs of a NeuronCore
  simulated_time,  // streams and events carry the time of a simulated machine
  async_queues,    // programs and copies are queued on the device itself
  collectives,     // has collectives of its own
  send_recv,       // sends memory to cores of other processes
  memory_stats,    // the device itself counts its memory
  profile,         // records what a program does, and when
};
inline constexpr std::size_t capability_count = 11;

std::string_view name(Capability);
std::string_view meaning(Capability);
std::span<const Capability> every_capability();

class Capabilities {
 public:
  constexpr Capabilities() = default;
  constexpr Capabilities(std::initializer_list<Capability> all) {
    for (const Capability c : all) add(c);
  }
  constexpr void add(Capability c) { bits_ |= bit(c); }
  constexpr bool has(Capability c) const { return (bits_ & bit(c)) != 0; }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool operator==(const Capabilities&) const = default;

 private:
  static constexpr std::uint32_t bit(Capability c) { return std::uint32_t{1} << static_cast<unsigned>(c); }
  std::uint32_t bits_ = 0;
};

std::string text_of(const Capabilities&);  // "window, share"; "nothing"

}  // namespace trellis::device
