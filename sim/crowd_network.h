// Transfers as flows that share each resource by max-min fairness, where many are on each: all those whose rate one
// resource sets have one rate, its level, and one count of what each has got. A change of it costs the resources that
// they are on besides, and not the flows. Levels are right to one part in 8,192: less of a change is left undone, so
// that what starts or ends is felt nearby and not everywhere.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/free_numbers.h"
#include "sim/instant_queue.h"
#include "sim/network.h"
#include "sim/sort_runs.h"

namespace trellis::sim {

class CrowdNetwork : public Network {
 public:
  explicit CrowdNetwork(std::vector<Rate> capacities, Time now = 0);

  void start(std::span<const Use>, Work, std::uint64_t tag) override;
  void go_on(std::span<const Use>, Work left, std::uint64_t tag);  // with a transfer that has begun elsewhere
  void settle() override;
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

  Rate rate(std::uint64_t tag) const;  // of a flow on its way; for tests

 private:
  using FlowId = std::uint32_t;
  using ResourceId = std::uint32_t;
  using PairId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  struct Part {  // of a flow
    ResourceId resource = none;
    std::uint32_t weight = 0;
    PairId pair = none;  // that it counts among; none: the resource sets its rate
  };
  struct Flow {
    Work until = 0;  // it ends when its resource has given so much to each
    std::uint64_t tag = 0;
    std::vector<Part> parts = {};
    ResourceId by = none;     // the resource that sets its rate
    std::uint32_t turns = 0;  // how often that has changed
  };
  struct Member {
    Work until = 0;
    FlowId flow = 0;
    std::uint32_t turns = 0;  // those of the flow when it became one; it has gone when they are more
    bool operator<(const Member& o) const { return until > o.until; }  // the first to end is the greatest
  };
  // Flows on one resource whose rate another sets.
  struct Pair {
    ResourceId on = none, by = none;
    std::int64_t weight = 0;
    std::uint32_t in_takes = 0, in_gives = 0;  // its places there
  };
  struct Resource {
    Rate capacity = 0;            // in weights: sixteenths
    Rate level = 0;               // what each flow gets whose rate it sets
    Rate used = 0;                // by the others
    Rate fastest = 0;             // none of the others has more
    std::int64_t weight = 0;      // of those whose rate it sets
    std::uint32_t count = 0;      // and their number
    Work got = 0;                 // by each of them
    Time since = 0;               // when that was true
    Time noted = forever;         // when the first of them ends, or earlier; forever: not noted
    bool waits = false;           // to be shared anew
    bool touched = false;         // its first end may be another
    std::vector<Member> members;  // a heap, with some that have gone
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

  static constexpr int finest = 13;  // a part in 2^13
  std::vector<Flow> flows_;
  FreeNumbers free_flows_;
  std::vector<Resource> resources_;
  std::vector<Pair> pairs_;
  FreeNumbers free_pairs_;
  std::unordered_map<std::uint64_t, PairId> numbers_;  // of pairs
  std::vector<std::pair<Rate, ResourceId>> waiting_;   // a heap: the lowest level comes first
  std::vector<ResourceId> touched_;
  int fineness_ = finest;
  InstantQueue<ResourceId> ends_;
  Time now_ = 0;
  std::vector<ResourceId> row_;
  RunSorter<ResourceId> sorter_;
  std::vector<Faster> faster_;
  std::vector<FlowId> moving_over_;
};

}  // namespace trellis::sim
