// Runs a Program on a chip's core: every engine takes its instructions in order, semaphores join them, DMA rings move
// bytes beside them. Computes and keeps time at once, or keeps time alone; the picoseconds are the same.
#pragma once

#include <array>
#include <vector>

#include "sim/chip.h"
#include "sim/core/memory.h"
#include "sim/core/program.h"
#include "sim/timeline.h"

namespace trellis::sim::core {

// Sees instructions as they run, in the order of time.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void issued(std::uint32_t instruction, const std::int64_t* registers, Time) = 0;  // its waits are over
  virtual void finished(std::uint32_t instruction, Time) = 0;  // its signals are seen from now on
};

struct RunOptions {
  Memory* memory = nullptr;      // null: time alone
  Timeline* timeline = nullptr;  // null: none is kept
  Observer* observer = nullptr;
};

struct StreamTotals {
  std::uint64_t instructions = 0;
  Time busy = 0;
  std::array<Time, 7> waited = {};  // by Wait
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
  Time dma_any = 0;            // at least one of them busy
};

// Throws invalid_argument where the program can never end, naming who waits for whom, or where a chip lacks an
// instruction. Check the program first: the rules of check.h are taken as kept.
RunTotals run(const Program&, const ChipSpec&, const RunOptions& = {});

}  // namespace trellis::sim::core
