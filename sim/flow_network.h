// Transfers as flows that share each resource by max-min fairness. After a change only those rates are worked out again
// that it can reach: what shares no resource with it, by way of however many others, keeps its own; and where that is
// much, flows slower than what changed keep theirs, and so does everything that hangs on them alone.
#pragma once

#include <vector>

#include "sim/free_numbers.h"
#include "sim/instant_queue.h"
#include "sim/network.h"
#include "sim/sort_runs.h"

namespace trellis::sim {

class FlowNetwork : public Network {
 public:
  explicit FlowNetwork(std::vector<Rate> capacities);

  void start(std::span<const Use>, Work, std::uint64_t tag) override;
  void settle() override;
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

  Rate rate(std::uint64_t tag) const;  // of a flow on its way; for tests

  struct Counts {
    std::int64_t flows = 0, solves = 0, solved_flows = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  using FlowId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  struct Part {  // of a flow, in one resource's list
    std::uint32_t resource = 0, weight = 0;
    FlowId flow = 0;
    std::uint32_t before = none, after = none;
  };
  struct alignas(64) Flow {
    Work left = 0;
    Rate rate = 0;
    Time since = 0;  // when `left` was true
    Time end = 0;
    std::uint64_t tag = 0;
    std::uint32_t first = 0;  // of its parts
    std::uint16_t parts = 0, room = 0;
    bool fresh = false;      // not yet settled
    std::uint32_t mark = 0;  // the last solve that it was part of
  };
  struct Resource {
    Rate capacity = 0;  // in weights: sixteenths
    Rate each = 0;      // of a single flow of one use
    std::uint32_t first = none;
    std::uint32_t flows = 0;
    std::uint32_t mark = 0;   // the last solve that it was part of
    std::uint32_t place = 0;  // in it
  };
  struct Share {  // a resource within a solve
    std::uint32_t resource = 0;
    Rate left = 0;            // of the capacity
    std::int64_t weight = 0;  // of flows without a rate
    Rate each() const { return left / weight; }
  };
  struct Offer {
    Rate each = 0;
    std::uint32_t share = 0;
    bool operator>(const Offer& o) const { return each > o.each; }
  };

  std::span<Part> parts(const Flow& f) { return {parts_.data() + f.first, f.parts}; }
  FlowId take_flow(std::size_t parts);
  void link(FlowId, Part&, std::uint32_t index);
  void unlink(const Part&);
  void remove(FlowId);
  Rate lone_rate(const Flow&);
  void give(Flow&, FlowId, Rate);

  bool solve_nearby();
  void solve_reached();
  Rate fair_share(std::uint32_t resource);
  Rate lowest_change();
  void visit(std::uint32_t resource);
  bool share_one(std::uint32_t resource);
  bool gather(Rate from, std::size_t most);
  void gather_fresh();
  void fill();

  std::vector<Resource> resources_;
  std::vector<Flow> flows_;
  FreeNumbers free_;
  std::size_t moving_ = 0;
  std::vector<Part> parts_;
  InstantQueue<FlowId> ends_;
  Time now_ = 0;

  std::vector<FlowId> fresh_;
  std::vector<std::uint32_t> changed_;  // resources that lost a flow
  Rate lost_ = 0;                       // the slowest that they lost
  std::uint32_t mark_ = 0;
  // What was worked out last: flows that start together are mostly alike.
  struct {
    Work left = 0;
    Rate rate = 0;
    Time time = 0;
  } last_;
  struct {
    Work work = 0;
    double sixteenths = 0;  // of a byte
  } bytes_;
  std::vector<Share> shares_;
  std::vector<FlowId> region_;
  std::vector<Offer> offers_;
  std::vector<std::uint32_t> tight_;
  std::vector<FlowId> row_;
  RunSorter<FlowId> sorter_;
  Counts counts_;
};

}  // namespace trellis::sim
