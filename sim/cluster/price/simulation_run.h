// Runs schedules on a machine in simulated time. A step starts when its predecessors have ended, a transfer when those
// of its send and of its receives have. Everything that moves bytes shares the machine's resources.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/machine/machine.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/price/compiled_schedule.h"
#include "sim/cluster/price/rank_folding.h"

namespace trellis::sim {

// A collective to run.
struct SimulatedCollective {
  const CompiledSchedule* pattern = nullptr;
  double bytes = 0;                // of the larger buffer
  double chunk_bytes = 0;          // used instead of `bytes` if not 0
  std::vector<Rank> members = {};  // the machine's rank of each rank; empty: the same
  Time start = 0;
};

// HBM traffic of a computation on a rank, at up to `rate` bytes a second if nothing interferes.
struct HbmLoad {
  Rank rank = 0;
  double bytes = 0, rate = 0;
  Time start = 0;
};

struct RunSettings {
  std::string era = {};  // empty: the machine's usual one
  bool fold = true;      // simulate one rank for all that are like it
  bool alone = false;    // no contention: a lower bound for any order of the transfers
  Time limit = forever;  // of simulated time; give up beyond
  bool trace = false;    // record when each move ran, and why not earlier
  std::vector<HbmLoad> loads = {};
  std::uint64_t most_memory = 0;  // bytes for ranks, routes and moves; 0: what this host has
  // Makes the network of these capacities; empty: a max-min fair one. Tests put a reference model here.
  std::function<std::unique_ptr<Network>(const std::vector<Rate>&)> network = {};
  std::optional<std::uint64_t> noise = {};  // a seed: software delays vary at random, for each rank separately
  // Polled now and then with the simulated time and the fraction of all moves that have ended. true: give up.
  std::function<bool(Time, double)> stopped = {};
};

// When a move ran. `cause`: the move whose end it waited for last, as a number in SimulationRun's order; -1: none.
struct MoveTrace {
  std::int64_t cause = -1;
  Time ready = 0;  // everything it waited for had ended
  Time begin = 0;  // its bytes begin to move
  Time end = 0;    // the last byte has left
};

class SimulationRun {
 public:
  // Throws schedule::ScheduleTooLarge, before it builds them, when ranks, routes and moves need more memory than there
  // is.
  SimulationRun(const Machine&, std::vector<SimulatedCollective>, RunSettings);
  ~SimulationRun();
  // Throws invalid_argument when a step can never start. Returns forever if it gave up.
  Time run();  // when the last move ended

  Time ended(std::size_t collective) const;
  Time load_ended(std::size_t load) const;
  const RankFolding* folding() const;  // the folding in use; null: none
  double carried(ResourceId) const;    // bytes, weighted by passes
  // The resources that may have carried something, if the run knows them; none: any of the machine's may have.
  std::optional<std::vector<ResourceId>> used() const;
  Rank simulated() const;          // ranks that were simulated
  std::int64_t transfers() const;  // transfers of the simulated ranks
  std::int64_t events() const;
  bool exact() const;  // false: crowded flows were approximated

  // The moves of a traced run, in the order of their numbers. `place` says whose move it is.
  const std::vector<MoveTrace>& traces() const;
  struct Place {
    std::size_t collective = 0;
    Rank rank = 0, peer = -1;  // of the machine; -1: local
    Rank also = -1;            // a second receiver of the same bytes
    const Move* move = nullptr;
  };
  Place place(std::int64_t number) const;
  Time latency(std::int64_t number) const;        // from the last byte leaving to the receiver's next step
  ResourceId busiest(std::int64_t number) const;  // the busiest resource that it uses; no_resource: none
  double bytes(std::int64_t number) const;        // that it moves
  // The resources that it uses; in a folded run, of the simulated ranks.
  void uses(std::int64_t number, std::vector<ResourceId>&) const;

  class Engine;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace trellis::sim
