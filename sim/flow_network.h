// Transfers as flows that share each resource by max-min fairness. After a change only those rates are worked out again
// that it can reach: what shares no resource with it, by way of however many others, keeps its own; and where that is
// much, flows slower than what changed keep theirs, and so does everything that hangs on them alone.
#pragma once

#include <vector>

#include "sim/flow_pool.h"
#include "sim/flow_shares.h"
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

 private:
  using FlowId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);
  static constexpr Time in_pool = -1;
  struct Part {  // of a flow, in one resource's list
    std::uint32_t resource = 0, weight = 0;
    FlowId flow = 0;
    std::uint32_t before = none, after = none;
  };
  struct alignas(64) Flow {
    Work left = 0;
    Rate rate = 0;
    Time since = 0;  // when `left` was true
    Time end = 0;    // in_pool: when its pool says
    std::uint64_t tag = 0;
    std::uint32_t first = 0;  // of its parts
    std::uint16_t parts = 0, room = 0;
    bool fresh = false;      // not yet settled
    std::uint32_t mark = 0;  // the last solve that it was part of
  };
  struct Resource {
    Rate capacity = 0;  // in weights: sixteenths
    std::uint32_t first = none;
    std::uint32_t flows = 0;
    std::uint32_t joined = 0;   // of these, that are on other resources too
    std::uint32_t pool = none;  // where all are shared in one
    std::uint32_t mark = 0;     // the last solve that it was part of
    std::uint32_t place = 0;    // in it
  };

  std::span<Part> parts(const Flow& f) { return {parts_.data() + f.first, f.parts}; }
  FlowId take_flow(std::size_t parts);
  void link(FlowId, std::uint32_t index);
  void unlink(const Flow&, const Part&);
  void remove(FlowId);
  Rate lone_rate(const Flow&);
  void bring_up(Flow&);
  void give(Flow&, FlowId, Rate);
  void set_end(FlowId, Time);

  std::uint32_t pool_of(const Flow&) const;
  void make_pool(std::uint32_t resource);
  void break_pool(std::uint32_t resource);
  void join_pool(FlowId);
  void add(FlowPool&, FlowId);
  void watch_first(FlowPool&);
  void end_first(std::uint32_t resource, std::vector<std::uint64_t>& ended);
  void settle_pools();

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
  std::vector<FlowPool> pools_;
  FreeNumbers free_pools_;
  std::vector<std::uint32_t> changed_pools_;  // by their resources
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
  std::vector<FlowShare> shares_;
  std::vector<FlowId> region_;
  std::vector<FlowOffer> offers_;
  std::vector<std::uint32_t> tight_;
  std::vector<FlowId> row_;
  RunSorter<FlowId> sorter_;
};

}  // namespace trellis::sim
