// A set of flows whose rates are recomputed by water filling over the capacity that the other flows leave. If the
// result is not what all flows together would get, more flows join: those whose bottleneck now has more or less for
// them, and those that have more of a resource than it gives to others.
#pragma once

#include <vector>

#include "sim/cluster/network/flow_table.h"

namespace trellis::sim {

class WaterFillingRegion {
 public:
  using FlowId = FlowTable::FlowId;
  explicit WaterFillingRegion(FlowTable& table) : t_(table) {}

  void clear();
  void join(FlowId);
  void join_bound(std::uint32_t resource);  // all flows whose rates it sets
  void join_bound_beside();                 // likewise, for each resource that the flows so far use
  void solve(bool everything);              // everything: all flows have joined

  struct Given {
    Rate rate = 0;
    std::uint32_t by = FlowTable::none;  // the resource that sets it; none: not yet known
  };
  const std::vector<FlowId>& flows() const { return flows_; }
  const std::vector<Given>& given() const { return given_; }  // to each of flows()

 private:
  using Part = FlowTable::Part;
  using Flow = FlowTable::Flow;
  using Resource = FlowTable::Resource;
  static constexpr std::uint32_t none = FlowTable::none;
  struct Share {  // of a resource
    std::uint32_t resource = 0;
    std::uint32_t others = 0;                     // flows that it bounds and that are not in the region
    std::uint32_t members = 0, first_member = 0;  // flows in the region
    Rate left = 0;                                // of its capacity
    std::int64_t weight = 0;                      // of flows without a rate
    Rate level = 0;                               // what it gave to those that it bounded; 0: it bounded none
    Rate each() const { return left / weight; }
  };
  struct Offer {  // to each flow that has no rate yet
    Rate each = 0;
    std::uint32_t share = 0;  // index of the resource's Share
    bool operator>(const Offer& o) const { return each > o.each; }
  };

  bool holds(FlowId) const;
  Rate rate_now(FlowId) const;
  Share& share_of(const Part& p) { return shares_[t_.resources[p.resource].place]; }
  void visit(std::uint32_t resource);
  void open_shares();
  void list_members();
  void fill();
  void set_tight(Share&, Rate each);
  void set_rest(Rate each);
  bool widen(bool all);
  void widen_at(const Share&);
  void join_faster(Resource&, Rate level);
  bool any_member(const Share&, Rate above, Rate below);
  bool still_sets(const Share&, Rate level);
  void join_ties(const Share&, Rate most);
  Rate offer_at(const Resource&, Rate) const;
  void join_all();

  FlowTable& t_;
  std::vector<FlowId> flows_;
  std::vector<Given> given_;
  std::vector<Share> shares_;    // of all resources that the flows use
  std::vector<FlowId> members_;  // grouped by resource
  std::vector<Offer> offers_;
  std::vector<std::uint32_t> tight_;
};

}  // namespace trellis::sim
