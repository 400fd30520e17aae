// Asks what many configs cost at many message sizes, on several threads, and keeps the answers in a checkpoint file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/answer/collective_answer.h"

namespace trellis::sim {

struct SweepSpec {
  RankGroup group;
  Pricer::Settings settings;
  std::vector<AlgorithmConfig> configs;
  std::vector<double> sizes;  // bytes of the larger buffer
  std::size_t wanted = 0;     // how many of the fastest are wanted at each size; 0: all
  Time limit = forever;       // where not all are wanted: leave out what takes longer
  std::size_t points() const { return configs.size() * sizes.size(); }
};

struct SweepControl {
  int threads = 1;
  std::vector<ConfigCost> known = {};                 // already priced points
  std::vector<ConfigCost> slower = {};                // points known to take longer than their `time`
  std::function<bool()> stopped = {};                 // polled by all threads, also while a point is priced; true: stop
  std::function<void(const ConfigCost&)> found = {};  // called for each new point, never concurrently
  // likewise, for a point that takes longer than its `time`, while enough others are faster
  std::function<void(const ConfigCost&)> given_up = {};
};

// The question that asks for the price of one config of the sweep, and for nothing else.
CollectiveQuestion question_for(const SweepSpec&, const AlgorithmConfig&, double bytes, Time limit = forever);

// Interrupts computations once `stopped` returns true.
class CancellationMonitor final : public ProgressMonitor {
 public:
  explicit CancellationMonitor(std::function<bool()> stopped) : stopped_(std::move(stopped)) {}
  void begin(std::string) override {}
  bool stopped(Time, double) override { return interrupted(); }
  bool interrupted() const override { return stopped_ && stopped_(); }

 private:
  std::function<bool()> stopped_;
};

// Returns the known points that belong to the sweep and the new ones that were not given up: all of them unless it was
// stopped. An error in one thread stops the others and is thrown.
std::vector<ConfigCost> sweep(const Machine&, const SweepSpec&, const SweepControl&);

// A hash that changes with any figure, level or defect, with the era, and with the build, as another build may give
// other prices.
std::string fingerprint(const MachineSpec&, std::string_view era);

// Writes and reads finished points, a line each. A truncated last line is ignored, and so are lines of another machine
// or group.
std::string point_line(std::string_view fingerprint, const SweepSpec&, const ConfigCost&);
std::vector<ConfigCost> read_points(std::string_view text, std::string_view fingerprint, const SweepSpec&);
// The same for points that were given up.
std::string slower_line(std::string_view fingerprint, const SweepSpec&, const ConfigCost&);
std::vector<ConfigCost> read_slower(std::string_view text, std::string_view fingerprint, const SweepSpec&);

}  // namespace trellis::sim
