// How fast a kernel is, as a fraction of the best plain loop with its mix of reads and writes, in one run.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/registry.h"

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
  double elements_per_s = 0;
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

// rounds: how often both are timed.
Speed speed_of(const Subject&, Regime, int threads, int rounds);

}  // namespace trellis::kernels
