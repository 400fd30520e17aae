// A kernel's instructions as its text has them, before a back end gives them engines, an order and places.
#pragma once

#include <utility>
#include <vector>

#include "sim/core/program/program.h"

namespace trellis::sim::core {

using EngineSet = std::uint8_t;  // a bit for each Engine
constexpr EngineSet set_of(Engine e) { return static_cast<EngineSet>(1U << static_cast<unsigned>(e)); }
constexpr bool holds(EngineSet set, Engine e) { return (set & set_of(e)) != 0; }

struct UnscheduledProgram {
  NeuronCoreProgram program;         // without semaphores; buffers on chip have places only where `placed` says so
  std::vector<std::int32_t> sites;   // of each buffer: which declaration made it
  std::vector<bool> placed;          // of each buffer: its place is given
  std::vector<EngineSet> engines;    // of each instruction: all that may run it, its own included
  std::vector<std::int16_t> queues;  // of each DMA: the ring that is asked for; -1: any
  std::vector<bool> in_order;        // of each instruction: those marked keep the order of the text among themselves
  std::vector<std::pair<std::uint32_t, std::uint32_t>> follows;  // sorted (later, earlier): later waits for the result
  std::vector<std::pair<std::uint32_t, std::uint32_t>> after;    // sorted (later, earlier): an order of issue, no wait
  // The region of the text that each instruction is in, a non-decreasing number. Empty: there is one region.
  std::vector<std::uint32_t> regions;
};

}  // namespace trellis::sim::core
