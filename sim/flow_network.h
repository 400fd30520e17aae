// Transfers as flows that share each resource by max-min fairness. Each flow knows the resource that sets its rate.
// After a change those rates are worked out anew that what changed had set, and all others stay, as long as that is so
// of what set them; where it isn't, they are worked out with the first ones, and so on.
#pragma once

#include <functional>
#include <vector>

#include "sim/flow_pool.h"
#include "sim/flow_region.h"
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

  // Whether so many flows share so much that more rates than these, and far more than flows have started and ended,
  // were worked out.
  bool crowded(std::int64_t rates) const { return solved_ > rates && solved_ > most_for_one * changes_; }
  // Tells of all that are on their way, once settled; it is of no use afterwards.
  void leave(const std::function<void(std::span<const Use>, Work left, std::uint64_t tag)>& tell);

  Rate rate(std::uint64_t tag) const;  // of a flow on its way; for tests

 private:
  using FlowId = FlowTable::FlowId;
  using Part = FlowTable::Part;
  using Flow = FlowTable::Flow;
  using Resource = FlowTable::Resource;
  static constexpr std::uint32_t none = FlowTable::none;
  static constexpr std::int64_t most_for_one = 32;  // rates
  static constexpr Time in_pool = -1;               // the end of a flow whose pool knows it

  void remove(FlowId);
  void bring_up(Flow&);
  void give(FlowId, Rate, std::uint32_t bound_by);
  void set_end(FlowId, Time);
  bool give_alone(FlowId);
  bool share_one(std::uint32_t resource);
  void gather(bool all_new);

  std::uint32_t pool_of(const Flow&) const;
  void make_pool(std::uint32_t resource);
  void break_pool(std::uint32_t resource);
  void join_pool(FlowId);
  void add(FlowPool&, FlowId);
  void watch_first(FlowPool&);
  void end_first(std::uint32_t resource, std::vector<std::uint64_t>& ended);
  void settle_pools();

  FlowTable table_;
  FlowRegion region_{table_};
  std::size_t moving_ = 0;
  std::int64_t solved_ = 0;   // rates, so far
  std::int64_t changes_ = 0;  // starts and ends
  InstantQueue<FlowId> ends_;
  Time now_ = 0;

  std::vector<FlowId> fresh_;
  std::vector<std::uint32_t> changed_;  // resources that lost a flow
  std::vector<FlowPool> pools_;
  FreeNumbers free_pools_;
  std::vector<std::uint32_t> changed_pools_;  // by their resources
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
  std::vector<FlowId> row_;
  RunSorter<FlowId> sorter_;
};

}  // namespace trellis::sim
