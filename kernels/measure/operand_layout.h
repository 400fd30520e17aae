// Where the operands of a kernel that is timed lie in one arena, and how large the arena must be on a CPU: every size
// here follows from the caches, and from nothing else of the machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/dispatch/cpu.h"
#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

enum class WorkingSetLevel : std::uint8_t {
  l1,
  l2,
  memory
};  // the smallest of these that holds all that a call touches
inline constexpr WorkingSetLevel regimes[] = {WorkingSetLevel::l1, WorkingSetLevel::l2, WorkingSetLevel::memory};

constexpr std::string_view name(WorkingSetLevel r) {
  constexpr std::string_view names[] = {"L1", "L2", "memory"};
  return names[static_cast<std::size_t>(r)];
}

// A kernel, and how many sources it reads if it takes any number.
struct TimedKernel {
  const Kernel* kernel;
  int sources;
};

// Bytes an element, of what is only read, of what is only written, and of what is read and written in place. The one
// number for each part that a summing kernel writes is not counted.
struct TrafficPerElement {
  double read = 0, written = 0, updated = 0;
  double moved() const { return read + written + 2 * updated; }
  double distance(const TrafficPerElement& other) const;
};
TrafficPerElement mix_of(const TimedKernel&);

// Bytes that a call is to touch in a regime.
std::size_t touched_bytes(WorkingSetLevel, const Cpu&);

// Offsets in bytes from the arena's beginning.
struct OperandLayout {
  std::size_t n = 0;  // elements, at least a cache line's worth of the smallest type
  std::vector<std::size_t> writes, reads;
  std::size_t end = 0;  // of the last operand
};
OperandLayout layout_of(const TimedKernel&, std::size_t touched);

// The size of an arena that can hold any of the subjects in any regime.
std::size_t arena_bytes(const std::vector<TimedKernel>&, const Cpu&);

}  // namespace trellis::kernels
