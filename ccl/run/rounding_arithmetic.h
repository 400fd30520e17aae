// Arithmetic of a program's steps where values are rounded between them: f32 sent in a narrower type, and sums in
// narrow types with random bits. It knows which ranks' input each value sums, so that all ranks round alike.
#pragma once

#include <memory>
#include <vector>

#include "ccl/plan/compiled_program.h"
#include "ccl/run/bound_program.h"
#include "device/device.h"

namespace trellis::ccl {

class RoundingArithmetic {
 public:
  explicit RoundingArithmetic(device::Device& device) : device_(device) {}

  void begin(const BoundProgram&);
  void send(std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes);  // fills the piece
  void take(std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes);
  void local(std::uint32_t step);
  void end();  // rounds the parts of the output that were sent and not written since

 private:
  static constexpr std::size_t most = 4096;  // elements processed at a time, so that they stay in the L1 and L2 caches

  // A part of the range `place`, starting at its element `first`.
  struct Part {
    BufferRange place;
    std::size_t first;
    std::size_t elements;
  };

  std::byte* at(const Part& p) const { return bound_->at(p.place) + p.first * kernels::size_of(bound_->type); }
  template <class Work>
  void each_run(schedule::Range, std::size_t first, std::size_t elements, Work) const;
  kernels::Random random_of(const ContributorRun&, std::size_t skipped) const;
  std::byte* room();
  void round(const std::byte* from, std::byte* to, std::size_t elements, const kernels::Random&);
  const std::byte* read(const Part&, schedule::Range);
  const std::byte* widened(const std::byte* piece, std::size_t elements);
  void copy(const CompiledStep&, const StepContributorRuns&);
  void add(const CompiledStep&, const StepContributorRuns&, std::size_t first, std::size_t elements,
           const std::byte* arriving);

  device::Device& device_;
  const BoundProgram* bound_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;  // blocks of values that are rounded when read
  std::size_t rooms_used_ = 0;
  std::unique_ptr<std::byte[]> narrow_;  // a block in the messages' type
  std::vector<const void*> sources_;
};

}  // namespace trellis::ccl
