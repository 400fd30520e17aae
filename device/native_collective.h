// A collective that a device does by itself: over its own memory, with other cores, without our schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/reduce/reduce.h"

namespace trellis::device {

// The world in which devices do such collectives. Devices of one world have different numbers, below its size.
struct NativeWorld {
  std::uint64_t identity = 0;  // 0: none
  std::uint32_t number = 0, size = 1;
};

struct NativeCollective {
  enum class Kind : unsigned char { all_gather, all_reduce, reduce_scatter } kind = Kind::all_reduce;
  kernels::Reduction op = kernels::Reduction::sum;
  kernels::DType type = kernels::DType::f32;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;                  // elements of the input
  std::vector<std::uint32_t> group = {};  // the members, by their numbers in the world
  std::uint32_t rank = 0;                 // this device's place in the group
  std::uint32_t world = 1;                // size of the world
};

// The right to begin a native collective. A device runs them in the order in which they begin, so two that overlap
// would deadlock if their members began them in different orders.
using NativeTurn = std::shared_ptr<const void>;

// A native collective that has begun. It may use its memory until it is done or, if this is destroyed before, until the
// device is closed.
class NativeCollectiveRun {
 public:
  virtual ~NativeCollectiveRun() = default;
  virtual bool done() = 0;  // throws system_error if it failed
};

class NativeCollectives {
 public:
  virtual ~NativeCollectives() = default;
  // Joins the world in which the device does collectives by itself. A device joins once: the result is the world that
  // it is in, which may be an earlier one, or none.
  virtual NativeWorld join(const NativeWorld&) = 0;
  // Why the device does not do this collective; empty: it does. All members start it alike, and then poll
  // NativeCollectiveRun::done().
  virtual std::string refuses(const NativeCollective&) const = 0;
  virtual std::unique_ptr<NativeCollectiveRun> start(const NativeCollective&, NativeTurn) = 0;  // throws Unsupported
  virtual NativeTurn take_turn() = 0;                                                           // null: another has it
};

}  // namespace trellis::device
