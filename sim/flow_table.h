// Which flows are on which resources, how fast each goes, and which of its resources sets that.
#pragma once

#include <span>
#include <vector>

#include "sim/free_numbers.h"
#include "sim/network.h"

namespace trellis::sim {

struct FlowTable {
  using FlowId = std::uint32_t;
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  struct Part {  // of a flow, in one of a resource's lists
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
    std::uint32_t bound_by = none;  // the resource that sets its rate; none: not yet settled
    std::uint32_t place = 0;        // in a region, where it is in it
  };
  struct alignas(64) Resource {
    Rate capacity = 0;                        // in weights: sixteenths
    Rate used = 0;                            // of it, by flows that are settled and in no pool
    Rate fastest = 0;                         // no flow whose rate another sets has more
    std::int64_t weight = 0;                  // of all flows
    std::uint32_t bound = none, free = none;  // the first of those whose rate it sets, and of the others
    std::uint32_t flows = 0;
    std::uint32_t joined = 0;   // of these, that are on other resources too
    std::uint32_t binds = 0;    // of these, whose rate it sets
    std::uint32_t pool = none;  // where all are shared in one
    std::uint32_t place = 0;    // among a region's shares, where it is there
    bool changed = false;       // has lost a flow
  };
  std::vector<Flow> flows = {};
  std::vector<Part> parts = {};
  std::vector<Resource> resources = {};

  FlowId add(std::span<const Use>);  // without a rate
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

  FreeNumbers free_;
};

}  // namespace trellis::sim
