// One instruction on random operands, for tests of kinds and of the rules.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/types/convert.h"
#include "sim/core/check/check.h"
#include "sim/core/run/core_memory.h"
#include "sim/core/run/instruction_cost.h"

namespace trellis::sim::core {

// The layout of an operand in a buffer of its own.
struct Lie {
  DType type = DType::f32;
  std::int32_t rows = 1;
  std::vector<Dim> dims = {};
  MemorySpace space = MemorySpace::sbuf;
  std::int64_t before = 0;  // elements, in front of the first
};

// A layout of rows x columns, with elements side by side.
inline Lie plain(DType type, std::int32_t rows, std::int32_t columns, MemorySpace space = MemorySpace::sbuf) {
  return {type, rows, {{columns, 1}}, space};
}
// A layout of two dimensions with holes in both, after three elements that belong to no operand.
inline Lie holes(DType type, std::int32_t rows, std::int32_t outer, std::int32_t inner,
                 MemorySpace space = MemorySpace::sbuf) {
  return {type, rows, {{outer, inner * 2 + 3}, {inner, 2}}, space, 3};
}

class Bench {
 public:
  explicit Bench(std::string_view named = "trn2") : chip(chip_named(named)) { program.name = "bench"; }

  View add(const Lie& lie);

  void set(std::string_view kind, Engine engine, std::vector<View> outputs, std::vector<View> inputs,
           std::vector<Attribute> attributes = {});
  // Adds another instruction at the end.
  void append(std::string_view kind, Engine engine, std::vector<View> outputs, std::vector<View> inputs,
              std::vector<Attribute> attributes = {}, std::vector<SemaphoreWait> waits = {},
              std::vector<SemaphoreSignal> signals = {});

  CoreMemory& memory() {
    if (!memory_) memory_ = std::make_unique<CoreMemory>(program, chip);
    return *memory_;
  }
  BoundInstruction call() const { return BoundInstruction(program, program.instructions.front()); }

  // Checks the program, and runs it.
  void run();
  InstructionCost cost() const { return cost_of(call(), chip); }
  double cycles() const;  // until its engine can start the next instruction

  // Reads all elements, row after row.
  std::vector<double> read(const View& v);
  void write(const View& v, const std::vector<double>& all);
  // Writes normal numbers of the type, or integers from 0 up to `most`. Returns what is then in memory.
  std::vector<double> fill(const View& v, double most = 0);

  ChipSpec chip;
  NeuronCoreProgram program;
  std::vector<std::int64_t> registers = std::vector<std::int64_t>(register_count);
  std::mt19937 random{7};

 private:
  std::unique_ptr<CoreMemory> memory_;
  std::int64_t sbuf_ = 0, psum_ = 0;
};

inline Attribute with(Key key, double value) { return {key, value}; }
inline Attribute with(AluOp op, Key key = Key::op) { return {key, static_cast<double>(op)}; }
inline Attribute with(ActivationFunction f) { return {Key::func, static_cast<double>(f)}; }
inline Attribute with(ReduceCommand c) { return {Key::reduce_command, static_cast<double>(c)}; }

// What a value becomes in memory.
inline double stored(DType type, double value) {
  double bytes = 0;
  kernels::store(type, &bytes, value);
  return kernels::load(type, &bytes);
}

}  // namespace trellis::sim::core
