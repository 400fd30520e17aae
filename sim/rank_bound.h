// What one rank's steps say of how long a schedule takes at least: its chain of steps, what they move over the rank's
// links, and its turns at its collective cores. Told step by step, so that who makes the steps can stop early.
#pragma once

#include <unordered_map>

#include "sim/lone_way.h"

namespace trellis::sim {

class RankBound {
 public:
  RankBound(Rank, const schedule::Task&, const Machine&, const PriceOptions&);

  void add(const schedule::Program&, const schedule::Step&);  // the next of its steps, in any order that `after` allows
  Time least() const;                                         // by those so far
  std::int64_t steps() const { return std::ssize(ends_); }
  std::int64_t moves() const { return moves_; }  // of these, that are no receiving ends

 private:
  struct Lone : LoneWay {
    std::vector<ResourceId> links = {};
  };
  const Lone& way(Rank peer, bool out);
  void load(ResourceId, double bytes);

  const Rank rank_;
  const Machine& machine_;
  const PriceOptions options_;
  const Overheads overheads_;
  double chunk_ = 0;  // bytes
  std::unordered_map<std::int64_t, Lone> ways_;
  struct Load {
    double bytes = 0, rate = 0;
  };
  std::unordered_map<ResourceId, Load> loads_;
  std::vector<Time> ends_;
  std::int64_t moves_ = 0, sends_ = 0;
  Time chain_ = 0;        // the last of the ends
  double busiest_ = 0;    // seconds
  double sent_away_ = 0;  // seconds from the first of its sends to other hosts until it could begin one more
};

}  // namespace trellis::sim
