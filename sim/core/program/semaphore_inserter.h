// Derives the semaphores of a program from the memory that its instructions access, as they are added in their order.
#pragma once

#include <vector>

#include "sim/core/program/dependency_tracker.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

class SemaphoreInserter {
 public:
  // unordered: buffers in which no access needs to wait for another; may be empty.
  SemaphoreInserter(int cores, const ChipSpec&, std::vector<bool> unordered = {});

  // Takes the program's instruction `at`, the next one; derives what it waits for, unless that is given by hand.
  void add(const NeuronCoreProgram&, std::uint32_t at, bool by_hand = false);
  // Instruction `at`, the last one added, also waits for an earlier one.
  void follow(const NeuronCoreProgram&, std::uint32_t at, std::uint32_t earlier);
  // Writes semaphores, waits and signals into the program.
  void finish(NeuronCoreProgram&) const;

 private:
  struct Need {  // an instruction waits until a processor has finished this many
    std::uint32_t instruction;
    std::uint32_t processor;
    std::uint32_t number;
  };

  void need(std::uint32_t stream, std::uint32_t at, std::uint32_t processor, std::uint32_t number);
  std::int32_t semaphore_for(NeuronCoreProgram&, std::size_t processor) const;

  int rings_;
  std::vector<bool> unordered_;
  DependencyTracker dependencies_;
  std::vector<std::uint32_t> counts_;              // instructions of each processor
  std::vector<std::vector<std::uint32_t>> known_;  // by stream: what each processor has certainly finished
  std::vector<std::uint32_t> processor_;           // of each instruction
  std::vector<std::uint32_t> number_;              // of each instruction on its processor
  std::vector<Need> needs_;
};

}  // namespace trellis::sim::core
