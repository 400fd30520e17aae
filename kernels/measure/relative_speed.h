// How fast a kernel is, as a fraction of the best plain loop with its mix of reads and writes, in one run.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/dispatch/available_memory.h"
#include "kernels/measure/operand_layout.h"

namespace trellis::kernels {

struct RelativeSpeed {
  double bytes_per_s = 0;  // read and written
  double limit_bytes_per_s = 0;
  double fraction_of_limit = 0;  // median over the rounds, each of which times both, one after the other
  std::string_view limit;        // the loop's name
};

// The subjects that `trellis kernels --speed` times.
std::vector<TimedKernel> speed_subjects();
// The plain loops with which they are compared.
std::vector<TimedKernel> limit_loops();

// The memory that all timings work on, kernels and loops alike: so only the first timing waits for pages, and none has
// pages that map better to the sets of a cache.
class TimingArena {
 public:
  // With room for these subjects and for the loops in every regime of the CPU. Throws invalid_argument where that is
  // more than the `available` bytes, and bad_alloc.
  explicit TimingArena(const std::vector<TimedKernel>&, const Cpu& = kernels::cpu(),
                       std::uint64_t available = available_memory());
  std::span<std::byte> bytes() const { return {memory_.get(), size_}; }
  const Cpu& cpu() const { return cpu_; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  Cpu cpu_;
  std::size_t size_;
  std::unique_ptr<std::byte, Free> memory_;
};

// Times the subject, with the sizes that the regime has on the arena's CPU, and in turn with it the best plain loop,
// `rounds` times; ten times as often in the caches, where a timing is short. Throws invalid_argument for a subject that
// the arena has no room for.
RelativeSpeed speed_of(const TimingArena&, const TimedKernel&, WorkingSetLevel, int threads, int rounds);

}  // namespace trellis::kernels
