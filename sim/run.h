// Runs schedules on a machine in simulated time: a step starts when those before it have ended, a transfer when all its
// ends have started, and everything that moves bytes shares the machine with whatever else does.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/folding.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/pattern.h"

namespace trellis::sim {

// A collective to be run.
struct Job {
  const Pattern* pattern = nullptr;
  double bytes = 0;                // of the larger buffer
  double chunk_bytes = 0;          // instead, where it is not 0
  std::vector<Rank> members = {};  // the machine's rank that each of its ranks is; empty: the same
  Time start = 0;
};

// What computation reads and writes of a rank's HBM meanwhile, at so many bytes a second where nothing is in its way.
struct Load {
  Rank rank = 0;
  double bytes = 0, rate = 0;
  Time start = 0;
};

struct RunSettings {
  std::string era = {};  // the machine's usual one
  bool fold = true;      // let one rank stand for those that are like it
  bool packets = false;  // packet by packet, and not as flows
  bool alone = false;    // nothing waits for anything else that moves: what no order of the transfers could beat
  double packet = 4096;  // bytes
  Time limit = forever;  // of simulated time: give up beyond
  bool trace = false;    // remember when each move ran, and why not earlier
  std::vector<Load> loads = {};
  std::optional<std::uint64_t> noise = {};  // a seed: software's delays are longer by chance, of every rank its own
  // Asked now and then with the time reached and the part of all moves that is done; true: give up.
  std::function<bool(Time, double)> stopped = {};
};

// When a move ran. `cause`: the move whose end it waited for last, as a number in Run's order; -1: none.
struct Trace {
  std::int64_t cause = -1;
  Time ready = 0;  // all it waited for had ended
  Time begin = 0;  // bytes begin to move
  Time end = 0;    // the last has left
};

class Run {
 public:
  Run(const Machine&, std::vector<Job>, RunSettings);
  ~Run();
  // Throws invalid_argument when a step can never start; forever: it was given up.
  Time run();  // when the last of it ended

  Time ended(std::size_t job) const;
  Time load_ended(std::size_t load) const;
  const Folding* folding() const;    // what it was folded by; null: it was not
  double carried(ResourceId) const;  // bytes, by passes over them
  Rank simulated() const;            // ranks that were gone through
  std::int64_t transfers() const;    // and what these did
  std::int64_t events() const;
  bool exact() const;  // no crowd of flows has shared a level

  // Of a traced run: a number for each move, in order; which rank keeps it and what it is.
  const std::vector<Trace>& traces() const;
  struct Place {
    std::size_t job = 0;
    Rank rank = 0, peer = -1;  // of the machine; -1: local
    Rank also = -1;            // a second one who gets the same bytes
    const Move* move = nullptr;
  };
  Place place(std::int64_t number) const;
  Time latency(std::int64_t number) const;          // from the last byte's leaving to the receiver's next step
  ResourceId narrowest(std::int64_t number) const;  // of what the move uses; no_resource: nothing
  double bytes(std::int64_t number) const;          // that it moves
  // What it uses of the machine; in a folded run, of those that were gone through.
  void uses(std::int64_t number, std::vector<ResourceId>&) const;

  class Engine;

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace trellis::sim
