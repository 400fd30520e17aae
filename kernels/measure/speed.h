// How fast a kernel is, as a fraction of the best plain loop with its mix of reads and writes, in one run.
#pragma once

#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/dispatch/registry.h"

namespace trellis::kernels {

enum class Regime : std::uint8_t { l1, l2, memory };  // where all that a call touches fits
inline constexpr Regime regimes[] = {Regime::l1, Regime::l2, Regime::memory};

constexpr std::string_view name(Regime r) {
  constexpr std::string_view names[] = {"L1", "L2", "memory"};
  return names[static_cast<std::size_t>(r)];
}

struct Speed {
  double bytes_per_s = 0;  // read and written
  double limit_bytes_per_s = 0;
  double fraction_of_limit = 0;  // median over the rounds, each of which times both, one after the other
  std::string_view limit;        // the loop's name
};

// A kernel, and for those of any number of reads how many.
struct Subject {
  const Kernel* kernel;
  int sources;
};

// The subjects that the room's README shows.
std::vector<Subject> speed_subjects();

// The memory that all timings work on, kernels and loops alike: only the first of them waits for its pages, and none
// has pages that fall better on the sets of a cache.
class Arena {
 public:
  Arena();  // throws bad_alloc
  std::byte* begin() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// rounds: how often both are timed; in the caches, where a timing is short, ten times as often.
Speed speed_of(const Arena&, const Subject&, Regime, int threads, int rounds);

}  // namespace trellis::kernels
