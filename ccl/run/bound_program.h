// What an executor runs: a compiled program, bound to buffers, types and rounding.
#pragma once

#include "ccl/plan/compiled_program.h"
#include "ccl/transports/transport.h"
#include "device/native_collective.h"
#include "kernels/reduce/reduce.h"

namespace trellis::ccl {

struct BoundProgram {
  const CompiledProgram* compiled = nullptr;
  void* buffers[3] = {};  // indexed by schedule::Buffer; the input is only read, unless it is the output
  kernels::DType type = kernels::DType::u8;
  kernels::DType wire = kernels::DType::u8;  // type of messages; if it is not `type`, compiled->step_runs is needed
  kernels::Reduction op = kernels::Reduction::sum;
  kernels::ReduceOptions how = {};   // rounding, random bits, and how results are stored
  std::uint32_t mark = 0;            // equal on all ranks that run the same operation
  std::uint32_t round_mark = 0;      // of all-to-all rounds: equal on ranks that have made the same calls up to this
  bool one_mark = true;              // false: the exchange before the call has messages with another mark
  RankActivity* activity = nullptr;  // this rank's state as other ranks see it; updated during the run
  bool tokens = false;               // empty messages are sent too, to signal arrival
  device::NativeCollectiveRun* native =
      nullptr;  // the device's own collective, which replaces the program: that is then empty

  bool rounds() const {
    return !compiled->step_runs.empty();
  }  // values are rounded on their way: see RoundingArithmetic
  bool narrows() const { return wire != type; }
  std::byte* at(const BufferRange& p) const {
    const auto base = reinterpret_cast<std::uintptr_t>(buffers[static_cast<std::size_t>(p.buffer)]);
    return reinterpret_cast<std::byte*>(base + p.first * kernels::size_of(type));
  }
};

}  // namespace trellis::ccl
