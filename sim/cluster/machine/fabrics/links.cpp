// The links fabric: units joined by whatever links a file says, as GPUs of a host are. Units without a link between
// them exchange data through the host. Figures: NAME.rate of one link, NAME.latency, NAME.join.A.B = links between A
// and B (A < B), NAME.host.rate of a unit's way to the host; if there is none, units forward for each other.
#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "sim/cluster/machine/fabric.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr Chip most_units = 32;

std::string join_key(Chip a, Chip b) { return fmt::format("join.{}.{}", std::min(a, b), std::max(a, b)); }

class Links : public Fabric {
 public:
  explicit Links(const FabricParameters& r) : Fabric(r.inner, r.dims, false) {
    if (size() > most_units) text::refuse("{} units joined by links: expected at most {}", size(), most_units);
    joined_.assign(static_cast<std::size_t>(size()), std::vector<double>(static_cast<std::size_t>(size()), 0));
    for (Chip a = 0; a < most_units; ++a)
      for (Chip b = a + 1; b < most_units; ++b) {
        if (!r.has(join_key(a, b))) continue;
        if (b >= size()) text::refuse("{}.{}: expected units below {}", r.name, join_key(a, b), size());
        width(a, b) = width(b, a) = r.number(join_key(a, b));
      }
    const Time latency = r.time("latency");
    add_ports(r.name, r.rate("rate"), latency);
    if (r.has("host.rate")) {
      host_ = static_cast<std::int32_t>(ports_.size());
      ports_.push_back({r.name + " to the host", r.rate("host.rate"), latency, 1});
      ports_.push_back({r.name + " from the host", r.rate("host.rate"), latency, 1});
    }
    find_ways();
  }

  bool route(Chip from, Chip to, int variant, std::vector<Hop>& hops) const override {
    const Chip a = place(from), b = place(to);
    if (variant == 0) return usual(from, a, b, hops);
    const Chip by = variant - 1;
    if (by == size() && host_ >= 0) return over_host(from, b, hops);
    if (by >= size()) return false;
    if (by == a || by == b || width(a, by) <= 0 || width(by, b) <= 0) return false;
    add_link(from, a, by, hops);
    add_link(from, by, b, hops);
    return true;
  }

  std::vector<RowSymmetry> alike() const override { return {{RowSymmetry::Kind::distinct, size()}}; }

  // The cut between the units with the lower half of the numbers and those with the upper half.
  Bisection bisection() const override {
    double sum = 0;
    for (Chip a = 0; a < size() / 2; ++a)
      for (Chip b = size() / 2; b < size(); ++b)
        if (width(a, b) > 0) sum += ports_[static_cast<std::size_t>(port_of(a, b))].rate;
    const Chip half = size() / 2;
    if (host_ >= 0) sum += half * ports_[static_cast<std::size_t>(host_)].rate;
    return {sum, lower_part(size())};
  }

 private:
  double& width(Chip a, Chip b) { return joined_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }
  double width(Chip a, Chip b) const { return joined_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]; }
  std::int32_t& port_of(Chip a, Chip b) { return port_[static_cast<std::size_t>(a * size() + b)]; }
  std::int32_t port_of(Chip a, Chip b) const { return port_[static_cast<std::size_t>(a * size() + b)]; }

  // A port has the same rate at all units. So there is one port for each width (the number of links between two units),
  // a second one where some unit is joined by this width to two others, and so on.
  void add_ports(const std::string& name, double rate, Time latency) {
    port_.assign(static_cast<std::size_t>(size() * size()), -1);
    std::vector<std::pair<double, Chip>> made;  // width, and which of that width
    for (Chip a = 0; a < size(); ++a) {
      std::vector<double> before;
      for (Chip b = 0; b < size(); ++b) {
        const double links = width(a, b);
        if (links <= 0) continue;
        const auto number = static_cast<Chip>(std::ranges::count(before, links));
        before.push_back(links);
        auto found = std::ranges::find(made, std::pair(links, number));
        if (found == made.end()) {
          ports_.push_back({fmt::format("{} {}x{}", name, links, number), links * rate, latency, 1});
          found = made.insert(made.end(), {links, number});
        }
        port_of(a, b) = static_cast<std::int32_t>(found - made.begin());
      }
    }
  }

  // For each two units: the next unit on a way of the fewest hops, and of these the one over the most links.
  void find_ways() {
    next_.assign(static_cast<std::size_t>(size() * size()), -1);
    for (Chip to = 0; to < size(); ++to) {
      std::vector<Chip> far(static_cast<std::size_t>(size()), -1);
      std::queue<Chip> reached({to});
      far[static_cast<std::size_t>(to)] = 0;
      for (; !reached.empty(); reached.pop())
        for (Chip from = 0; from < size(); ++from) {
          const Chip by = reached.front();
          auto& distance = far[static_cast<std::size_t>(from)];
          if (width(from, by) <= 0) continue;
          if (distance < 0) distance = far[static_cast<std::size_t>(by)] + 1, reached.push(from);
          auto& next = next_[static_cast<std::size_t>(from * size() + to)];
          if (distance == far[static_cast<std::size_t>(by)] + 1 && (next < 0 || width(from, by) > width(from, next)))
            next = by;
        }
      for (Chip from = 0; from < size() && host_ < 0; ++from)
        if (far[static_cast<std::size_t>(from)] < 0)
          text::refuse("no link leads from unit {} to unit {}: expected one, or a host.rate", from, to);
    }
  }

  void add_link(Chip like, Chip from, Chip to, std::vector<Hop>& hops) const {
    hops.push_back({port_of(from, to), at(like, from)});
  }

  bool over_host(Chip from, Chip b, std::vector<Hop>& hops) const {
    hops.push_back({host_, from});
    hops.push_back({host_ + 1, at(from, b)});
    return true;
  }

  bool usual(Chip from, Chip a, Chip b, std::vector<Hop>& hops) const {
    if (width(a, b) <= 0 && host_ >= 0) return over_host(from, b, hops);
    while (a != b) {
      const Chip next = next_[static_cast<std::size_t>(a * size() + b)];
      add_link(from, a, next, hops);
      a = next;
    }
    return true;
  }

  std::vector<std::vector<double>> joined_;
  std::vector<std::int32_t> port_;  // of the link from one unit to another; -1: there is none
  std::vector<Chip> next_;          // on the way from one unit to another
  std::int32_t host_ = -1;
};

const RegisteredFabric links({"links", "units joined by the links that a file says: 8",
                              [](const FabricParameters& r) -> std::shared_ptr<const Fabric> {
                                return std::make_shared<Links>(r);
                              },
                              [](std::size_t) {
                                std::vector<std::string> keys{"rate", "latency", "host.rate"};
                                for (Chip a = 0; a < most_units; ++a)
                                  for (Chip b = a + 1; b < most_units; ++b) keys.push_back(join_key(a, b));
                                return keys;
                              }});

}  // namespace
}  // namespace trellis::sim
