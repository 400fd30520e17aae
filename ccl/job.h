// What a program is run on.
#pragma once

#include "ccl/compiled.h"
#include "ccl/transport.h"
#include "kernels/reduce.h"

namespace trellis::ccl {

struct Job {
  const Compiled* compiled = nullptr;
  void* buffers[3] = {};  // by schedule::Buffer; the input is only read, unless it is the output
  kernels::DType type = kernels::DType::u8;
  kernels::DType wire = kernels::DType::u8;  // of messages; another one than `type` needs origins
  kernels::Reduction op = kernels::Reduction::sum;
  kernels::ReduceOptions how = {};  // rounding, random bits, and how results are stored
  std::uint32_t mark = 0;           // equal on all ranks when they run the same thing
  Activity* activity = nullptr;     // what the others see of it, kept up while it runs
  bool tokens = false;              // messages without bytes are sent too: they say that somebody has come

  bool rounds() const { return !compiled->step_runs.empty(); }  // on the way: see Rounder
  bool narrows() const { return wire != type; }
  std::byte* at(const Place& p) const {
    const auto base = reinterpret_cast<std::uintptr_t>(buffers[static_cast<std::size_t>(p.buffer)]);
    return reinterpret_cast<std::byte*>(base + p.first * kernels::size_of(type));
  }
};

}  // namespace trellis::ccl
