// Builds a Program the way a kernel is written: tiles are placed, and semaphores derived from what instructions read
// and write, unless given by hand.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/chip.h"
#include "sim/core/dependencies.h"
#include "sim/core/kind.h"
#include "sim/core/operand.h"
#include "sim/core/space.h"

namespace trellis::sim::core {

struct Settings {
  std::uint8_t core = 0;
  int ring = -1;  // of a DMA; -1: the one that its engine has
};

class Builder {
 public:
  Builder(std::string name, const ChipSpec&, std::uint8_t cores = 1);

  // Matrices in HBM, row after row.
  Operand input(std::string name, DType, std::int64_t rows, std::int64_t columns);
  Operand output(std::string name, DType, std::int64_t rows, std::int64_t columns);
  Operand scratch(std::string name, DType, std::int64_t rows, std::int64_t columns);
  // Memory on chip; throws invalid_argument when there is no room left. What is freed may be had again at once: who
  // writes there next waits for who uses it now.
  Operand tile(std::string name, DType, std::int64_t rows, std::int64_t columns, std::uint8_t core = 0);
  Operand psum(std::string name, DType, std::int64_t rows, std::int64_t columns, std::uint8_t core = 0);
  void free(const Operand&);

  // Any instruction. Operands are checked by the rules when the program is.
  void add(std::string_view kind, Engine, std::initializer_list<Operand> outputs, std::vector<Operand> inputs,
           std::vector<Attribute> attributes = {}, const Settings& = {});

  // By hand: what the next instruction waits for and raises. Instructions with either get nothing derived.
  std::int32_t semaphore(std::string name);
  void wait(std::int32_t semaphore, std::int32_t value, std::int16_t index = -1, std::int32_t index_scale = 0);
  void signal(std::int32_t semaphore, std::int32_t add = 1);

  const ChipSpec& chip() const { return chip_; }
  Program finish();

 private:
  struct Need {  // an instruction waits until a processor has finished so many
    std::uint32_t instruction;
    std::uint32_t processor;
    std::uint32_t number;
  };

  Operand hbm(std::string name, DType, std::int64_t rows, std::int64_t columns, Role);
  Operand on_chip(std::string name, Space, DType, std::int64_t rows, std::int64_t columns, std::uint8_t core);
  void derive(const Instruction&, std::uint32_t at);
  void need(std::uint32_t stream, std::uint32_t at, const Access& earlier);
  void write_semaphores();

  const ChipSpec& chip_;
  Program program_;
  std::vector<FreeSpace> sbuf_, psum_;  // of each core
  Dependencies dependencies_;
  std::vector<std::uint32_t> counts_;              // instructions of each processor
  std::vector<std::vector<std::uint32_t>> known_;  // by stream: what each processor has finished for sure
  std::vector<std::uint32_t> processor_;           // of each instruction
  std::vector<std::uint32_t> number_;              // of each instruction on its processor
  std::vector<Need> needs_;
  std::vector<WaitFor> waits_by_hand_;
  std::vector<Signal> signals_by_hand_;
};

}  // namespace trellis::sim::core
