// A lower bound on a schedule's time from one rank's steps: their longest chain, the load on the rank's links, and how
// long its sends occupy its collective cores. Steps are added one by one, so the caller can stop early.
#pragma once

#include <unordered_map>

#include "sim/cluster/choose/uncontended_route.h"

namespace trellis::sim {

// Caches the routes between one rank of the machine and its peers.
class RankRoutes {
 public:
  RankRoutes(const Machine& machine, Rank rank) : machine_(machine), rank_(rank) {}

  struct PeerRoute : UncontendedRoute {
    bool links = false;                   // the route uses links
    std::vector<ResourceId> narrow = {};  // of its links, those slower than all links nearer to the rank
  };
  const PeerRoute& between(Rank peer, bool out);  // out: from the rank to the peer

 private:
  const Machine& machine_;
  const Rank rank_;
  std::unordered_map<std::int64_t, PeerRoute> known_;
  std::vector<ResourceId> links_;
};

// Bytes moved over each resource.
class ResourceLoads {
 public:
  explicit ResourceLoads(const Machine& machine) : machine_(machine) {}

  void add(ResourceId, double bytes);
  double busiest() const { return busiest_; }  // seconds of the busiest resource

 private:
  struct Load {
    double bytes = 0, rate = 0;
  };
  const Machine& machine_;
  std::unordered_map<ResourceId, Load> loads_;
  double busiest_ = 0;
};

class RankLowerBound {
 public:
  // The rank is one of the group. Ranks that share one ResourceLoads add up their loads.
  RankLowerBound(Rank, const schedule::Task&, const Machine&, const PriceOptions&, RankRoutes&, ResourceLoads&);

  void add(const schedule::Program&, const schedule::Step&);  // the next step, in any order that `after` allows
  Time least() const;                                         // the bound from the steps so far
  std::int64_t steps() const { return std::ssize(ends_); }
  std::int64_t moves() const { return moves_; }  // of the steps so far: all but receives

 private:
  const Rank rank_;  // of the machine
  const Machine& machine_;
  const PriceOptions options_;
  const SoftwareOverheads overheads_;
  const Time launch_;
  double chunk_ = 0;  // bytes
  RankRoutes& ways_;
  ResourceLoads& loads_;
  std::vector<Time> ends_;
  std::int64_t moves_ = 0;
  Time turns_ = 0;        // how long all sends occupy the collective cores
  Time chain_ = 0;        // latest of the ends
  double sent_away_ = 0;  // seconds that the sends to other hosts take in sequence, each with the pause after it
};

}  // namespace trellis::sim
