// An interface to the simulator for other programs: how long a collective takes on a machine that need not exist, and
// why. The same answer as `trellis sim` gives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trellis {

struct SimulationQuery {
  std::string collective = "all_reduce";
  std::string machine = "trn2.48xlarge";  // a name, "trn2.48xlarge x 4", a shape as torus:16x32x32, or a machine's file
  std::uint64_t bytes = 1 << 20;          // of the larger buffer
  std::int32_t ranks = 0;                 // the machine's first ones; 0: all
  std::string algorithm = {};             // "ring", "torus dims=4x16 channels=2"; empty: the fastest is chosen
  std::vector<std::string> what_if = {};  // "dead:0-1", "slow:0-1:0.5", "neuronlink.rate=64GB/s"
  std::string era = {};                   // the software's generation; empty: the machine's usual one
  bool interval = true;                   // find `low` and `high`, which takes many times as long
};

// A part of the critical path: what the time went to.
struct SimulationShare {
  double seconds = 0;
  std::string words;
};

struct SimulatedLink {
  std::string name;             // "neuronlink x+ of chip 3"
  double bytes = 0;             // that it carried
  double bytes_per_second = 0;  // that it could have carried
  double busy = 0;              // part of the time
};

struct Simulation {
  double seconds = 0;
  double low = 0, high = 0;     // seconds, between which the machine's undocumented figures put it; 0: not asked for
  std::string algorithm;        // that was chosen, with its shape, channels and segments
  double algbw = 0, busbw = 0;  // bytes a second, as nccl-tests counts them
  double least = 0;             // seconds, below which no schedule can be
  std::vector<std::string> sensitive = {};  // figures that matter, the most first
  std::vector<SimulationShare> path = {};   // the largest first
  std::vector<SimulatedLink> links = {};    // links, memories and engines that were used, the busiest first
};

// Throws std::invalid_argument for a query that has no answer, naming the value, and std::system_error for a machine's
// file that can't be read.
Simulation simulate(const SimulationQuery&);

// How long computations and collectives that share the machine take: "ranks 8\nall_reduce a 64MB\nall_gather b 1MB\n",
// the text that `trellis sim FILE` plays. Throws as simulate does.
double workload_seconds(const std::string& workload, const std::string& machine);

}  // namespace trellis
