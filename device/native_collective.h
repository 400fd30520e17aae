// A collective that a device does by itself: over its own memory, with other cores, without our schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reduce/reduce.h"

namespace trellis::device {

struct NativeCollective {
  enum class Kind : unsigned char { all_gather, all_reduce, reduce_scatter } kind = Kind::all_reduce;
  kernels::Reduction op = kernels::Reduction::sum;
  kernels::DType type = kernels::DType::f32;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;                  // elements of the input
  std::vector<std::uint32_t> group = {};  // the members, by their numbers in the world
  std::uint32_t rank = 0;                 // this device's place in the group
  std::uint32_t world = 1;                // devices of all groups
};

}  // namespace trellis::device
