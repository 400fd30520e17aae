#include "sim/cluster/workload/traces/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <unordered_map>
#include <utility>

#include "text/refuse.h"

namespace trellis::sim {
namespace {

using Type = ChakraNode::Type;
using schedule::Collective;
using schedule::GraphTask;

constexpr std::size_t most_streams = 65'535;

// A node of a rank class: `actor` is the class's index.
struct At {
  std::uint32_t actor = 0, node = 0;
};

// A node of one rank class, or the nodes with which several classes describe one collective.
struct Merged {
  std::vector<At> nodes;  // by rank class, ascending
  GraphTask task;
  std::uint32_t meeting = ChakraRankClass::no_meeting;
  std::vector<std::uint32_t> next;                              // nodes that wait for it
  std::vector<std::pair<std::uint32_t, std::uint32_t>> before;  // a rank class, and what it waits for
  std::vector<std::pair<std::uint32_t, std::uint32_t>> tasks;   // a rank class, and the number of its task
};

class Merger {
 public:
  Merger(std::string_view name, std::span<const ChakraFile> files, std::vector<ChakraRankClass> actors,
         std::vector<ChakraCommunicator> meetings)
      : files_(files), actors_(std::move(actors)), meetings_(std::move(meetings)), named_(!meetings_.empty()) {
    out_.name = name;
    out_.ranks = static_cast<Rank>(files.size());
    for (const ChakraRankClass& a : actors_) out_.classes.push_back({.ranks = a.ranks});
  }

  ExecutionGraph merge() {
    if (!named_) find_groups();
    for (std::uint32_t a = 0; a < actors_.size(); ++a) add_actor(a);
    for (const auto& [key, number] : joined_) complete(merged_[number]);
    connect();
    put_in_order();
    return std::move(out_);
  }

 private:
  // A communicator, a message's tag (-1 for collectives), and the sequence number there.
  using Key = std::tuple<std::uint32_t, std::int64_t, std::int64_t>;

  const ChakraNode& node(At at) const { return actors_[at.actor].nodes[at.node]; }
  Rank rank_of(At at) const { return actors_[at.actor].ranks.front(); }

  template <class... T>
  [[noreturn]] void refuse(At at, fmt::format_string<T...> format, T&&... values) const {
    const ChakraNode& n = node(at);
    const ChakraFile& file = files_[static_cast<std::size_t>(rank_of(at))];
    text::refuse("{}, {} {}: node {} ({}): {}", file.name, file.place, n.offset, n.id, n.name,
                 fmt::format(format, std::forward<T>(values)...));
  }

  // The members of a process group are the ranks that name it.
  void find_groups() {
    meetings_.push_back({.actors = actors_.size()});
    for (std::uint32_t a = 0; a < actors_.size(); ++a)
      for (const ChakraNode& n : actors_[a].nodes) {
        if (n.type != Type::collective || n.group.empty()) continue;
        const auto [found, fresh] = groups_.try_emplace(n.group, static_cast<std::uint32_t>(meetings_.size()));
        if (fresh) meetings_.push_back({.groups = {{}}});
        ChakraCommunicator& group = meetings_[found->second];
        const Rank own = actors_[a].ranks.front();
        if (group.groups[0].empty() || group.groups[0].back() != own) group.groups[0].push_back(own), ++group.actors;
      }
    for (ChakraCommunicator& m : meetings_)
      if (m.actors == actors_.size()) m.groups.clear();
  }

  std::uint32_t meeting_of(At at) {
    if (named_) return actors_[at.actor].meetings[at.node];
    const ChakraNode& n = node(at);
    if (n.type == Type::collective) return n.group.empty() ? 0 : groups_.at(n.group);
    const Rank r = rank_of(at);
    const bool sends = n.type == Type::send;
    const std::int64_t source = sends && n.source < 0 ? r : n.source, target = !sends && n.target < 0 ? r : n.target;
    if ((sends ? source : target) != r || source == target || std::min(source, target) < 0 ||
        std::max(source, target) >= out_.ranks)
      refuse(at, "from {} to {} on rank {} of {}", source, target, r, out_.ranks);
    const auto [found, fresh] = pairs_.try_emplace({source, target}, static_cast<std::uint32_t>(meetings_.size()));
    if (fresh) meetings_.push_back({.groups = {{static_cast<Rank>(source), static_cast<Rank>(target)}}});
    return found->second;
  }

  // Topological order of a rank class's nodes; among those that are ready the lowest id comes first.
  std::vector<std::uint32_t> order(std::uint32_t a) {
    const auto& nodes = actors_[a].nodes;
    auto& by_id = by_id_.emplace_back();
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (!by_id.emplace(nodes[i].id, i).second) refuse({a, i}, "the id of an earlier node");
    std::vector<std::vector<std::uint32_t>> next(nodes.size());
    std::vector<std::size_t> waits(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      for (std::uint64_t id : nodes[i].after) {
        const auto found = by_id.find(id);
        if (found == by_id.end()) refuse({a, i}, "waits for node {}, which is not there", id);
        next[found->second].push_back(i);
        ++waits[i];
      }
    std::priority_queue<std::pair<std::uint64_t, std::uint32_t>, std::vector<std::pair<std::uint64_t, std::uint32_t>>,
                        std::greater<>>
        ready;
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (waits[i] == 0) ready.emplace(nodes[i].id, i);
    std::vector<std::uint32_t> order;
    while (!ready.empty()) {
      const std::uint32_t i = ready.top().second;
      ready.pop();
      order.push_back(i);
      for (std::uint32_t after : next[i])
        if (--waits[after] == 0) ready.emplace(nodes[after].id, after);
    }
    if (order.size() < nodes.size()) {
      const auto stuck = std::ranges::find_if(waits, [](std::size_t w) { return w > 0; }) - waits.begin();
      refuse({a, static_cast<std::uint32_t>(stuck)}, "waits for itself, by way of others");
    }
    return order;
  }

  void add_actor(std::uint32_t a) {
    std::map<Key, std::int64_t> counts;
    auto& own = of_node_.emplace_back(actors_[a].nodes.size());
    for (std::uint32_t i : order(a)) {
      const At at{a, i};
      const Type type = node(at).type;
      auto number = static_cast<std::uint32_t>(merged_.size());
      std::uint32_t meeting = ChakraRankClass::no_meeting;
      if (type == Type::collective || type == Type::send || type == Type::receive) {
        meeting = meeting_of(at);
        Key key{meeting, type == Type::collective ? -1 : node(at).tag, 0};
        auto& joined = type == Type::collective ? joined_ : type == Type::send ? sends_ : receives_;
        std::get<2>(key) = counts[{meeting, std::get<1>(key), static_cast<std::int64_t>(type)}]++;
        number = joined.try_emplace(key, number).first->second;
      }
      if (number == merged_.size()) {
        merged_.emplace_back();
        merged_.back().meeting = meeting;
        describe(at, merged_.back());
      } else {
        expect_alike(merged_[number].nodes.front(), at);
      }
      merged_[number].nodes.push_back(at);
      own[i] = number;
    }
  }

  void describe(At at, Merged& m) {
    const ChakraNode& n = node(at);
    GraphTask& task = m.task;
    task.name = n.name.empty() ? fmt::format("node {}", n.id) : n.name;
    task.time = static_cast<Time>(n.micros) * us + static_cast<Time>(n.nanos) * ns;
    task.flops = static_cast<double>(n.operations);
    task.bytes = static_cast<double>(n.tensor_bytes);
    std::string stream = !n.stream.empty() ? n.stream : n.on_host ? "host" : "compute";
    if (n.type == Type::load || n.type == Type::store) stream = "memory";
    if (task.time > 0 || n.type == Type::metadata) task.flops = task.bytes = 0;
    if (n.type == Type::receive) task.flops = task.bytes = 0, task.time = 0;
    if (n.type == Type::receive || n.type == Type::send) stream = "messages";
    if (n.type == Type::send) {
      task.kind = GraphTask::Kind::collective;
      task.operation.collective = Collective::send_recv;
      task.bytes = static_cast<double>(n.comm_size);
      task.operation.root = 0, task.operation.peer = 1;
    }
    if (n.type == Type::collective) {
      describe_collective(at, m);
      stream = n.group.empty() ? "comm" : "comm " + n.group;
    }
    task.stream = stream_named(stream);
    if (task.kind == GraphTask::Kind::collective) task.communicator = communicator_of(m.meeting);
  }

  void describe_collective(At at, Merged& m) const {
    using enum Collective;
    constexpr Collective by_number[] = {all_reduce, reduce,     all_gather,     gather,         scatter,
                                        broadcast,  all_to_all, reduce_scatter, reduce_scatter, barrier};
    const ChakraNode& n = node(at);
    GraphTask& task = m.task;
    if (n.comm_type < 0 || n.comm_type >= std::ssize(by_number))
      refuse(at, "comm_type {}: expected 0 to {}", n.comm_type, std::ssize(by_number) - 1);
    task.kind = GraphTask::Kind::collective;
    task.operation.collective = by_number[n.comm_type];
    const auto& groups = meetings_[m.meeting].groups;
    const auto size = static_cast<double>(groups.empty() ? files_.size() : groups[0].size());
    task.bytes = static_cast<double>(n.comm_size);
    if (task.operation.collective == all_gather || task.operation.collective == gather) task.bytes *= size;
    if (!carries_data(task.operation.collective)) task.bytes = 0;
    if (static_cast<double>(n.root) >= size) refuse(at, "root_rank {} of a group of {}", n.root, size);
    task.operation.root = static_cast<Rank>(n.root);
  }

  void expect_alike(At first, At other) const {
    const ChakraNode &a = node(first), &b = node(other);
    if (a.comm_size != b.comm_size || a.comm_type != b.comm_type)
      refuse(other, "type {} of {} bytes, where node {} of rank {} has type {} of {}", b.comm_type, b.comm_size, a.id,
             rank_of(first), a.comm_type, a.comm_size);
  }

  void complete(const Merged& m) const {
    const std::size_t expected = meetings_[m.meeting].actors;
    if (m.nodes.size() != expected) refuse(m.nodes.front(), "{} of {} ranks come to it", m.nodes.size(), expected);
  }

  // A message leaves when its sender reaches it. A receive ends when the message has arrived.
  void connect_messages() {
    for (const auto& [key, number] : sends_)
      if (!receives_.contains(key)) refuse(merged_[number].nodes.front(), "nobody receives it");
    for (const auto& [key, number] : receives_) {
      const auto send = sends_.find(key);
      if (send == sends_.end()) refuse(merged_[number].nodes.front(), "nobody sends it");
      const At from = merged_[send->second].nodes.front(), to = merged_[number].nodes.front();
      if (node(from).comm_size != node(to).comm_size)
        refuse(to, "{} bytes, of which {} are sent", node(to).comm_size, node(from).comm_size);
      receiver_.emplace(send->second, to.actor);
      merged_[number].before.emplace_back(to.actor, send->second);
      merged_[send->second].next.push_back(number);
    }
  }

  void connect() {
    connect_messages();
    for (std::uint32_t number = 0; number < merged_.size(); ++number)
      for (const At at : merged_[number].nodes)
        for (std::uint64_t id : node(at).after) {
          const std::uint32_t before = of_node_[at.actor][by_id_[at.actor].at(id)];
          merged_[number].before.emplace_back(at.actor, before);
          merged_[before].next.push_back(number);
        }
    by_id_ = {}, of_node_ = {};
  }

  // Emits the merged nodes in the order in which they would become ready if messages took no time. So none of them
  // waits for a later one.
  void put_in_order() {
    std::vector<std::size_t> waits(merged_.size());
    std::vector<Time> from(merged_.size(), 0);
    using Entry = std::pair<Time, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < merged_.size(); ++i)
      if (waits[i] = merged_[i].before.size(); waits[i] == 0) ready.emplace(0, i);
    std::uint32_t count = 0;
    std::map<std::pair<std::uint32_t, std::uint16_t>, Time> streams;  // when the last one there ends
    while (!ready.empty()) {
      const auto [when, i] = ready.top();
      ready.pop();
      const Merged& m = merged_[i];
      Time start = when;
      if (out_.streams[m.task.stream].ordered) {
        for (const At at : m.nodes) start = std::max(start, streams[{at.actor, m.task.stream}]);
        for (const At at : m.nodes) streams[{at.actor, m.task.stream}] = start + m.task.time;
      }
      for (std::uint32_t next : m.next) {
        from[next] = std::max(from[next], start + m.task.time);
        if (--waits[next] == 0) ready.emplace(from[next], next);
      }
      emit(i, count++);
    }
    if (count == merged_.size()) return;
    const auto stuck = std::ranges::find_if(waits, [](std::size_t w) { return w > 0; }) - waits.begin();
    refuse(merged_[static_cast<std::size_t>(stuck)].nodes.front(), "waits for itself, by way of other ranks");
  }

  // Appends the task to the list of each rank class that takes part; a message's send also to its receiver's list.
  void emit(std::uint32_t i, std::uint32_t number) {
    Merged& m = merged_[i];
    m.task.number = number;
    for (const At at : m.nodes) emit_for(at.actor, m);
    if (const auto receiver = receiver_.find(i); receiver != receiver_.end()) emit_for(receiver->second, m);
  }

  void emit_for(std::uint32_t actor, Merged& m) {
    auto& tasks = out_.classes[actor].tasks;
    m.tasks.emplace_back(actor, static_cast<std::uint32_t>(tasks.size()));
    tasks.push_back(m.task);
    for (auto at = std::ranges::lower_bound(m.before, actor, {}, [](const auto& b) { return b.first; });
         at != m.before.end() && at->first == actor; ++at)
      tasks.back().after.push_back(task_of(merged_[at->second], actor));
  }

  static std::uint32_t task_of(const Merged& m, std::uint32_t actor) {
    if (m.tasks.size() <= 2) return (m.tasks.front().first == actor ? m.tasks.front() : m.tasks.back()).second;
    return std::ranges::lower_bound(m.tasks, actor, {}, [](const auto& t) { return t.first; })->second;
  }

  std::uint16_t stream_named(const std::string& name) {
    const auto found = streams_.find(name);
    if (found != streams_.end()) return found->second;
    if (out_.streams.size() >= most_streams) text::refuse("{}: more than {} process groups", out_.name, most_streams);
    streams_.emplace(name, static_cast<std::uint16_t>(out_.streams.size()));
    out_.streams.push_back({name, name != "messages"});
    return static_cast<std::uint16_t>(out_.streams.size() - 1);
  }

  // Equal groups are one communicator.
  std::uint32_t communicator_of(std::uint32_t meeting) {
    const auto [found, fresh] =
        communicators_.try_emplace(meetings_[meeting].groups, static_cast<std::uint32_t>(communicators_.size()));
    if (fresh) out_.communicators.push_back({fmt::format("group {}", communicators_.size()), found->first});
    return found->second;
  }

  std::span<const ChakraFile> files_;
  std::vector<ChakraRankClass> actors_;
  std::vector<ChakraCommunicator> meetings_;
  bool named_;  // the rank classes name the communicators of their nodes
  ExecutionGraph out_;
  std::map<std::vector<std::vector<Rank>>, std::uint32_t> communicators_;
  std::map<std::string, std::uint16_t> streams_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> by_id_;
  std::vector<std::vector<std::uint32_t>> of_node_;  // by rank class and node: its merged node
  std::map<std::string, std::uint32_t> groups_;      // by process group: its communicator
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> pairs_;
  std::map<Key, std::uint32_t> joined_, sends_, receives_;
  std::unordered_map<std::uint32_t, std::uint32_t> receiver_;  // by send: the rank class that receives it
  std::vector<Merged> merged_;
};

}  // namespace

ExecutionGraph merged_traces(std::string_view name, std::span<const ChakraFile> files,
                             std::vector<ChakraRankClass> actors, std::vector<ChakraCommunicator> meetings) {
  return Merger(name, files, std::move(actors), std::move(meetings)).merge();
}

}  // namespace trellis::sim
