// Compares transfers here with SimGrid's raw max-min model (CM02 without its factors). Each pattern runs in its own
// process, because SimGrid has one simulation per process. Prints the difference, and fails when it is too large.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <numeric>
#include <random>
#include <simgrid/s4u.hpp>
#include <tuple>

#include "schedule/algorithms/algorithm.h"
#include "sim/cluster/price/simulation_run.h"

namespace {

using namespace trellis::sim;
using trellis::schedule::Collective;
using trellis::schedule::Request;
namespace s4u = simgrid::s4u;

constexpr double bytes = 64 << 20;  // of a transfer

struct Case {
  std::string what, machine, algorithm;
  Request request;
  const char* fault = nullptr;
  double most = 0.05;  // allowed difference, as a fraction of the time
};

std::vector<Case> cases() {
  const auto exchange = [](Rank n) {
    return Request{.operation = {.collective = Collective::all_to_all}, .dims = {n}};
  };
  const auto permutation = [](Rank n, std::uint32_t seed) {
    Request request{.operation = {.collective = Collective::permute}, .dims = {n}};
    std::vector<Rank> targets(static_cast<std::size_t>(n));
    std::iota(targets.begin(), targets.end(), 0);
    std::shuffle(targets.begin(), targets.end(), std::mt19937(seed));
    for (Rank r = 0; r < n; ++r) request.pairs.push_back({r, targets[static_cast<std::size_t>(r)]});
    return request;
  };
  const auto reduced = [](std::vector<Rank> dims) {
    return Request{.operation = {.in_place = true}, .dims = std::move(dims)};
  };
  constexpr double tight = 0.001;
  return {{"ring", "ring:64", "ring", reduced({64}), nullptr, tight},
          {"ring, one link slow", "ring:64", "ring", reduced({64}), "slow:3-4:0.5", tight},
          {"torus", "torus:4x4", "torus", reduced({4, 4})},
          {"torus, sides unequal", "torus:8x4x2", "torus", reduced({8, 4, 2})},
          {"torus, one link slow", "torus:8x4x2", "torus", reduced({8, 4, 2}), "slow:0-1:0.5"},
          {"halving-doubling", "torus:4x4x4", "halving_doubling", reduced({64})},
          {"incast", "switch:64", "direct", {.operation = {.collective = Collective::gather}, .dims = {64}}},
          {"all-to-all, switch", "switch:32", "direct", exchange(32)},
          {"all-to-all, ring", "ring:16", "direct", exchange(16)},
          {"all-to-all, torus", "torus:4x4x2", "direct", exchange(32)},
          {"permutation, ring", "ring:64", "direct", permutation(64, 1)},
          {"permutation, torus", "torus:8x8x8", "direct", permutation(512, 2)},
          {"permutation, torus, slow", "torus:8x8x8", "direct", permutation(512, 3), "slow:0-1:0.3"},
          {"permutation, fat tree", "fattree:4x8", "direct", permutation(32, 4)},
          {"permutation, dragonfly", "dragonfly:2x4x9", "direct", permutation(72, 5)}};
}

// The time in seconds at which the last byte of each transfer has left, by rank and move.
using Ends = std::map<std::pair<Rank, std::int64_t>, double>;

struct Result {
  double end = 0;
  Ends each;
};

Result ours(const CompiledSchedule& pattern, const Machine& machine) {
  const auto chunks = static_cast<double>(trellis::schedule::data_chunks(pattern.task()));
  SimulationRun run(machine, {{.pattern = &pattern, .bytes = bytes * chunks}}, {.fold = false, .trace = true});
  Result result{in_seconds(run.run()), {}};
  for (std::int64_t i = 0; i < std::ssize(run.traces()); ++i)
    if (const SimulationRun::Place place = run.place(i); place.peer >= 0) {
      const auto& moves = pattern.classes()[pattern.class_of(place.rank)].moves;
      result.each[{place.rank, place.move - moves.data()}] = in_seconds(run.traces()[static_cast<std::size_t>(i)].end);
    }
  return result;
}

// Walks a pattern as SimulationRun does, and lets SimGrid share our machine's links. Latencies are added outside of
// SimGrid, which would give flows with a longer latency a smaller share.
class Replay {
 public:
  Replay(const CompiledSchedule& pattern, const Machine& machine)
      : pattern_(pattern), machine_(machine), zone_(s4u::create_full_zone("all")), links_(machine.resources()) {
    for (Rank r = 0; r < machine.ranks(); ++r) hosts_.push_back(zone_->create_host(fmt::format("rank{}", r), 1e9));
    for (Rank r = 0; r < machine.ranks(); ++r) {
      for (Rank named : of(r).peers) add_route(r, pattern_.peer(r, named));
      waits_.emplace_back();
      for (const Move& m : of(r).moves) waits_.back().push_back(m.waits);
    }
    zone_->seal();
  }

  Result run(s4u::Engine& engine) {
    for (Rank r = 0; r < machine_.ranks(); ++r)
      for (std::uint32_t m = 0; m < of(r).moves.size(); ++m)
        if (of(r).moves[m].waits == 0) start(r, m);
    engine.run();
    found_.end = s4u::Engine::get_clock();
    return found_;
  }

 private:
  const RankClassProgram& of(Rank r) const { return pattern_.classes()[pattern_.class_of(r)]; }
  s4u::Host* host(Rank r) const { return hosts_[static_cast<std::size_t>(r)]; }

  void add_route(Rank from, Rank to) {
    std::vector<ResourceId> way;
    machine_.route(from, to, way);
    std::vector<s4u::LinkInRoute> links;
    for (ResourceId r : way) links.emplace_back(link(r));
    zone_->add_route(host(from)->get_netpoint(), host(to)->get_netpoint(), nullptr, nullptr, links, false);
  }

  const s4u::Link* link(ResourceId r) {
    if (links_[r] == nullptr) {
      links_[r] = zone_->create_link(fmt::format("link{}", r), machine_.rate(r));
      links_[r]->set_latency(0.0);
      links_[r]->seal();
    }
    return links_[r];
  }

  // Messages to one peer on one channel are sent one after the other.
  struct Lane {
    bool busy = false;
    std::deque<std::uint32_t> waiting = {};
  };
  Lane& lane_of(Rank r, const Move& m) { return lanes_[{r, m.peer, m.channel}]; }

  void start(Rank r, std::uint32_t number) {
    const Move& m = of(r).moves[number];
    if (m.peer != no_peer) {
      Lane& lane = lane_of(r, m);
      if (lane.busy) return lane.waiting.push_back(number);
      lane.busy = true;
    }
    begin(r, number);
  }

  void begin_next(Rank r, Lane& lane) {
    lane.busy = !lane.waiting.empty();
    if (!lane.busy) return;
    const std::uint32_t next = lane.waiting.front();
    lane.waiting.pop_front();
    begin(r, next);
  }

  void begin(Rank r, std::uint32_t number) {
    s4u::Actor::create("move", host(r), [this, r, number] {
      const Move& m = of(r).moves[number];
      if (m.peer == no_peer) return let_go(r, m.step);
      const Rank to = pattern_.peer(r, of(r).peers[static_cast<std::size_t>(m.peer)]);
      s4u::Comm::sendto_async(host(r), host(to), static_cast<std::uint64_t>(bytes * m.chunks))->wait();
      found_.each[{r, number}] = s4u::Engine::get_clock();
      begin_next(r, lane_of(r, m));
      let_go(r, m.step);
      std::vector<ResourceId> way;
      machine_.route(r, to, way);
      Time latency = 0;
      for (ResourceId each : way) latency += machine_.latency(each);
      s4u::this_actor::sleep_for(in_seconds(latency));
      let_go(to, m.arrival);
    });
  }

  void let_go(Rank r, std::uint32_t step) {
    const RankClassProgram& c = of(r);
    for (std::uint32_t i = c.begin[step]; i < c.begin[step + 1]; ++i) {
      const DependentMove& f = c.followers[i];
      const Rank to = f.peer == no_peer ? r : pattern_.peer(r, c.peers[static_cast<std::size_t>(f.peer)]);
      if (--waits_[static_cast<std::size_t>(to)][f.move] == 0) start(to, f.move);
    }
  }

  const CompiledSchedule& pattern_;
  const Machine& machine_;
  s4u::NetZone* zone_;
  std::vector<s4u::Link*> links_;
  std::vector<s4u::Host*> hosts_;
  std::vector<std::vector<std::uint32_t>> waits_;
  std::map<std::tuple<Rank, std::int32_t, std::uint8_t>, Lane> lanes_;
  Result found_;
};

int compare(const Case& c, const char* program) {
  MachineSpec spec = machine_spec(c.machine);
  if (c.fault != nullptr) what_if(spec, c.fault);
  const Machine machine(spec);
  const CompiledSchedule pattern(trellis::schedule::algorithm_named(c.algorithm), c.request);
  const Result here = ours(pattern, machine);
  std::vector<std::string> arguments{program,
                                     "--cfg=network/model:CM02",
                                     "--cfg=network/bandwidth-factor:1",
                                     "--cfg=network/latency-factor:1",
                                     "--cfg=network/weight-S:0",
                                     "--cfg=network/TCP-gamma:0",
                                     "--cfg=network/crosstraffic:0",
                                     "--cfg=surf/precision:1e-12",
                                     "--cfg=maxmin/precision:1e-9",
                                     "--log=root.thres:error"};
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  int count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  s4u::Engine engine(&count, pointers.data());
  const Result there = Replay(pattern, machine).run(engine);
  double worst = 0;
  for (const auto& [key, end] : here.each) worst = std::max(worst, std::abs(there.each.at(key) / end - 1));
  const double last = there.end / here.end - 1;
  fmt::print("{:<26}{:<18}{:>14.3f}{:>14.3f}{:>11.4f}%{:>11.4f}%\n", c.what, c.machine, here.end * 1e6, there.end * 1e6,
             100 * last, 100 * worst);
  return std::max(std::abs(last), worst) <= c.most ? 0 : 1;
}

int compare_apart(const Case& c, const char* program) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      code = compare(c, program);
    } catch (const std::exception& e) {
      fmt::print("{}: {}\n", c.what, e.what());
    }
    std::fflush(stdout);
    _exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) < 0) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int, char** arguments) {
  fmt::print("{:<26}{:<18}{:>14}{:>14}{:>12}{:>12}\n", "pattern", "machine", "here, us", "SimGrid, us", "last end",
             "any end");
  int failed = 0;
  for (const Case& c : cases()) failed += compare_apart(c, arguments[0]);
  return failed == 0 ? 0 : 1;
}
