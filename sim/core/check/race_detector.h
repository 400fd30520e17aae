// A race detector with vector clocks. A race is two accesses to the same memory, one of them a write, that no semaphore
// orders. The timing of this run does not matter, except for semaphores that several engines or rings raise: their
// raises count in the order in which they came.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/core/program/dependency_tracker.h"
#include "sim/core/run/run.h"
#include "sim/hardware/chip/chip.h"

namespace trellis::sim::core {

class RaceDetector final : public InstructionObserver {
 public:
  RaceDetector(const NeuronCoreProgram&, const ChipSpec&);

  void issued(std::uint32_t instruction, const std::int64_t* registers, Time) override;
  void finished(std::uint32_t instruction, Time) override;

  // A sentence for each racing pair of instructions, in the order found, at most `most_races`.
  const std::vector<std::string>& races() const { return races_; }
  static constexpr std::size_t most_races = 20;

 private:
  using Clock = std::vector<std::uint32_t>;  // how many instructions each processor has certainly finished
  struct Raise {
    std::int64_t value;  // the semaphore's value from then on
    Clock clock;
  };

  void join_waits(const Instruction&, const std::int64_t* registers, Clock&) const;
  void touch(std::uint32_t at, const View&, const std::int64_t* registers, InstructionAccess, const Clock&);
  void report(std::uint32_t at, bool writes, const View&, const InstructionAccess& earlier);
  std::string described(std::uint32_t at) const;

  const NeuronCoreProgram& program_;
  const ChipSpec& chip_;
  DependencyTracker dependencies_;
  std::vector<std::uint32_t> counts_;                     // issued by each processor
  std::vector<Clock> known_;                              // by stream
  std::vector<std::vector<Raise>> raises_;                // of each semaphore
  std::vector<std::vector<std::uint32_t>> instructions_;  // by processor, then its number there: an instruction
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, Clock>>> flying_;  // instruction -> (number, clock)
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> reported_;
  std::vector<std::string> races_;
};

// Runs the program only to find its races.
std::vector<std::string> races(const NeuronCoreProgram&, const ChipSpec&);

}  // namespace trellis::sim::core
