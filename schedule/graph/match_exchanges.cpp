#include "schedule/graph/match_exchanges.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace trellis::schedule {
namespace {

constexpr std::uint32_t nobody = std::numeric_limits<std::uint32_t>::max();

// A class's role on a communicator: the set of classes that it shares groups with, and its ranks' place in the groups.
struct Standing {
  std::uint32_t together = nobody;
  Rank place = -1;    // -1: its ranks have different ones
  bool alone = true;  // no other class of the set has the same place
};

class Matching {
 public:
  explicit Matching(const ExecutionGraph& graph) : graph_(graph) {}

  MatchResult run() {
    find_classes();
    for (std::uint32_t c = 0; c < graph_.communicators.size() && fine(); ++c) find_together(c);
    for (std::uint32_t c = 0; c < graph_.classes.size() && fine(); ++c) meet(c);
    if (fine()) expect_complete();
    if (fine()) put_in_order();
    return std::move(out_);
  }

 private:
  bool fine() const { return out_.fault.empty(); }
  const GraphTask& task(RankClassTask e) const { return graph_.classes[e.rank_class].tasks[e.task]; }

  std::string words(RankClassTask e) const {
    return fmt::format("{}, task {} ({}: {})", ranks_words(graph_.classes[e.rank_class].ranks), e.task, task(e).name,
                       described(graph_, task(e)));
  }
  void fail(RankClassTask e, const std::string& why) {
    if (fine()) out_.fault = words(e) + ": " + why;
  }

  void find_classes() {
    class_of_.assign(static_cast<std::size_t>(graph_.ranks), nobody);
    for (std::uint32_t c = 0; c < graph_.classes.size(); ++c)
      for (Rank r : graph_.classes[c].ranks) {
        if (r < 0 || r >= graph_.ranks || class_of_[static_cast<std::size_t>(r)] != nobody) {
          out_.fault = fmt::format("rank {} is in two classes, or none of the graph's {}", r, graph_.ranks);
          return;
        }
        class_of_[static_cast<std::size_t>(r)] = c;
      }
    const auto missing = std::ranges::find(class_of_, nobody);
    if (missing != class_of_.end()) out_.fault = fmt::format("rank {} is in no class", missing - class_of_.begin());
  }

  // Joins the classes whose ranks share groups, and notes each class's place in them.
  void find_together(std::uint32_t number) {
    const GraphCommunicator& c = graph_.communicators[number];
    std::vector<std::uint32_t> root(graph_.classes.size());
    std::iota(root.begin(), root.end(), 0);
    const auto top = [&](std::uint32_t x) {
      while (root[x] != x) x = root[x] = root[root[x]];
      return x;
    };
    auto& standing = standing_.emplace_back(graph_.classes.size());
    std::vector<std::size_t> members(graph_.classes.size(), 0);
    const auto enter = [&](Rank r, Rank place) {
      const std::uint32_t of = class_of_[static_cast<std::size_t>(r)];
      standing[of].place = members[of]++ == 0 || standing[of].place == place ? place : -1;
      return of;
    };
    auto& together = out_.together.emplace_back();
    if (c.groups.empty()) {
      for (Rank r = 0; r < graph_.ranks; ++r) enter(r, r);
      std::vector<std::uint32_t> all(graph_.classes.size());
      std::iota(all.begin(), all.end(), 0);
      together.push_back({std::move(all), {0}});
    } else {
      for (const auto& group : c.groups)
        for (std::size_t i = 0; i < group.size(); ++i)
          root[top(enter(group[i], static_cast<Rank>(i)))] = top(class_of_[static_cast<std::size_t>(group[0])]);
      std::unordered_map<std::uint32_t, std::uint32_t> numbers;
      for (std::uint32_t of = 0; of < graph_.classes.size(); ++of) {
        if (members[of] == 0) continue;
        const auto [found, fresh] = numbers.try_emplace(top(of), static_cast<std::uint32_t>(together.size()));
        if (fresh) together.emplace_back();
        together[found->second].classes.push_back(of);
      }
      for (std::uint32_t g = 0; g < c.groups.size(); ++g)
        together[numbers.at(top(class_of_[static_cast<std::size_t>(c.groups[g][0])]))].groups.push_back(g);
    }
    for (std::uint32_t t = 0; t < together.size(); ++t) {
      std::map<Rank, std::uint32_t> places;
      for (std::uint32_t of : together[t].classes) {
        standing[of].together = t;
        if (members[of] != graph_.classes[of].ranks.size()) standing[of] = {};  // no role: some ranks are in no group
        const auto [other, fresh] = places.try_emplace(standing[of].place, of);
        if (!fresh) standing[of].alone = standing[other->second].alone = false;
      }
    }
  }

  // Assigns each task of the class to a joint: a list of tasks, of one class or several, which happen together as the
  // ends of one collective or message. A computation has a joint of its own; a collective, send or receive is added to
  // a joint that another class has begun, if there is one.
  void meet(std::uint32_t c) {
    const std::vector<GraphTask>& tasks = graph_.classes[c].tasks;
    auto& own = joint_of_.emplace_back(tasks.size());
    std::map<Key, std::size_t> counts;
    for (std::uint32_t t = 0; t < tasks.size() && fine(); ++t) {
      const RankClassTask end{c, t};
      if (tasks[t].kind == GraphTask::Kind::compute) {
        own[t] = fresh(end);
        continue;
      }
      const Key key = key_of(end);
      if (!fine()) return;
      auto& line = lines_[key];
      std::size_t& next = counts[key];
      if (next == line.size()) {
        line.push_back(fresh(end));
      } else {
        expect_alike(joints_[line[next]][0], end);
        joints_[line[next]].push_back(end);
        if (tasks[t].kind == GraphTask::Kind::send) std::swap(joints_[line[next]][0], joints_[line[next]].back());
      }
      own[t] = line[next++];
    }
  }

  // The communicator, the set of classes in its groups, and a message's places in the group: sender, receiver.
  using Key = std::tuple<std::uint32_t, std::uint32_t, Rank, Rank>;

  Key key_of(RankClassTask end) {
    const GraphTask& t = task(end);
    if (t.communicator >= standing_.size()) return fail(end, "there is no such communicator"), Key{};
    const Standing& s = standing_[t.communicator][end.rank_class];
    if (s.together == nobody) return fail(end, "a rank of it is in no group of the communicator"), Key{};
    if (t.kind == GraphTask::Kind::collective) return {t.communicator, s.together, -1, -1};
    if (s.place < 0) return fail(end, "its ranks have different places in their groups"), Key{};
    if (!s.alone) return fail(end, "another class has its place in the groups"), Key{};
    if (t.operation.peer == s.place) return fail(end, "its other end is itself"), Key{};
    const bool send = t.kind == GraphTask::Kind::send;
    return {t.communicator, s.together, send ? s.place : t.operation.peer, send ? t.operation.peer : s.place};
  }

  std::uint32_t fresh(RankClassTask end) {
    joints_.push_back({end});
    return static_cast<std::uint32_t>(joints_.size() - 1);
  }

  void expect_alike(RankClassTask a, RankClassTask b) {
    const GraphTask &x = task(a), &y = task(b);
    const bool message = x.kind != GraphTask::Kind::collective;
    const bool alike = x.amounts == y.amounts && x.bytes == y.bytes && x.reduction == y.reduction &&
                       (message ? x.label == y.label && x.kind != y.kind : x.operation == y.operation);
    if (!alike) fail(b, fmt::format("at the other end, {}", words(a)));
  }

  void expect_complete() {
    for (const auto& ends : joints_) {
      const GraphTask& t = task(ends[0]);
      if (t.kind == GraphTask::Kind::compute) continue;
      const bool message = t.kind != GraphTask::Kind::collective;
      const std::uint32_t in = standing_[t.communicator][ends[0].rank_class].together;
      const auto& classes = out_.together[t.communicator][in].classes;
      if (ends.size() == (message ? 2 : classes.size())) continue;
      for (std::uint32_t c : classes)
        if (!message && std::ranges::none_of(ends, [&](RankClassTask e) { return e.rank_class == c; }))
          return fail(ends[0], fmt::format("{} never come to it", ranks_words(graph_.classes[c].ranks)));
      return fail(ends[0], "nobody is at the other end");
    }
  }

  // Kahn's algorithm; among joints (task ends that happen together) that are ready, the lowest task number goes first.
  void put_in_order() {
    std::vector<std::uint32_t> waits(joints_.size(), 0), first(joints_.size() + 1, 0), next;
    const auto each_edge = [&](const auto& body) {
      for (std::uint32_t c = 0; c < graph_.classes.size(); ++c) {
        std::vector<std::uint32_t> last(graph_.streams.size(), nobody);
        const auto& tasks = graph_.classes[c].tasks;
        for (std::uint32_t t = 0; t < tasks.size(); ++t) {
          for (std::uint32_t before : tasks[t].after) body(RankClassTask{c, before}, RankClassTask{c, t});
          std::uint32_t& previous = last[tasks[t].stream];
          if (graph_.streams[tasks[t].stream].ordered && previous != nobody)
            body(RankClassTask{c, previous}, RankClassTask{c, t});
          previous = t;
        }
      }
    };
    const auto joint = [&](RankClassTask e) { return joint_of_[e.rank_class][e.task]; };
    each_edge([&](RankClassTask before, RankClassTask after) { ++first[joint(before) + 1], ++waits[joint(after)]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    next.resize(first.back());
    std::vector<std::uint32_t> fill(first.begin(), first.end() - 1);
    each_edge([&](RankClassTask before, RankClassTask after) { next[fill[joint(before)]++] = joint(after); });
    using Entry = std::pair<std::uint32_t, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    const auto enter = [&](std::uint32_t j) { ready.emplace(task(joints_[j][0]).number, j); };
    for (std::uint32_t j = 0; j < joints_.size(); ++j)
      if (waits[j] == 0) enter(j);
    std::vector<bool> done(joints_.size(), false);
    out_.order.reserve(joints_.size());
    while (!ready.empty()) {
      const std::uint32_t j = ready.top().second;
      ready.pop();
      done[j] = true;
      for (std::uint32_t i = first[j]; i < first[j + 1]; ++i)
        if (--waits[next[i]] == 0) enter(next[i]);
      out_.order.push_back(std::move(joints_[j]));
    }
    const auto stuck = std::ranges::find(done, false);
    if (stuck == done.end()) return;
    out_.order.clear();
    fail(joints_[static_cast<std::size_t>(stuck - done.begin())][0],
         "it waits for itself, by way of what comes before it on the ranks at its other ends");
  }

  const ExecutionGraph& graph_;
  MatchResult out_;
  std::vector<std::uint32_t> class_of_;               // by rank
  std::vector<std::vector<Standing>> standing_;       // by communicator and class
  std::vector<std::vector<RankClassTask>> joints_;    // the task ends that happen together
  std::vector<std::vector<std::uint32_t>> joint_of_;  // by class and task
  std::map<Key, std::vector<std::uint32_t>> lines_;
};

}  // namespace

std::string ranks_words(const std::vector<Rank>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  if (ranks.back() - ranks.front() + 1 == static_cast<Rank>(ranks.size()))
    return fmt::format("ranks {} to {}", ranks.front(), ranks.back());
  return fmt::format("ranks {}, {} and {} more", ranks[0], ranks[1], ranks.size() - 2);
}

std::string described(const ExecutionGraph& graph, const GraphTask& t) {
  if (t.kind == GraphTask::Kind::compute) return "compute";
  const std::string on = t.communicator < graph.communicators.size() ? graph.communicators[t.communicator].name : "?";
  std::string text =
      t.kind == GraphTask::Kind::collective
          ? fmt::format("{} on {}", name(t.operation.collective), on)
          : fmt::format("{} {} of {}, label {}", t.kind == GraphTask::Kind::send ? "send to" : "receive from",
                        t.operation.peer, on, t.label);
  if (!t.reduction.empty()) text += " by " + t.reduction;
  for (const ElementCount& a : t.amounts) text += fmt::format(", {} {}", a.count, graph.types[a.type].name);
  return t.amounts.empty() ? fmt::format("{}, {:.0f} B", text, t.bytes) : text;
}

MatchResult match(const ExecutionGraph& graph) { return Matching(graph).run(); }

}  // namespace trellis::schedule
