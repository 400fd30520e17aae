// What one rank's steps say of how long a schedule takes at least: its chain of steps, what they move over the rank's
// links, and its turns at its collective cores. Told step by step, so that who makes the steps can stop early.
#pragma once

#include <unordered_map>

#include "sim/lone_way.h"

namespace trellis::sim {

// The ways between one rank of the machine and its others, each looked for once.
class RankWays {
 public:
  RankWays(const Machine& machine, Rank rank) : machine_(machine), rank_(rank) {}

  struct Way : LoneWay {
    bool links = false;                   // it goes over some
    std::vector<ResourceId> narrow = {};  // of these, what is narrower than all that are nearer to the rank
  };
  const Way& between(Rank peer, bool out);  // out: from the rank to the peer

 private:
  const Machine& machine_;
  const Rank rank_;
  std::unordered_map<std::int64_t, Way> known_;
  std::vector<ResourceId> links_;
};

// What moves over each resource.
class ResourceLoads {
 public:
  explicit ResourceLoads(const Machine& machine) : machine_(machine) {}

  void add(ResourceId, double bytes);
  double busiest() const { return busiest_; }  // seconds

 private:
  struct Load {
    double bytes = 0, rate = 0;
  };
  const Machine& machine_;
  std::unordered_map<ResourceId, Load> loads_;
  double busiest_ = 0;
};

class RankBound {
 public:
  // Of a rank of the group; what ranks move that have their loads in common adds up.
  RankBound(Rank, const schedule::Task&, const Machine&, const PriceOptions&, RankWays&, ResourceLoads&);

  void add(const schedule::Program&, const schedule::Step&);  // the next of its steps, in any order that `after` allows
  Time least() const;                                         // by those so far
  std::int64_t steps() const { return std::ssize(ends_); }
  std::int64_t moves() const { return moves_; }  // of these, that are no receiving ends

 private:
  const Rank rank_;  // of the machine
  const Machine& machine_;
  const PriceOptions options_;
  const Overheads overheads_;
  double chunk_ = 0;  // bytes
  RankWays& ways_;
  ResourceLoads& loads_;
  std::vector<Time> ends_;
  std::int64_t moves_ = 0, sends_ = 0;
  Time chain_ = 0;        // the last of the ends
  double sent_away_ = 0;  // seconds from the first of its sends to other hosts until it could begin one more
};

}  // namespace trellis::sim
