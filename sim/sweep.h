// Prices many ways at many sizes, on several threads, and remembers what is done in a file.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/tuner.h"

namespace trellis::sim {

struct Sweep {
  Group group;
  Pricer::Settings settings;
  std::vector<Way> ways;
  std::vector<double> sizes;  // bytes of the larger buffer
  std::size_t wanted = 0;     // of each size, only so many of the fastest; 0: all
  Time limit = forever;       // where not all are wanted: and none that takes longer
  std::size_t points() const { return ways.size() * sizes.size(); }
};

struct SweepControl {
  int threads = 1;
  std::vector<Cost> known = {};                    // points that need no pricing
  std::vector<Cost> slower = {};                   // points that take longer than this
  std::function<bool()> stopped = {};              // asked before each point
  std::function<void(const Cost&)> found = {};     // each new point, one at a time
  std::function<void(const Cost&)> given_up = {};  // likewise, where it takes longer than this, and enough are faster
};

// The known points that belong to it and the new ones that were not given up; all of them unless it was stopped. An
// error of one thread stops the others and is thrown.
std::vector<Cost> sweep(const Machine&, const Sweep&, const SweepControl&);

// A word that is another one when any figure, level, defect or the era is.
std::string fingerprint(const MachineSpec&, std::string_view era);

// Finished points as lines of a file; a last line that was cut off is none, nor are those of another machine or group.
std::string point_line(std::string_view fingerprint, const Sweep&, const Cost&);
std::vector<Cost> read_points(std::string_view text, std::string_view fingerprint, const Sweep&);
// Likewise, of points that were given up.
std::string slower_line(std::string_view fingerprint, const Sweep&, const Cost&);
std::vector<Cost> read_slower(std::string_view text, std::string_view fingerprint, const Sweep&);

}  // namespace trellis::sim
