#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "schedule/algorithms/algorithm_config.h"
#include "schedule/graph/operation_text.h"
#include "sim/cluster/workload/text_amounts.h"
#include "sim/cluster/workload/workload.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"

namespace trellis::sim {
namespace {

constexpr Rank most_ranks = 1 << 21;
constexpr std::size_t most_parts = std::size_t{1} << 22;
constexpr std::size_t most_waits = std::size_t{1} << 24;
constexpr std::size_t most_streams = 65'535;
constexpr std::size_t most_named = std::size_t{1} << 26;  // ranks in groups, all lines together

using schedule::GraphTask;
using Group = std::vector<Rank>;
using Groups = std::vector<Group>;
using Words = std::vector<std::string_view>;

// A parsed line, before ranks are split into classes.
struct Line {
  int number = 0;
  GraphTask task;  // without stream, communicator and dependencies
  std::string_view stream;
  std::size_t groups = 0;
  std::vector<std::string_view> after = {};
};

Rank rank_of(std::string_view word, Rank below, std::string_view what) {
  const auto value = text::number<Rank>(word, 0, below - 1);
  if (!value) text::refuse("'{}' as {}: expected 0 to {}", word, what, below - 1);
  return *value;
}

// "0,5,7-9,16-30:2"
Group group_of(std::string_view word, Rank ranks) {
  Group group;
  for (std::string_view part : text::split(word, ',')) {
    Rank step = 1;
    if (const std::size_t colon = part.find(':'); colon != part.npos) {
      step = rank_of(part.substr(colon + 1), most_ranks, "a distance between ranks");
      if (step == 0) text::refuse("'{}': expected a distance of at least 1", part);
      part = part.substr(0, colon);
    }
    const std::size_t dash = part.find('-');
    const Rank first = rank_of(part.substr(0, dash), ranks, "a rank");
    const Rank last = dash == part.npos ? first : rank_of(part.substr(dash + 1), ranks, "a rank");
    if (last < first) text::refuse("'{}': expected the lower rank first", part);
    if (group.size() > static_cast<std::size_t>(ranks)) text::refuse("'{}': names some rank twice", word);
    for (Rank r = first; r <= last; r += step) {
      group.push_back(r);
      if (r > last - step) break;
    }
  }
  return group;
}

class Reader {
 public:
  ExecutionGraph read(std::string_view name, std::string_view text) {
    out_.name = name;
    for (const std::string_view line : text::split(text, '\n')) {
      ++line_;
      guarded([&] { take(text::words_before_comment(line)); });
    }
    if (ranks_ == 0) text::refuse("{}: expected a line 'ranks N'", name);
    find_classes();
    for (Line& line : lines_) {
      line_ = line.number;
      guarded([&] { place(line); });
    }
    return std::move(out_);
  }

 private:
  template <class F>
  void guarded(F&& work) {
    try {
      work();
    } catch (const std::invalid_argument& error) {
      text::refuse("{}, line {}: {}", out_.name, line_, error.what());
    }
  }

  void take(const Words& words) {
    if (words.empty()) return;
    if (words[0] == "ranks") {
      if (ranks_ != 0) text::refuse("'ranks' a second time");
      if (words.size() != 2) text::refuse("expected: ranks N");
      ranks_ = rank_of(words[1], most_ranks, "a number of ranks");
      if (ranks_ == 0) text::refuse("'0' as a number of ranks: expected 1 to {}", most_ranks - 1);
      out_.ranks = ranks_;
      all_ = groups_number({});
      return;
    }
    if (ranks_ == 0) text::refuse("'{}': expected 'ranks N' first", words[0]);
    if (words[0] == "group") {
      if (words.size() < 3) text::refuse("expected: group NAME RANKS...");
      Groups groups;
      for (std::size_t i = 2; i < words.size(); ++i) groups.push_back(group_of(words[i], ranks_));
      if (!named_.emplace(words[1], groups_number(std::move(groups))).second)
        text::refuse("'{}' is the name of an earlier group", words[1]);
      return;
    }
    if (words[0] == "operation") {
      if (words.size() < 3) text::refuse("expected: operation NAME KIND rows=N columns=N ...");
      if (!operations_.emplace(words[1], static_cast<std::uint32_t>(out_.shapes.size())).second)
        text::refuse("'{}' is the name of an earlier operation", words[1]);
      out_.shapes.push_back(schedule::read_operation(std::span(words).subspan(2)));
      return;
    }
    take_task(words);
  }

  // "NAME" or "NAME*COUNT" of an operation.
  bool add_operation(std::string_view word, GraphTask& part) const {
    const std::size_t star = word.find('*');
    const auto found = operations_.find(word.substr(0, star));
    if (found == operations_.end()) return false;
    const std::string_view count = star == word.npos ? "1" : word.substr(star + 1);
    const auto number = text::number<std::uint32_t>(count, 1, most_parts);
    if (!number) text::refuse("'{}': expected a count from 1 to {} after *", word, most_parts);
    part.work.push_back({found->second, *number});
    return true;
  }

  void take_task(const Words& words) {
    if (words.size() < 2) text::refuse("'{}': expected a name after it", words[0]);
    if (is_key(words[1])) text::refuse("'{}' is no name for a task", words[1]);
    Line line;
    line.number = line_, line.groups = all_;
    GraphTask& part = line.task;
    part.name = words[1];
    std::size_t at = 2;
    if (words[0] == "compute") {
      line.stream = "compute";
      while (at < words.size() && (add_operation(words[at], part) || add_typed_work(words[at], part))) ++at;
      if (at == 2)
        text::refuse("compute {}: expected a time, or FLOPs and bytes, as in 120us or 1.2TFLOP 300MB", words[1]);
    } else {
      part.kind = GraphTask::Kind::collective;
      line.stream = "comm";
      part.operation.collective = schedule::collective_named(words[0]);
      if (uneven(part.operation.collective))
        text::refuse("{}: its counts differ by rank, which this form has no words for", words[0]);
      if (carries_data(part.operation.collective)) {
        if (at == words.size()) text::refuse("{} {}: expected bytes, as in 64MB", words[0], words[1]);
        part.bytes = typed_bytes(words[at++]);
      }
      if (part.operation.collective == schedule::Collective::send_recv) take_ends(words, at, line);
    }
    take_rest(words, at, line);
    if (!names_.insert(words[1]).second) text::refuse("'{}' is the name of an earlier task", words[1]);
    lines_.push_back(std::move(line));
  }

  void take_ends(const Words& words, std::size_t& at, Line& line) {
    if (words.size() < at + 4 || words[at] != "from" || words[at + 2] != "to")
      text::refuse("send_recv {}: expected BYTES from RANK to RANK", words[1]);
    const Group from = group_of(words[at + 1], ranks_), to = group_of(words[at + 3], ranks_);
    if (from.size() != to.size())
      text::refuse("send_recv from {} ranks to {}: expected as many, each of which gets one's message", from.size(),
                   to.size());
    Groups pairs;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] == to[i]) text::refuse("send_recv from {} to itself", from[i]);
      pairs.push_back({from[i], to[i]});
    }
    line.groups = groups_number(std::move(pairs));
    line.task.operation.peer = 1;
    at += 4;
  }

  void take_rest(const Words& words, std::size_t at, Line& line) {
    const bool collective = line.task.kind == GraphTask::Kind::collective;
    while (at < words.size()) {
      const std::string_view key = words[at++];
      if (key == "after") {
        while (at < words.size() && names_.contains(words[at])) line.after.push_back(words[at++]);
        if (line.after.empty() || (at < words.size() && !is_key(words[at])))
          text::refuse("after '{}': expected the names of earlier tasks", at < words.size() ? words[at] : "");
        continue;
      }
      if (!is_key(key) || (!collective && (key == "by" || key == "root")))
        text::refuse("'{}': expected {}", key, collective ? "on, after, stream, by or root" : "on, after or stream");
      if (at == words.size()) text::refuse("'{}': expected a value after it", key);
      std::string_view value = words[at++];
      if (key == "by") {
        value = schedule::config_at_start_of({value.data(), words.back().data() + words.back().size()});
        while (at < words.size() && words[at].data() < value.data() + value.size()) ++at;
      }
      if (key == "stream") line.stream = value;
      if (key == "by") line.task.algorithm = value;
      if (key == "on") line.groups = groups_named(value, line.task);
      if (key == "root") {
        if (!rooted(line.task.operation.collective) ||
            line.task.operation.collective == schedule::Collective::send_recv)
          text::refuse("'root': {} has none", name(line.task.operation.collective));
        line.task.operation.root = rank_of(value, ranks_, "a root");
      }
    }
  }

  static bool is_key(std::string_view word) {
    return word == "on" || word == "after" || word == "stream" || word == "by" || word == "root";
  }

  std::size_t groups_named(std::string_view word, const GraphTask& part) {
    if (part.kind == GraphTask::Kind::collective && part.operation.collective == schedule::Collective::send_recv)
      text::refuse("'on {}': send_recv names its ranks", word);
    if (const auto found = named_.find(word); found != named_.end()) return found->second;
    if (word[0] < '0' || word[0] > '9') {
      std::vector<std::string_view> known;
      for (const auto& [group, number] : named_) known.push_back(group);
      text::refuse("'{}': expected a group ({}) or ranks, as in 0-3", word, fmt::join(known, ", "));
    }
    return groups_number({group_of(word, ranks_)});
  }

  // Equal groups get the same number. No group means all ranks.
  std::size_t groups_number(Groups groups) {
    std::vector<bool> seen(groups.empty() ? 0 : static_cast<std::size_t>(ranks_), false);
    for (const Group& group : groups)
      for (Rank r : group) {
        if (seen[static_cast<std::size_t>(r)])
          text::refuse("rank {} stands twice in a group, or in two of one name", r);
        seen[static_cast<std::size_t>(r)] = true;
      }
    named_ranks_ += seen.size();
    if (named_ranks_ > most_named) text::refuse("more than {} ranks in groups, counted again in each", most_named);
    const auto [found, fresh] = numbers_.try_emplace(std::move(groups), groups_.size());
    if (fresh) groups_.push_back(&found->first);
    return found->second;
  }

  // Ranks in the same groups form a class.
  void find_classes() {
    class_of_.assign(static_cast<std::size_t>(ranks_), 0);
    std::unordered_set<std::size_t> used;
    for (const Line& line : lines_) used.insert(line.groups);
    for (std::size_t number = 0; number < groups_.size(); ++number) {
      if (!used.contains(number)) continue;
      std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> split;
      std::vector<std::uint32_t> place(class_of_.size(), 0);
      std::uint32_t index = 0;
      for (const Group& group : *groups_[number]) {
        ++index;
        for (Rank r : group) place[static_cast<std::size_t>(r)] = index;
      }
      for (std::size_t r = 0; r < class_of_.size(); ++r)
        class_of_[r] =
            split.try_emplace({class_of_[r], place[r]}, static_cast<std::uint32_t>(split.size())).first->second;
    }
    for (std::size_t r = 0; r < class_of_.size(); ++r) {
      if (class_of_[r] >= out_.classes.size()) out_.classes.resize(class_of_[r] + 1);
      out_.classes[class_of_[r]].ranks.push_back(static_cast<Rank>(r));
    }
  }

  void place(const Line& line) {
    if (groups_[line.groups]->empty()) {
      std::vector<std::uint32_t> every(out_.classes.size());
      for (std::uint32_t c = 0; c < every.size(); ++c) every[c] = c;
      return place_on(line, every, ranks_);
    }
    for (const Group& group : *groups_[line.groups]) {
      std::vector<std::uint32_t> classes;
      for (Rank r : group) classes.push_back(class_of_[static_cast<std::size_t>(r)]);
      std::ranges::sort(classes);
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
      place_on(line, classes, static_cast<Rank>(group.size()));
    }
  }

  void place_on(const Line& line, const std::vector<std::uint32_t>& classes, Rank size) {
    if (line.task.operation.root >= size) text::refuse("root {} of a group of {}", line.task.operation.root, size);
    if (line.task.kind == GraphTask::Kind::collective) return add(line, classes);
    for (std::uint32_t c : classes) add(line, {c});
  }

  std::uint16_t stream_named(std::string_view name) {
    const auto [found, fresh] = streams_.try_emplace(name, static_cast<std::uint16_t>(out_.streams.size()));
    if (fresh && out_.streams.size() >= most_streams) text::refuse("more than {} streams", most_streams);
    if (fresh) out_.streams.push_back({std::string(name)});
    return found->second;
  }

  std::uint32_t communicator_of(std::size_t groups) {
    const auto [found, fresh] = communicators_.try_emplace(groups, static_cast<std::uint32_t>(communicators_.size()));
    if (fresh) out_.communicators.push_back({fmt::format("groups {}", groups), *groups_[groups]});
    return found->second;
  }

  void add(const Line& line, const std::vector<std::uint32_t>& classes) {
    GraphTask task = line.task;
    task.stream = stream_named(line.stream);
    if (task.kind == GraphTask::Kind::collective) task.communicator = communicator_of(line.groups);
    if (count_ >= most_parts) refuse_so_many();
    task.number = static_cast<std::uint32_t>(count_++);
    auto& own = tasks_of_[line.task.name];
    std::vector<std::vector<std::uint32_t>> after(classes.size());
    for (std::string_view before : line.after) {
      const auto& earlier = tasks_of_.find(before)->second;
      bool any = false;
      for (std::size_t i = 0; i < classes.size(); ++i)
        if (const auto found = earlier.find(classes[i]); found != earlier.end())
          after[i].push_back(found->second), any = true;
      if (!any) text::refuse("'{}' waits for '{}', in which none of its ranks takes part", task.name, before);
    }
    for (std::size_t i = 0; i < classes.size(); ++i) {
      auto& tasks = out_.classes[classes[i]].tasks;
      waits_ += after[i].size() + 1;
      task.after = std::move(after[i]);
      own.emplace(classes[i], static_cast<std::uint32_t>(tasks.size()));
      tasks.push_back(task);
    }
    if (waits_ > most_waits) refuse_so_many();
  }

  [[noreturn]] static void refuse_so_many() {
    text::refuse(
        "more tasks than {}, counted by ranks that do different things: expected a smaller graph. A training step of "
        "any size is priced from its configuration: trellis train price CONFIG --machine MACHINE",
        most_parts);
  }

  ExecutionGraph out_;
  int line_ = 0;
  Rank ranks_ = 0;
  std::size_t all_ = 0;
  std::size_t waits_ = 0, named_ranks_ = 0, count_ = 0;
  std::map<Groups, std::size_t> numbers_;
  std::vector<const Groups*> groups_;
  std::map<std::string_view, std::size_t, std::less<>> named_;
  std::map<std::string_view, std::uint32_t, std::less<>> operations_;
  std::unordered_set<std::string_view> names_;
  std::vector<Line> lines_;
  std::vector<std::uint32_t> class_of_;
  std::map<std::size_t, std::uint32_t> communicators_;
  std::map<std::string_view, std::uint16_t> streams_;
  // By a task's name and a class: the index among the class's tasks.
  std::map<std::string, std::unordered_map<std::uint32_t, std::uint32_t>, std::less<>> tasks_of_;
};

}  // namespace

ExecutionGraph read_graph(std::string_view name, std::string_view text) { return Reader().read(name, text); }

}  // namespace trellis::sim
