// Exact max-min fair flows. Each flow knows its bottleneck, the resource that sets its rate. A change recomputes only
// the rates that the changed resources set, then those of bottlenecks that are no longer right, until all are right.
#pragma once

#include <functional>
#include <vector>

#include "sim/cluster/network/fair_share_queue.h"
#include "sim/cluster/network/network.h"
#include "sim/cluster/network/water_filling_region.h"
#include "sim/hardware/time/batched_event_queue.h"
#include "sim/hardware/time/natural_merge_sort.h"

namespace trellis::sim {

class FlowNetwork : public Network {
 public:
  explicit FlowNetwork(std::vector<Rate> capacities);

  void start(std::span<const ResourceUse>, Work, std::uint64_t tag) override;
  void settle() override;
  Time next() const override { return ends_.next(); }
  void advance(Time to, std::vector<std::uint64_t>& ended) override;

  // Whether more than `rates` rates were computed, and far more than flows have started and ended.
  bool crowded(std::int64_t rates) const { return solved_ > rates && solved_ > most_for_one * changes_; }
  // Reports every flow in flight. Call it after settle(). The network must not be used afterwards.
  void leave(const std::function<void(std::span<const ResourceUse>, Work left, std::uint64_t tag)>& tell);

  Rate rate(std::uint64_t tag) const;  // of a flow in flight; for tests

 private:
  using FlowId = FlowTable::FlowId;
  using Part = FlowTable::Part;
  using Flow = FlowTable::Flow;
  using Resource = FlowTable::Resource;
  static constexpr std::uint32_t none = FlowTable::none;
  static constexpr std::int64_t most_for_one = 32;  // rates computed for each start or end
  static constexpr Time in_pool = -1;               // `end` of a flow whose end its pool tracks

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
  void add(FairShareQueue&, FlowId);
  void watch_first(FairShareQueue&);
  void end_first(std::uint32_t resource, std::vector<std::uint64_t>& ended);
  void settle_pools();

  FlowTable table_;
  WaterFillingRegion region_{table_};
  std::size_t moving_ = 0;
  std::int64_t solved_ = 0;   // rates computed so far
  std::int64_t changes_ = 0;  // starts and ends
  BatchedEventQueue<FlowId> ends_;
  Time now_ = 0;

  std::vector<FlowId> fresh_;
  std::vector<std::uint32_t> changed_;  // resources that lost a flow
  std::vector<FairShareQueue> pools_;
  IndexAllocator free_pools_;
  std::vector<std::uint32_t> changed_pools_;  // by resource
  // Caches the last result, as flows that start together mostly have the same size and rate.
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
  NaturalMergeSort<FlowId> sorter_;
};

}  // namespace trellis::sim
