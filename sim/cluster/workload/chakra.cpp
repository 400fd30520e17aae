#include "sim/cluster/workload/chakra.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <stdexcept>
#include <unordered_map>

namespace trellis::sim {
namespace {

using Type = ChakraNode::Type;
using schedule::Collective;
using schedule::GraphTask;

constexpr std::size_t most_streams = 65'535;

// A node of one rank, or the nodes of several ranks that form one collective.
struct Merged {
  std::vector<std::pair<Rank, std::uint32_t>> nodes;  // rank, and index of its node
  Part part;
  std::vector<std::uint32_t> next;  // nodes that wait for it
  std::vector<std::uint32_t> before;
};

class Merger {
 public:
  Merger(std::string_view name, std::span<const ChakraFile> files, std::vector<std::vector<ChakraNode>> nodes)
      : files_(files), nodes_(std::move(nodes)) {
    out_.name = name;
    out_.ranks = static_cast<Rank>(files.size());
    for (Rank r = 0; r < out_.ranks; ++r) out_.classes.push_back({.ranks = {r}});
  }

  ExecutionGraph merge() {
    find_groups();
    for (Rank r = 0; r < out_.ranks; ++r) add_rank(r);
    for (const auto& [key, number] : joined_) complete(merged_[number]);
    connect();
    put_in_order();
    return std::move(out_);
  }

 private:
  // A collective's process group and sequence number there; or a message's ends, tag, and sequence number.
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  const ChakraNode& node(std::pair<Rank, std::uint32_t> at) const {
    return nodes_[static_cast<std::size_t>(at.first)][at.second];
  }

  template <class... T>
  [[noreturn]] void refuse(std::pair<Rank, std::uint32_t> at, fmt::format_string<T...> format, T&&... values) const {
    const ChakraNode& n = node(at);
    const ChakraFile& file = files_[static_cast<std::size_t>(at.first)];
    throw std::invalid_argument(fmt::format("{}, {} {}: node {} ({}): {}", file.name, file.place, n.offset, n.id,
                                            n.name, fmt::format(format, std::forward<T>(values)...)));
  }

  // The members of a process group are the ranks that name it.
  void find_groups() {
    for (Rank r = 0; r < out_.ranks; ++r)
      for (const ChakraNode& n : nodes_[static_cast<std::size_t>(r)])
        if (n.type == Type::collective && !n.group.empty()) {
          auto& members = groups_[n.group];
          if (members.empty() || members.back() != r) members.push_back(r);
        }
  }

  // Topological order of a rank's nodes; among those that are ready the lowest id comes first.
  std::vector<std::uint32_t> order(Rank r) {
    const auto& nodes = nodes_[static_cast<std::size_t>(r)];
    auto& by_id = by_id_.emplace_back();
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      if (!by_id.emplace(nodes[i].id, i).second) refuse({r, i}, "the id of an earlier node");
    std::vector<std::vector<std::uint32_t>> next(nodes.size());
    std::vector<std::size_t> waits(nodes.size());
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
      for (std::uint64_t id : nodes[i].after) {
        const auto found = by_id.find(id);
        if (found == by_id.end()) refuse({r, i}, "waits for node {}, which is not there", id);
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
      refuse({r, static_cast<std::uint32_t>(stuck)}, "waits for itself, by way of others");
    }
    return order;
  }

  void add_rank(Rank r) {
    std::map<Key, std::int64_t> counts;
    auto& own = of_node_.emplace_back(nodes_[static_cast<std::size_t>(r)].size());
    for (std::uint32_t i : order(r)) {
      const ChakraNode& n = node({r, i});
      Key key;
      if (n.type == Type::collective) {
        key = {n.group, -1, -1, -1, 0};
      } else if (n.type == Type::send || n.type == Type::receive) {
        const bool sends = n.type == Type::send;
        const std::int64_t source = sends && n.source < 0 ? r : n.source,
                           target = !sends && n.target < 0 ? r : n.target;
        if ((sends ? source : target) != r || source == target || std::min(source, target) < 0 ||
            std::max(source, target) >= out_.ranks)
          refuse({r, i}, "from {} to {} on rank {} of {}", source, target, r, out_.ranks);
        key = {"", source, target, n.tag, 0};
      }
      std::uint32_t number = static_cast<std::uint32_t>(merged_.size());
      if (n.type == Type::collective || n.type == Type::send || n.type == Type::receive) {
        std::get<4>(key) = counts[key]++;
        auto& joined = n.type == Type::collective ? joined_ : n.type == Type::send ? sends_ : receives_;
        number = joined.try_emplace(key, number).first->second;
      }
      if (number == merged_.size()) {
        merged_.emplace_back();
        describe({r, i}, merged_.back().part);
      } else {
        expect_alike(merged_[number].nodes.front(), {r, i});
      }
      merged_[number].nodes.emplace_back(r, i);
      own[i] = number;
    }
  }

  void describe(std::pair<Rank, std::uint32_t> at, Part& part) const {
    const ChakraNode& n = node(at);
    part.name = n.name.empty() ? fmt::format("node {}", n.id) : n.name;
    part.time = static_cast<Time>(n.micros) * us + static_cast<Time>(n.nanos) * ns;
    part.flops = static_cast<double>(n.operations);
    part.bytes = static_cast<double>(n.tensor_bytes);
    part.stream = !n.stream.empty() ? n.stream : n.on_host ? "host" : "compute";
    if (n.type == Type::load || n.type == Type::store) part.stream = "memory";
    if (part.time > 0 || n.type == Type::metadata) part.flops = part.bytes = 0;
    if (n.type == Type::collective) return describe_collective(at, part);
    if (n.type == Type::receive) part.flops = part.bytes = 0, part.time = 0, part.stream = "messages";
    if (n.type != Type::send) return;
    part.kind = Part::Kind::collective;
    part.collective = Collective::send_recv;
    part.bytes = static_cast<double>(n.comm_size);
    part.stream = "messages";
    part.root = 0, part.peer = 1;
    part.members = {at.first, static_cast<Rank>(n.target)};
  }

  void describe_collective(std::pair<Rank, std::uint32_t> at, Part& part) const {
    using enum Collective;
    constexpr Collective by_number[] = {all_reduce, reduce,     all_gather,     gather,         scatter,
                                        broadcast,  all_to_all, reduce_scatter, reduce_scatter, barrier};
    const ChakraNode& n = node(at);
    if (n.comm_type < 0 || n.comm_type >= std::ssize(by_number))
      refuse(at, "comm_type {}: expected 0 to {}", n.comm_type, std::ssize(by_number) - 1);
    part.kind = Part::Kind::collective;
    part.collective = by_number[n.comm_type];
    part.stream = n.group.empty() ? "comm" : "comm " + n.group;
    if (!n.group.empty()) part.members = groups_.at(n.group);
    if (static_cast<Rank>(part.members.size()) == out_.ranks) part.members.clear();
    const auto size = static_cast<double>(part.members.empty() ? files_.size() : part.members.size());
    part.bytes = static_cast<double>(n.comm_size);
    if (part.collective == all_gather || part.collective == gather) part.bytes *= size;
    if (!carries_data(part.collective)) part.bytes = 0;
    if (static_cast<double>(n.root) >= size) refuse(at, "root_rank {} of a group of {}", n.root, size);
    part.root = static_cast<Rank>(n.root);
  }

  void expect_alike(std::pair<Rank, std::uint32_t> first, std::pair<Rank, std::uint32_t> other) const {
    const ChakraNode &a = node(first), &b = node(other);
    if (a.comm_size != b.comm_size || a.comm_type != b.comm_type)
      refuse(other, "type {} of {} bytes, where node {} of rank {} has type {} of {}", b.comm_type, b.comm_size, a.id,
             first.first, a.comm_type, a.comm_size);
  }

  void complete(const Merged& m) const {
    const std::size_t expected = m.part.members.empty() ? files_.size() : m.part.members.size();
    if (m.nodes.size() != expected) refuse(m.nodes.front(), "{} of {} ranks come to it", m.nodes.size(), expected);
  }

  // A message leaves when its sender reaches it. A receive ends when the message has arrived.
  void connect_messages() {
    for (const auto& [key, number] : sends_)
      if (!receives_.contains(key)) refuse(merged_[number].nodes.front(), "nobody receives it");
    for (const auto& [key, number] : receives_) {
      const auto send = sends_.find(key);
      if (send == sends_.end()) refuse(merged_[number].nodes.front(), "nobody sends it");
      const ChakraNode &sent = node(merged_[send->second].nodes.front()),
                       &received = node(merged_[number].nodes.front());
      if (sent.comm_size != received.comm_size)
        refuse(merged_[number].nodes.front(), "{} bytes, of which {} are sent", received.comm_size, sent.comm_size);
      merged_[number].before.push_back(send->second);
      merged_[send->second].next.push_back(number);
    }
  }

  void connect() {
    connect_messages();
    for (std::uint32_t number = 0; number < merged_.size(); ++number)
      for (const auto& at : merged_[number].nodes)
        for (std::uint64_t id : node(at).after) {
          const std::uint32_t before =
              of_node_[static_cast<std::size_t>(at.first)][by_id_[static_cast<std::size_t>(at.first)].at(id)];
          merged_[number].before.push_back(before);
          merged_[before].next.push_back(number);
        }
  }

  // The order in which parts become ready if messages took no time. No part can then wait for a later one.
  void put_in_order() {
    std::vector<std::size_t> waits(merged_.size());
    std::vector<Time> from(merged_.size(), 0);
    using Entry = std::pair<Time, std::uint32_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < merged_.size(); ++i)
      if (waits[i] = merged_[i].before.size(); waits[i] == 0) ready.emplace(0, i);
    std::uint32_t count = 0;
    std::map<std::pair<std::uint32_t, std::string>, Time> streams;  // when the last one there ends
    task_of_.assign(merged_.size(), {});
    while (!ready.empty()) {
      const auto [when, i] = ready.top();
      ready.pop();
      const Merged& m = merged_[i];
      Time start = when;
      if (m.part.stream != "messages")
        for (const auto& at : m.nodes)
          start = std::max(start, streams[{static_cast<std::uint32_t>(at.first), m.part.stream}]);
      for (const auto& at : m.nodes)
        if (m.part.stream != "messages")
          streams[{static_cast<std::uint32_t>(at.first), m.part.stream}] = start + m.part.time;
      for (std::uint32_t next : m.next) {
        from[next] = std::max(from[next], start + m.part.time);
        if (--waits[next] == 0) ready.emplace(from[next], next);
      }
      emit(i, count++);
    }
    if (count == merged_.size()) return;
    const auto stuck = std::ranges::find_if(waits, [](std::size_t w) { return w > 0; }) - waits.begin();
    refuse(merged_[static_cast<std::size_t>(stuck)].nodes.front(), "waits for itself, by way of other ranks");
  }

  // Writes the part down for each of its ranks.
  void emit(std::uint32_t i, std::uint32_t number) {
    const Merged& m = merged_[i];
    const Part& part = m.part;
    GraphTask task{.kind = part.kind == Part::Kind::compute ? GraphTask::Kind::compute : GraphTask::Kind::collective,
                   .name = part.name,
                   .stream = stream_named(part.stream),
                   .number = number,
                   .time = part.time,
                   .flops = part.flops,
                   .bytes = part.bytes,
                   .collective = part.collective,
                   .root = part.root,
                   .peer = part.peer};
    if (part.kind == Part::Kind::collective) task.communicator = communicator_of(part.members);
    std::vector<Rank> ranks;
    for (const auto& at : m.nodes) ranks.push_back(at.first);
    if (part.kind == Part::Kind::collective && part.stream == "messages") ranks = part.members;
    for (Rank r : ranks) {
      task.after.clear();
      for (std::uint32_t before : m.before)
        if (const auto found = task_of_[before].find(r); found != task_of_[before].end())
          task.after.push_back(found->second);
      auto& tasks = out_.classes[static_cast<std::size_t>(r)].tasks;
      task_of_[i].emplace(r, static_cast<std::uint32_t>(tasks.size()));
      tasks.push_back(task);
    }
  }

  std::uint16_t stream_named(const std::string& name) {
    const auto found = std::ranges::find(out_.streams, name, &schedule::GraphStream::name);
    if (found != out_.streams.end()) return static_cast<std::uint16_t>(found - out_.streams.begin());
    if (out_.streams.size() >= most_streams)
      throw std::invalid_argument(fmt::format("{}: more than {} process groups", out_.name, most_streams));
    out_.streams.push_back({name, name != "messages"});
    return static_cast<std::uint16_t>(out_.streams.size() - 1);
  }

  std::uint32_t communicator_of(const std::vector<Rank>& members) {
    const auto [found, fresh] = communicators_.try_emplace(members, static_cast<std::uint32_t>(communicators_.size()));
    if (fresh) {
      out_.communicators.push_back({fmt::format("group {}", communicators_.size())});
      if (!members.empty()) out_.communicators.back().groups.push_back(members);
    }
    return found->second;
  }

  std::span<const ChakraFile> files_;
  ExecutionGraph out_;
  std::vector<std::map<Rank, std::uint32_t>> task_of_;  // by part and rank
  std::map<std::vector<Rank>, std::uint32_t> communicators_;
  std::vector<std::vector<ChakraNode>> nodes_;
  std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> by_id_;
  std::vector<std::vector<std::uint32_t>> of_node_;  // the merged node of each node
  std::map<std::string, std::vector<Rank>> groups_;
  std::map<Key, std::uint32_t> joined_, sends_, receives_;
  std::vector<Merged> merged_;
};

}  // namespace

ExecutionGraph read_chakra(std::string_view name, std::span<const ChakraFile> files) {
  if (files.empty()) throw std::invalid_argument(fmt::format("{}: no file of a rank's", name));
  std::vector<std::vector<ChakraNode>> nodes;
  for (const ChakraFile& file : files) nodes.push_back(read_chakra_nodes(file));
  return Merger(name, files, std::move(nodes)).merge();
}

ExecutionGraph graph_of_traces(std::string_view name, std::span<const ChakraFile> files,
                               std::vector<std::vector<ChakraNode>> nodes) {
  return Merger(name, files, std::move(nodes)).merge();
}

}  // namespace trellis::sim
