// Times operations by simulation, while operation_time() uses formulas: a program of sim/core that does the operation
// is simulated instruction by instruction, once for each shape. A kind of operation names that program in its file.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "sim/cluster/machine/machine.h"
#include "sim/cluster/operation/operation_model.h"
#include "sim/cluster/operation/program_time_cache.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim {

class CoreProgramTimer {
 public:
  // `folder`: times are kept there; empty: nowhere.
  explicit CoreProgramTimer(ChipSpec, const std::filesystem::path& folder = {});

  // The time on a rank whose cores share the work evenly. None where no program does the operation: operation_time()
  // then estimates it by the formula.
  std::optional<OperationTime> of(const OperationShape&, const EngineRates&);
  void keep();  // writes new times to disk

  std::size_t timed() const;   // programs that were simulated, and not found on disk
  std::string damage() const;  // as of ProgramTimeCache
  const ChipSpec& chip() const { return chip_; }

 private:
  std::optional<Time> time(const CoreProgram&, std::uint64_t extent);
  std::optional<double> seconds(const CoreProgram&);

  const ChipSpec chip_;
  mutable std::mutex mutex_;
  ProgramTimeCache kept_;
  std::size_t timed_ = 0;
  std::map<std::pair<OperationShape, double>, std::optional<OperationTime>> known_;  // by shape and cores of a rank
};

// A machine's chip, with the machine's figures where these differ from the chip's. Throws invalid_argument if the
// machine has no chip.
ChipSpec chip_of(const Machine&);

}  // namespace trellis::sim
