// Simulated time of a device, and a collective of a communicator as the device sees it, to say how long it takes.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "device/stream.h"

namespace trellis::device {

// A rank's core and its simulated time: ranks exchange these before a collective on devices with simulated time.
struct RankClock {
  Time time = 0;
  std::int64_t core = 0;  // of the machine
};

// All values but `rank` are the same on all ranks.
struct CollectiveSpec {
  std::string_view collective;  // "all_reduce"
  std::string_view config;  // the algorithm with its parameters, "ring channels=2"; empty: the fastest that is known
  int rank = 0, ranks = 1;
  std::size_t bytes = 0;  // of the larger buffer
  std::size_t element = 4;
  int root = 0, peer = -1;
  bool in_place = false;
  std::vector<std::pair<int, int>> pairs = {};
  // The elements of each block, for the _v forms; all_to_all_v has them at source * ranks + target.
  std::vector<std::size_t> counts = {};
  std::vector<RankClock> clocks = {};  // by rank, as the collective began
};

class SimulatedTime {
 public:
  virtual ~SimulatedTime() = default;
  virtual RankClock now() const = 0;  // the clock of this thread's work, and its core
  // Takes the time of a whole collective, from the latest of its ranks' clocks on.
  virtual void spend(const CollectiveSpec&) = 0;
  // Between hold() and release(), this thread's work takes no simulated time.
  virtual void hold() = 0;
  virtual void release() = 0;
};

}  // namespace trellis::device
