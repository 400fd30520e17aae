#include "sim/cluster/tune/synthesis_graph.h"

#include <algorithm>
#include <map>
#include <utility>

namespace trellis::sim {
namespace {

using Links = std::vector<ResourceId>;

// The routes of all pairs.
class Ways {
 public:
  Ways(const Machine& machine, const RankGroup& group) : ranks_(group.ranks()) {
    for (Rank a = 0; a < ranks_; ++a)
      for (Rank b = 0; b < ranks_; ++b) {
        Links links;
        const auto place = [&](Rank r) {
          return group.members.empty() ? r : group.members[static_cast<std::size_t>(r)];
        };
        if (a != b) machine.route(place(a), place(b), links);
        by_links_[{a, links}].push_back(b);
        ways_.push_back(std::move(links));
      }
  }

  const Links& way(Rank a, Rank b) const {
    return ways_[static_cast<std::size_t>(a) * static_cast<std::size_t>(ranks_) + static_cast<std::size_t>(b)];
  }

  // Whether the route leads past another rank: it consists of the routes to that rank and on from it.
  bool passes_a_rank(Rank a, Rank b) const {
    const Links& whole = way(a, b);
    for (std::size_t cut = 1; cut < whole.size(); ++cut) {
      const auto middle = whole.begin() + static_cast<std::ptrdiff_t>(cut);
      const auto found = by_links_.find({a, Links(whole.begin(), middle)});
      if (found == by_links_.end()) continue;
      for (const Rank c : found->second)
        if (c != b && std::equal(middle, whole.end(), way(c, b).begin(), way(c, b).end())) return true;
    }
    return false;
  }

 private:
  Rank ranks_;
  std::vector<Links> ways_;
  std::map<std::pair<Rank, Links>, std::vector<Rank>> by_links_;
};

}  // namespace

LinkGraph link_graph(const Machine& machine, const RankGroup& group, const std::string& era, bool backwards) {
  const Ways ways(machine, group);
  const SoftwareOverheads o = machine.overheads(era);
  LinkGraph graph{.ranks = group.ranks()};
  std::map<ResourceId, std::uint32_t> numbers;
  const auto number = [&](ResourceId r) {
    return numbers.try_emplace(r, static_cast<std::uint32_t>(numbers.size())).first->second;
  };
  const auto hold = [&](Edge& e, ResourceId r, double touches) {
    if (r == no_resource) return;
    e.holds.push_back({number(r), touches / machine.rate(r)});
    e.byte = std::max(e.byte, e.holds.back().seconds);
  };
  const auto place = [&](Rank r) { return group.members.empty() ? r : group.members[static_cast<std::size_t>(r)]; };
  for (Rank a = 0; a < graph.ranks; ++a)
    for (Rank b = 0; b < graph.ranks; ++b) {
      if (a == b || ways.passes_a_rank(a, b)) continue;
      const Links& links = ways.way(a, b);
      Edge e{.from = backwards ? b : a, .to = backwards ? a : b, .holds = {}};
      Time latency = 0;
      for (const ResourceId r : links) {
        hold(e, r, 1);
        latency = later(latency, machine.latency(r));
      }
      if (!links.empty()) e.first_link = links.front(), e.last_link = links.back();
      hold(e, machine.hbm(place(a)), 1);
      hold(e, machine.dma(place(a)), 2);
      hold(e, machine.hbm(place(b)), backwards ? 2 : 1);
      if (backwards) hold(e, machine.dma(place(b)), 1);
      const double slowness = std::max(machine.slowness(place(a)), machine.slowness(place(b)));
      e.before = in_seconds(o.handshake + o.dma_start + (backwards ? o.reduce : 0)) * slowness;
      e.after = in_seconds(latency + o.semaphore);
      graph.edges.push_back(std::move(e));
    }
  graph.resources = static_cast<std::uint32_t>(numbers.size());
  return graph;
}

}  // namespace trellis::sim
