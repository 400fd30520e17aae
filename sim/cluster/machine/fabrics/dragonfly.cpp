// The dragonfly fabric: groups of routers, fully connected within a group, with one link between any two groups. Dims
// are hosts of a router, routers of a group, groups. Routes are minimal, with at most one link within a group on each
// side.
#include <fmt/format.h>

#include "sim/cluster/machine/fabric.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

class Dragonfly : public Fabric {
 public:
  explicit Dragonfly(const FabricParameters& r) : Fabric(r.inner, r.dims, true) {
    if (dims().size() != 3)
      text::refuse("a dragonfly of {} dims: expected hosts of a router, routers of a group, groups", dims().size());
    hosts_ = dims()[0] * inner(), group_ = hosts_ * dims()[1];
    globals_ = (dims()[2] - 1 + dims()[1] - 1) / dims()[1];
    const double global = r.has("global.rate") ? r.rate("global.rate") : r.rate("rate");
    ports_.push_back({r.name + " host out", r.rate("rate"), r.time("latency"), 1});
    ports_.push_back({r.name + " host in", r.rate("rate"), 0, 1});
    for (Chip d = 1; d < dims()[1]; ++d)
      ports_.push_back({fmt::format("{} local +{}", r.name, d), r.rate("rate"), r.time("latency"), hosts_});
    for (Chip d = 1; d < dims()[2]; ++d)
      ports_.push_back({fmt::format("{} global +{}", r.name, d), global, r.time("latency"), group_});
  }

  bool route(Chip from, Chip to, int variant, std::vector<Hop>& hops) const override {
    if (variant > 0) return false;
    hops.push_back({0, from});
    const Chip groups = dims()[2], here = from / group_ % groups, there = to / group_ % groups;
    Chip router = from - from % hosts_;
    if (const Chip distance = (there - here + groups) % groups; distance > 0) {
      const Chip first = from - from % group_, last = to - to % group_;
      local(router, first + gate(distance) * hosts_, hops);
      hops.push_back({2 + dims()[1] - 1 + distance - 1, first});
      router = last + gate(groups - distance) * hosts_;
    }
    local(router, to - to % hosts_, hops);
    hops.push_back({1, to});
    return true;
  }

  std::vector<RowSymmetry> alike() const override {
    return {{RowSymmetry::Kind::any, dims()[0]},
            {RowSymmetry::Kind::distinct, dims()[1]},
            {RowSymmetry::Kind::rotate, dims()[2]}};
  }

  Bisection bisection() const override {
    const double half = dims()[2] / 2;
    return {half * (dims()[2] - half) * ports_.back().rate, lower_part(dims()[2])};
  }

 private:
  // the router with the link to the group at that distance
  Chip gate(Chip distance) const { return (distance - 1) / globals_; }
  void local(Chip from, Chip to, std::vector<Hop>& hops) const {
    const Chip n = dims()[1], distance = (to / hosts_ % n - from / hosts_ % n + n) % n;
    if (distance > 0) hops.push_back({2 + distance - 1, from});
  }

  Chip hosts_ = 1, group_ = 1;  // chips of a router, of a group
  Chip globals_ = 1;            // links of a router to other groups
};

const RegisteredFabric dragonfly({"dragonfly", "hosts of a router, routers of a group, groups: 4x8x33",
                                  [](const FabricParameters& r) -> std::shared_ptr<const Fabric> {
                                    return std::make_shared<Dragonfly>(r);
                                  },
                                  [](std::size_t) -> std::vector<std::string> {
                                    return {"rate", "latency", "global.rate"};
                                  }});

}  // namespace
}  // namespace trellis::sim
