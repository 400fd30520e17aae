// A program of a NeuronCore, loaded on a simulated device.
#pragma once

#include <mutex>

#include "device/device.h"
#include "device/program.h"
#include "device/simulated/clock.h"
#include "sim/core/program/program.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::device {

class SimulatedProgram : public LoadedProgram {
 public:
  // Reads and checks the program. Throws invalid_argument, ForeignNeffError.
  SimulatedProgram(std::span<const std::byte> container, const sim::ChipSpec&, int logical_size, bool timing_only,
                   std::shared_ptr<SimulatedClocks>);

  const std::string& name() const override { return program_.name; }
  const std::vector<ProgramOperand>& operands() const override { return operands_; }
  void run(const std::vector<Binding>&, Stream*) override;
  Time time() const override { return time_.load(); }
  std::string profile() const override;

 private:
  void compute(const std::vector<Binding>&);

  const sim::ChipSpec& chip_;
  const bool timing_only_;
  const std::shared_ptr<SimulatedClocks> clocks_;
  sim::core::NeuronCoreProgram program_;
  std::vector<ProgramOperand> operands_;
  std::atomic<Time> time_ = 0;
};

}  // namespace trellis::device
