// Switch fabrics: one switch for all units, a Clos of leaves and a spine, a fat tree of any height. Traffic is spread
// over all uplinks, so the uplinks of one switch are one resource.
#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/machine/fabric.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

// Ports come in pairs, up and down: of a unit's interface, of its host's if that is limited, and of each oversubscribed
// level of switches. A level that can carry all traffic from below is not a resource.
class Tree : public Fabric {
 public:
  Tree(const FabricParameters& r, std::vector<Chip> below) : Fabric(r.inner, r.dims, true) {
    const Chip group = r.has("group") ? r.count("group") : 1;  // chips that share an interface
    if (group < 1) text::refuse("{}.group = {}: expected at least 1", r.name, group);
    if (inner() % group != 0 && group % inner() != 0)
      text::refuse("{}.group = {}: expected a divisor of the {} chips of a host, or a multiple of them", r.name, group,
                   inner());
    add(r.name, group, r.rate("rate"), r.time("latency"));
    if (r.has("host.rate")) add(r.name + " host", inner(), r.rate("host.rate"), 0);
    double capacity = r.rate("rate") * inner() / group;
    if (r.has("host.rate")) capacity = std::min(capacity, r.rate("host.rate"));
    if (below.empty()) below = {size()};
    Chip span = inner();
    for (std::size_t level = 0; level + 1 < below.size(); ++level) {
      span *= below[level];
      const double over = r.has("oversubscription") ? r.number("oversubscription") : 1;
      capacity *= below[level] / over;
      switches_.push_back(span);
      blocking_.push_back(over > 1 ? static_cast<int>(ports_.size()) : -1);
      if (over > 1) add(fmt::format("{} level {}", r.name, level + 1), span, capacity, 0);
    }
    below_ = std::move(below);
    top_ = capacity;
  }

  bool route(Chip from, Chip to, int variant, std::vector<Hop>& hops) const override {
    if (variant > 0) return false;
    const auto owner = [](Chip c, Chip span) { return c - c % span; };
    std::size_t meet = 0;
    while (meet < switches_.size() && owner(from, switches_[meet]) != owner(to, switches_[meet])) ++meet;
    const int own = interfaces();
    for (int port = 0; port < own; port += 2) hops.push_back({port, owner(from, ports_[port].span)});
    for (std::size_t i = 0; i < meet; ++i)
      if (blocking_[i] >= 0) hops.push_back({blocking_[i], owner(from, switches_[i])});
    for (std::size_t i = meet; i-- > 0;)
      if (blocking_[i] >= 0) hops.push_back({blocking_[i] + 1, owner(to, switches_[i])});
    for (int port = own - 1; port > 0; port -= 2) hops.push_back({port, owner(to, ports_[port].span)});
    return true;
  }

  std::vector<RowSymmetry> alike() const override {
    if (std::ranges::all_of(blocking_, [](int port) { return port < 0; })) return {{RowSymmetry::Kind::any, size()}};
    std::vector<RowSymmetry> all;
    Chip units = 1;
    for (Chip children : below_) all.push_back({RowSymmetry::Kind::any, children}), units *= children;
    return units == size() ? all : std::vector<RowSymmetry>{{RowSymmetry::Kind::distinct, size()}};
  }

  // The smaller half of the top switch's children sends to the others. If the last child has free places, it is among
  // the others, so that all children that send are full.
  Bisection bisection() const override {
    if (size() < 2) return {};
    const Chip half = below_.back() / 2, units = switches_.empty() ? 1 : switches_.back() / inner();
    const double part = static_cast<double>(half * units) / size();
    return {top_ * half, std::min(part, 1 - part)};
  }

 private:
  void add(const std::string& name, Chip span, double rate, Time latency) {
    ports_.push_back({name + " out", rate, latency, span});
    ports_.push_back({name + " in", rate, 0, span});
  }
  int interfaces() const {
    for (int port : blocking_)
      if (port >= 0) return port;
    return static_cast<int>(ports_.size());
  }

  std::vector<Chip> below_;     // children of a switch at each level
  std::vector<Chip> switches_;  // chips below one switch of each level but the top
  std::vector<int> blocking_;   // by level: the port up from a switch; -1: it carries all traffic from below
  double top_ = 0;              // bytes a second of each child of the top switch
};

using Made = std::shared_ptr<const Fabric>;

Made make_switch(const FabricParameters& r) { return std::make_shared<Tree>(r, std::vector<Chip>{}); }

// A leaf has `radix` units, the spine all leaves. The last leaf may have free places.
Made make_clos(const FabricParameters& r) {
  Chip units = 1;
  for (Chip d : r.dims) units *= d;
  const Chip radix = r.count("radix");
  if (radix < 1) text::refuse("{}.radix = {}: expected at least 1", r.name, radix);
  if (units <= radix) return make_switch(r);
  return std::make_shared<Tree>(r, std::vector<Chip>{radix, (units + radix - 1) / radix});
}

Made make_fat_tree(const FabricParameters& r) { return std::make_shared<Tree>(r, r.dims); }

std::vector<std::string> switch_keys(std::size_t) { return {"rate", "latency", "group", "host.rate"}; }

std::vector<std::string> fat_tree_keys(std::size_t dims) {
  std::vector<std::string> all = switch_keys(dims);
  all.emplace_back("oversubscription");
  return all;
}

std::vector<std::string> clos_keys(std::size_t dims) {
  std::vector<std::string> all = fat_tree_keys(dims);
  all.emplace_back("radix");
  return all;
}

const RegisteredFabric one({"switch", "one switch that connects every unit: 8", make_switch, switch_keys});
const RegisteredFabric clos({"clos", "leaf switches below a spine: 64", make_clos, clos_keys});
const RegisteredFabric fat({"fattree", "switches in a tree, the children of each level from below: 4x8x16",
                            make_fat_tree, fat_tree_keys});

}  // namespace
}  // namespace trellis::sim
