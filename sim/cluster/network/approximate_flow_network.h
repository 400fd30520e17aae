// Approximate max-min fair flows for crowded resources. All flows whose rate one resource sets share a level (their
// rate) and a count of what each has got. A change of the level costs time for the other resources these flows use, not
// for each flow. Levels are right to one part in 8,192: smaller changes are dropped, so a start or an end affects only
// its neighbourhood.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/cluster/network/network.h"
#include "sim/hardware/time/batched_event_queue.h"
#include "sim/hardware/time/index_allocator.h"
#include "sim/hardware/time/natural_merge_sort.h"

namespace trellis::sim {

class ApproximateFlowNetwork : public Network {
 public:
  explicit ApproximateFlowNetwork(std::vector<Rate> capacities, Time now = 0);

  void start(std::span<const ResourceUse>, Work, std::uint64_t tag) override;
  // takes over a transfer that began in another network
  void go_on(std::span<const ResourceUse>, Work left, std::uint64_t tag);
  void settle() override;
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

  Rate rate(std::uint64_t tag) const;  // of a flow in flight; for tests

 private:
  using FlowId = std::uint32_t;
  using ResourceId = std::uint32_t;
  using PairId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  struct Part {  // one resource that a flow uses
    ResourceId resource = none;
    std::uint32_t weight = 0;
    PairId pair = none;  // the pair in which it is counted; none: this resource sets the rate
  };
  struct Flow {
    Work until = 0;  // it ends when its resource has given this much to each of its flows
    std::uint64_t tag = 0;
    std::vector<Part> parts = {};
    ResourceId by = none;     // the resource that sets its rate
    std::uint32_t turns = 0;  // how often `by` has changed
  };
  struct Member {
    Work until = 0;
    FlowId flow = 0;
    std::uint32_t turns = 0;  // the flow's `turns` when it became a member; if the flow's are more, the member is stale
    bool operator<(const Member& o) const { return until > o.until; }  // the first to end is the greatest
  };
  // Flows on one resource whose rate another resource sets.
  struct Pair {
    ResourceId on = none, by = none;
    std::int64_t weight = 0;
    std::uint32_t in_takes = 0, in_gives = 0;  // indices into those lists
  };
  struct Resource {
    Rate capacity = 0;            // times one_use: weights are sixteenths
    Rate level = 0;               // rate of each flow that it bounds
    Rate used = 0;                // by the flows that it does not bound
    Rate fastest = 0;             // an upper bound on their rates
    std::int64_t weight = 0;      // of the flows that it bounds
    std::uint32_t count = 0;      // number of the flows that it bounds
    Work got = 0;                 // what each of them has got
    Time since = 0;               // when `got` was up to date
    Time noted = forever;         // when its entry in ends_ is due; forever: it has none
    bool waits = false;           // its level is to be recomputed
    bool touched = false;         // its first end may have changed
    std::vector<Member> members;  // a heap that may hold stale members
    std::vector<PairId> takes;    // pairs on it
    std::vector<PairId> gives;    // pairs whose rate it sets
  };
  struct Faster {
    Rate level = 0;
    ResourceId by = none;
    std::int64_t weight = 0;
  };

  Rate slack(Rate rate) const { return rate >> fineness_; }
  bool gone(const Member& m) const { return flows_[m.flow].turns != m.turns; }
  Rate first_guess(const Part&) const;
  PairId pair(ResourceId on, ResourceId by);
  void count(PairId, std::int64_t weight);
  void drop(PairId);
  void bind(FlowId, ResourceId by, Work left);
  void unbind(FlowId);
  void check(const Flow&);
  void check(ResourceId);
  void touch(ResourceId);
  void catch_up(Resource&);
  void set_level(ResourceId, Rate);
  void share(ResourceId);
  void find_faster(Resource&, Rate level);
  void take_over(ResourceId, ResourceId from);
  void note_end(ResourceId);
  bool drop_gone(Resource&);

  static constexpr int finest = 13;  // 1 part in 2^13
  std::vector<Flow> flows_;
  IndexAllocator free_flows_;
  std::vector<Resource> resources_;
  std::vector<Pair> pairs_;
  IndexAllocator free_pairs_;
  std::unordered_map<std::uint64_t, PairId> numbers_;  // of pairs
  std::vector<std::pair<Rate, ResourceId>> waiting_;   // a heap; the lowest level comes first
  std::vector<ResourceId> touched_;
  int fineness_ = finest;
  BatchedEventQueue<ResourceId> ends_;
  Time now_ = 0;
  std::vector<ResourceId> row_;
  NaturalMergeSort<ResourceId> sorter_;
  std::vector<Faster> faster_;
  std::vector<FlowId> moving_over_;
};

}  // namespace trellis::sim
