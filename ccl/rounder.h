// The arithmetic of a program's steps where values are rounded between them: f32 that travels as a narrower type, and
// narrow sums with random bits. Works along the origins of values, so that all ranks round alike.
#pragma once

#include <memory>
#include <vector>

#include "ccl/compiled.h"
#include "ccl/job.h"
#include "device/device.h"

namespace trellis::ccl {

class Rounder {
 public:
  explicit Rounder(device::Device& device) : device_(device) {}

  void begin(const Job&);
  void send(std::uint32_t step, std::size_t offset, std::byte* piece, std::size_t bytes);  // fills it
  void take(std::uint32_t step, std::size_t offset, const std::byte* piece, std::size_t bytes);
  void local(std::uint32_t step);
  void end();  // rounds what was sent out of the output and has not been written since

 private:
  static constexpr std::size_t most = 4096;  // elements worked on at a time: they stay in the first caches

  // A part of a place, from its element `first` on.
  struct Part {
    Place place;
    std::size_t first;
    std::size_t elements;
  };

  std::byte* at(const Part& p) const { return job_->at(p.place) + p.first * kernels::size_of(job_->type); }
  template <class Work>
  void each_run(schedule::Range, std::size_t first, std::size_t elements, Work) const;
  kernels::Random random_of(const OriginRun&, std::size_t skipped) const;
  std::byte* room();
  void round(const std::byte* from, std::byte* to, std::size_t elements, const kernels::Random&);
  const std::byte* read(const Part&, schedule::Range);
  const std::byte* widened(const std::byte* piece, std::size_t elements);
  void copy(const FlatStep&, const StepRuns&);
  void add(const FlatStep&, const StepRuns&, std::size_t first, std::size_t elements, const std::byte* arriving);

  device::Device& device_;
  const Job* job_ = nullptr;
  std::vector<std::unique_ptr<std::byte[]>> rooms_;  // blocks of what is read otherwise than it lies in memory
  std::size_t rooms_used_ = 0;
  std::unique_ptr<std::byte[]> narrow_;  // a block in the messages' type
  std::vector<const void*> sources_;
};

}  // namespace trellis::ccl
