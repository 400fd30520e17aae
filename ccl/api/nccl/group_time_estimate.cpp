#include "ccl/api/nccl/group_time_estimate.h"

#include <algorithm>
#include <compare>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <set>

#include "ccl/api/nccl/nccl_error.h"
#include "sim/cluster/simulate.h"

namespace trellis::nccl {
namespace {

struct Message {
  int source, target;
  std::size_t bytes;
  auto operator<=>(const Message&) const = default;
};

// A communicator. Each of its ranks in this process has a handle of its own.
struct Members {
  int ranks = 0;
  std::vector<std::pair<trellis_comm, int>> handles = {};  // with the rank
  std::vector<EstimatedCall> collectives = {};             // of the first handle
  std::multiset<Message> sent = {}, received = {};

  bool has(int rank) const {
    return std::ranges::any_of(handles, [&](const auto& one) { return one.second == rank; });
  }
};

// Finds the communicator of the call's handle, or adds it. Handles are taken to be of one communicator if their numbers
// of ranks are equal and their ranks differ.
Members& members_of(std::vector<Members>& all, const EstimatedCall& call) {
  for (Members& m : all)
    if (std::ranges::find(m.handles, std::pair(call.comm, call.place.rank)) != m.handles.end()) return m;
  const auto open = [&](const Members& m) { return m.ranks == call.place.ranks && !m.has(call.place.rank); };
  auto found = std::ranges::find_if(all, open);
  if (found == all.end()) found = all.insert(all.end(), Members{.ranks = call.place.ranks});
  found->handles.emplace_back(call.comm, call.place.rank);
  return *found;
}

std::vector<Members> all_members(const std::vector<EstimatedCall>& calls) {
  std::vector<Members> all;
  for (const EstimatedCall& call : calls) {
    Members& m = members_of(all, call);
    if (call.collective != TRELLIS_SEND_RECV) {
      if (m.handles.front().first == call.comm) m.collectives.push_back(call);
    } else if (call.other != call.place.rank) {
      const int source = call.sends ? call.place.rank : call.other, target = call.sends ? call.other : call.place.rank;
      (call.sends ? m.sent : m.received).insert({source, target, call.bytes});
    }
  }
  return all;
}

// The text of a workload: see sim/cluster/workload/workload.h.
class Text {
 public:
  explicit Text(int ranks) : text_(fmt::format("ranks {}\n", ranks)) {}

  void add(const Members& m) {
    after_.clear();
    messages(m);
    const std::string stream = fmt::format(" stream c{}", tasks_);
    for (const EstimatedCall& call : m.collectives) {
      const bool rooted = call.collective == TRELLIS_BROADCAST || call.collective == TRELLIS_REDUCE ||
                          call.collective == TRELLIS_GATHER || call.collective == TRELLIS_SCATTER;
      collective(trellis_collective_name(call.collective), call.bytes, m.ranks,
                 (rooted ? fmt::format(" root {}", call.other) : "") + after_ + stream);
    }
  }
  int tasks() const { return tasks_; }
  const std::string& text() const { return text_; }

 private:
  void collective(const char* name, std::size_t bytes, int ranks, const std::string& rest) {
    if (bytes > 0 && ranks > 1) text_ += fmt::format("{} t{} {}B on 0-{}{}\n", name, tasks_++, bytes, ranks - 1, rest);
  }

  // Messages start at once, each on its own stream; collectives start after them.
  void message(const std::string& from, const std::string& to, std::size_t bytes) {
    if (bytes == 0) return;
    text_ += fmt::format("send_recv t{} {}B from {} to {} stream m{}\n", tasks_, bytes, from, to, tasks_);
    after_ += fmt::format("{} t{}", after_.empty() ? " after" : "", tasks_++);
  }

  void messages(const Members& m) {
    std::multiset<Message> rest;
    std::ranges::set_union(m.sent, m.received, std::inserter(rest, rest.end()));
    if (m.handles.size() == 1) {
      const int rank = m.handles.front().second;
      std::vector<std::pair<int, std::size_t>> shifts;
      for (const Message& s : m.sent) {
        const int by = (s.target - rank + m.ranks) % m.ranks;
        const auto back = rest.find({(rank - by + m.ranks) % m.ranks, rank, s.bytes});
        if (back == rest.end()) continue;
        rest.erase(back);
        rest.erase(rest.find(s));
        shifts.emplace_back(by, s.bytes);
      }
      all_do(shifts, m.ranks);
    }
    for (const Message& one : rest) message(std::to_string(one.source), std::to_string(one.target), one.bytes);
  }

  // Equal messages to every other rank are written as one all_to_all.
  void all_do(std::vector<std::pair<int, std::size_t>> shifts, int ranks) {
    std::ranges::sort(shifts);
    bool to_all = static_cast<int>(shifts.size()) == ranks - 1 && ranks > 2;
    for (std::size_t i = 0; i < shifts.size(); ++i)
      to_all = to_all && shifts[i] == std::pair(static_cast<int>(i) + 1, shifts[0].second);
    if (to_all) {
      const std::string after = fmt::format(" after t{}", tasks_);
      collective("all_to_all", shifts[0].second * static_cast<std::size_t>(ranks), ranks,
                 fmt::format(" stream m{}", tasks_));
      after_ = shifts[0].second > 0 ? after : "";
      return;
    }
    for (const auto& [by, bytes] : shifts) shift(by, bytes, ranks);
  }

  // Writes a message from every rank to the rank `by` places further, in up to three rounds: in each of them, a rank is
  // in at most one message.
  void shift(int by, std::size_t bytes, int ranks) {
    const int cycle = ranks / std::gcd(ranks, by);
    std::string from[3], to[3];
    for (int start = 0; start < ranks / cycle; ++start)
      for (int step = 0; step < cycle; ++step) {
        const int place = (start + step * by) % ranks, round = step == cycle - 1 && cycle % 2 == 1 ? 2 : step % 2;
        from[round] += fmt::format("{}{}", from[round].empty() ? "" : ",", place);
        to[round] += fmt::format("{}{}", to[round].empty() ? "" : ",", (place + by) % ranks);
      }
    for (int round = 0; round < 3; ++round)
      if (!from[round].empty()) message(from[round], to[round], bytes);
  }

  std::string text_;
  std::string after_ = {};  // the messages of the communicator: " after t0 t1"
  int tasks_ = 0;
};

}  // namespace

float estimate(const std::vector<EstimatedCall>& calls) {
  const char* machine = std::getenv("TRELLIS_SIMULATE");  // NOLINT(concurrency-mt-unsafe): nothing here changes it
  if (machine == nullptr || *machine == '\0' || calls.empty()) return NCCL_UNDEF_FLOAT;
  const std::vector<Members> all = all_members(calls);
  Text text(std::ranges::max_element(all, {}, &Members::ranks)->ranks);
  for (const Members& m : all) text.add(m);
  if (text.tasks() == 0) return 0;
  try {
    return static_cast<float>(1e6 * workload_seconds(text.text(), machine));
  } catch (const std::exception& failed) {
    refuse_usage("TRELLIS_SIMULATE={}: {}", machine, failed.what());
  }
}

}  // namespace trellis::nccl
