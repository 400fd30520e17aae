// The full fabric: every unit has a link of its own to every other.
#include <fmt/format.h>

#include "sim/cluster/machine/fabric.h"

namespace trellis::sim {
namespace {

class Full : public Fabric {
 public:
  explicit Full(const FabricParameters& r) : Fabric(r.inner, r.dims, false) {
    for (Chip distance = 1; distance < size(); ++distance)
      ports_.push_back({fmt::format("{} +{}", r.name, distance), r.rate("rate"), r.time("latency"), 1});
  }

  // The detours around a dead link go through each of the other units.
  bool route(Chip from, Chip to, int variant, std::vector<Hop>& hops) const override {
    const Chip n = size(), distance = (place(to) - place(from) + n) % n;
    if (variant == 0) {
      hops.push_back({distance - 1, from});
      return true;
    }
    if (variant >= n) return false;
    const Chip first = variant == distance ? n - 1 : variant;
    if (first == distance || (variant == n - 1 && distance != n - 1)) return false;
    hops.push_back({first - 1, from});
    hops.push_back({(distance - first + n) % n - 1, at(from, (place(from) + first) % n)});
    return true;
  }

  std::vector<RowSymmetry> alike() const override { return {{RowSymmetry::Kind::rotate, size()}}; }
  Bisection bisection() const override {
    const double half = size() / 2;
    return {ports_.empty() ? 0 : half * (size() - half) * ports_.front().rate, lower_part(size())};
  }
};

const RegisteredFabric full({"full", "fully connected: 8",
                             [](const FabricParameters& r) -> std::shared_ptr<const Fabric> {
                               return std::make_shared<Full>(r);
                             },
                             [](std::size_t) -> std::vector<std::string> {
                               return {"rate", "latency"};
                             }});

}  // namespace
}  // namespace trellis::sim
