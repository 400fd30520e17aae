// Which steps of a running program have ended, and which may begin.
#pragma once

#include <cstdint>
#include <vector>

#include "ccl/plan/compiled_program.h"

namespace trellis::ccl {

class RunnableSteps {
 public:
  void begin(const CompiledProgram& c) {
    program_ = &c;
    ahead_ = c.ahead;
    ready_ = c.first;
    left_ = c.steps.size();
  }
  bool done() const { return left_ == 0; }
  bool waits(std::uint32_t step) const { return ahead_[step].waits != 0; }  // for another step

  bool has_local() const { return !ready_.empty(); }
  std::uint32_t next_local() {
    const std::uint32_t step = ready_.back();
    ready_.pop_back();
    return step;
  }

  void hold(std::uint32_t step) { ++ahead_[step].waits; }  // never becomes ready: the caller runs it itself

  // Call it when a message of the step has been sent or received, or when the local step was run.
  void finish(std::uint32_t step) {
    if (--ahead_[step].ends != 0) return;
    --left_;
    const CompiledStep& flat = program_->steps[step];
    for (std::uint32_t i = 0; i < flat.follow_count; ++i) {
      const std::uint32_t next = program_->followers[flat.follows + i];
      if (--ahead_[next].waits == 0 && is_local(program_->steps[next].op)) ready_.push_back(next);
    }
  }

 private:
  static bool is_local(schedule::Op op) { return !schedule::sends(op) && !schedule::receives(op); }

  const CompiledProgram* program_ = nullptr;
  std::vector<StepPrerequisites> ahead_;
  std::vector<std::uint32_t> ready_;  // local steps
  std::size_t left_ = 0;
};

}  // namespace trellis::ccl
