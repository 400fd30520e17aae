// Builds a program in the way a kernel is written: places tiles, and derives semaphores from what instructions read and
// write, unless they are given by hand.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/program/first_fit_allocator.h"
#include "sim/core/program/instruction_kind.h"
#include "sim/core/program/semaphore_inserter.h"
#include "sim/core/program/tensor_operand.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

struct CoreAndRing {
  std::uint8_t core = 0;
  int ring = -1;  // of a DMA; -1: the default ring of its engine
};

class ProgramBuilder {
 public:
  ProgramBuilder(std::string name, const ChipSpec&, std::uint8_t cores = 1);

  // Row-major matrices in HBM.
  TensorOperand input(std::string name, DType, std::int64_t rows, std::int64_t columns);
  TensorOperand output(std::string name, DType, std::int64_t rows, std::int64_t columns);
  TensorOperand scratch(std::string name, DType, std::int64_t rows, std::int64_t columns);
  // Memory on chip. Throws invalid_argument if no room is left. Freed memory may be reused at once: the next writer
  // waits for the current users.
  TensorOperand tile(std::string name, DType, std::int64_t rows, std::int64_t columns, std::uint8_t core = 0);
  TensorOperand psum(std::string name, DType, std::int64_t rows, std::int64_t columns, std::uint8_t core = 0);
  void free(const TensorOperand&);

  // Adds any instruction. check() checks the operands later.
  void add(std::string_view kind, Engine, std::initializer_list<TensorOperand> outputs,
           std::vector<TensorOperand> inputs, std::vector<Attribute> attributes = {}, const CoreAndRing& = {});

  // Explicit semaphores: what the next instruction waits for and raises. Such an instruction gets no derived ones.
  std::int32_t semaphore(std::string name);
  void wait(std::int32_t semaphore, std::int32_t value, std::int16_t index = -1, std::int32_t index_scale = 0);
  void signal(std::int32_t semaphore, std::int32_t add = 1);

  const ChipSpec& chip() const { return chip_; }
  NeuronCoreProgram finish();

 private:
  TensorOperand hbm(std::string name, DType, std::int64_t rows, std::int64_t columns, BufferRole);
  TensorOperand on_chip(std::string name, MemorySpace, DType, std::int64_t rows, std::int64_t columns,
                        std::uint8_t core);

  const ChipSpec& chip_;
  NeuronCoreProgram program_;
  std::vector<FirstFitAllocator> sbuf_, psum_;  // of each core
  std::map<std::string, int> tiles_named_;      // how many have each name
  SemaphoreInserter linker_;
  std::vector<SemaphoreWait> waits_by_hand_;
  std::vector<SemaphoreSignal> signals_by_hand_;
};

}  // namespace trellis::sim::core
