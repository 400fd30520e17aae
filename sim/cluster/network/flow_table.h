// The shared state of flows: which flows use which resources, at what rate, and which resource is each flow's
// bottleneck.
#pragma once

#include <span>
#include <vector>

#include "sim/cluster/network/network.h"
#include "sim/hardware/time/index_allocator.h"

namespace trellis::sim {

struct FlowTable {
  using FlowId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  struct Part {  // one resource that a flow uses, linked into one of the resource's lists
    std::uint32_t resource = 0, weight = 0;
    FlowId flow = 0;
    std::uint32_t before = none, after = none;
  };
  struct alignas(64) Flow {
    Work left = 0;
    Rate rate = 0;
    Time since = 0;  // when `left` was up to date
    Time end = 0;
    std::uint64_t tag = 0;
    std::uint32_t first = 0;  // its first part
    std::uint16_t parts = 0, room = 0;
    std::uint32_t bound_by = none;  // the resource that sets its rate; none: not yet settled
    std::uint32_t place = 0;        // index within a region, while it is in one
  };
  struct alignas(64) Resource {
    Rate capacity = 0;                        // times one_use: weights are sixteenths
    Rate used = 0;                            // by settled flows that are in no pool
    Rate fastest = 0;                         // an upper bound on the rates of flows bound elsewhere
    std::int64_t weight = 0;                  // of all its flows
    std::uint32_t bound = none, free = none;  // heads of the lists of flows that it bounds, and of the others
    std::uint32_t flows = 0;
    std::uint32_t joined = 0;   // flows that use other resources too
    std::uint32_t binds = 0;    // flows that it bounds
    std::uint32_t pool = none;  // the pool of all its flows, if there is one
    std::uint32_t place = 0;    // index among a region's shares, while it is there
    bool changed = false;       // has lost a flow
  };
  std::vector<Flow> flows = {};
  std::vector<Part> parts = {};
  std::vector<Resource> resources = {};

  FlowId add(
      std::span<const ResourceUse>);  // it has no rate yet; throws ScheduleTooLarge for more parts than can be counted
  void remove(FlowId);
  void set_rate(FlowId, Rate, std::uint32_t bound_by);
  void bind(std::uint32_t part, bool bound);  // whether its resource sets its flow's rate

  std::span<const Part> parts_of(const Flow& f) const { return {parts.data() + f.first, f.parts}; }
  template <class Visit>
  void each_part(const Resource& r, Visit visit) const {
    for (const std::uint32_t first : {r.bound, r.free})
      for (std::uint32_t i = first, after = none; i != none; i = after) {
        after = parts[i].after;
        visit(parts[i]);
      }
  }

 private:
  void list(std::uint32_t part, std::uint32_t& first);
  void unlist(const Part&, std::uint32_t& first);

  IndexAllocator free_;
};

}  // namespace trellis::sim
