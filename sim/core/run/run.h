// Runs a program on a chip's core: every engine runs its instructions in order, semaphores synchronise them, and DMA
// rings move bytes beside them. It computes and times, or only times; the times are the same.
#pragma once

#include <array>
#include <vector>

#include "sim/core/program/program.h"
#include "sim/core/run/core_memory.h"
#include "sim/hardware/chip/chip.h"
#include "sim/hardware/timeline/summary.h"

namespace trellis::sim::core {

// Observes instructions as they run, in order of time.
class InstructionObserver {
 public:
  virtual ~InstructionObserver() = default;
  virtual void issued(std::uint32_t instruction, const std::int64_t* registers, Time) = 0;  // its waits are over
  virtual void finished(std::uint32_t instruction, Time) = 0;  // its signals are visible from now on
};

struct RunOptions {
  CoreMemory* memory = nullptr;  // null: only timing
  Timeline* timeline = nullptr;  // null: none is kept
  InstructionObserver* observer = nullptr;
};

struct StreamTotals {
  std::uint64_t instructions = 0;
  Time busy = 0;
  std::array<Time, 7> waited = {};  // by WaitReason
};

struct RunTotals {
  Time time = 0;
  std::vector<StreamTotals> streams;  // core * engine_count + engine
  std::uint64_t instructions = 0;
  std::uint64_t descriptors = 0;
  double dma_bytes = 0;  // moved, counted once
  double hbm_read = 0, hbm_written = 0;
  double flops = 0;            // of products
  std::vector<Time> dma_busy;  // of each DMA engine
  Time dma_any = 0;            // at least one of them is busy
};

// Throws invalid_argument for a deadlock, naming who waits for whom, and for an instruction that the chip lacks. Check
// the program first: it must satisfy the rules of check.h.
RunTotals run(const NeuronCoreProgram&, const ChipSpec&, const RunOptions& = {});

HardwarePeaks peaks_of(const ChipSpec&, int cores);  // of so many physical cores, which share one stack of HBM

}  // namespace trellis::sim::core
