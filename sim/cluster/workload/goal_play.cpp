// LogGOPS: what LogGOPSim computes of a program, event by event.

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <tuple>

#include "sim/cluster/workload/loggopsim_goal.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using Kind = GoalOperation::Kind;

// A message on its way, or an operation that can begin.
struct Event {
  double time = 0;
  std::uint64_t number = 0;  // of events at one time, the first one made comes first
  std::uint32_t rank = 0;
  std::uint32_t operation = 0;  // of the rank; of a message: of its sender
  bool message = false;
  std::uint32_t sender = 0;
  bool operator>(const Event& other) const { return std::tie(time, number) > std::tie(other.time, other.number); }
};

struct Waiting {
  std::int64_t source, tag;
  std::uint32_t operation;  // of a message: of its sender
};

struct Host {
  std::vector<double> cpu, out, in;          // when each CPU, and each interface each way, is free
  std::deque<Waiting> receives, unexpected;  // not matched yet
  std::vector<std::uint32_t> left;           // of each operation: how many others it waits for
  std::vector<std::vector<std::uint32_t>> next, next_begun;
};

class Player {
 public:
  Player(const GoalProgram& goal, const LogGops& p) : goal_(goal), p_(p), hosts_(goal.ranks.size()) {
    for (std::uint32_t r = 0; r < hosts_.size(); ++r) prepare(r);
  }

  std::vector<double> run() {
    for (; !events_.empty();) {
      const Event e = events_.top();
      events_.pop();
      if (e.message)
        arrive(e);
      else if (const GoalOperation& o = goal_.ranks[e.rank][e.operation]; o.kind == Kind::compute)
        compute(e, o);
      else if (o.kind == Kind::send)
        send(e, o);
      else
        receive(e, o);
    }
    expect_done();
    std::vector<double> ends;
    for (const Host& h : hosts_) ends.push_back(*std::ranges::max_element(h.cpu));
    return ends;
  }

 private:
  void prepare(std::uint32_t r) {
    Host& h = hosts_[r];
    const auto& all = goal_.ranks[r];
    std::uint32_t cpus = 1, nics = 1;
    h.left.resize(all.size()), h.next.resize(all.size()), h.next_begun.resize(all.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      cpus = std::max(cpus, all[i].cpu + 1), nics = std::max(nics, all[i].nic + 1);
      h.left[i] = static_cast<std::uint32_t>(all[i].after.size() + all[i].with.size());
      for (const std::uint32_t before : all[i].after) h.next[before].push_back(i);
      for (const std::uint32_t before : all[i].with) h.next_begun[before].push_back(i);
    }
    h.cpu.assign(cpus, 0), h.out.assign(nics, 0), h.in.assign(nics, 0);
    std::vector<std::uint32_t> free;
    for (std::uint32_t i = 0; i < all.size(); ++i)
      if (h.left[i] == 0) free.push_back(i);
    begin(r, free);
  }

  // Sends go before receives and computations, as in LogGOPSim. There the order of equals is whatever std::sort makes
  // it, so this uses std::sort, too.
  void begin(std::uint32_t r, std::vector<std::uint32_t>& free) {
    const auto order = [&](std::uint32_t i) {
      const Kind kind = goal_.ranks[r][i].kind;
      return kind == Kind::send ? 0 : kind == Kind::receive ? 1 : 2;
    };
    std::sort(free.begin(), free.end(), [&](auto a, auto b) { return order(a) < order(b); });
    for (const std::uint32_t i : free) {
      const GoalOperation& o = goal_.ranks[r][i];
      double from = hosts_[r].cpu[o.cpu];
      if (o.kind == Kind::send) from = std::max(from, hosts_[r].out[o.nic]);
      push({.time = from, .rank = r, .operation = i});
    }
    free.clear();
  }

  void push(Event e) {
    e.number = made_++;
    events_.push(e);
  }

  void begun(std::uint32_t r, std::uint32_t i) { release(hosts_[r], hosts_[r].next_begun[i]); }
  void done(std::uint32_t r, std::uint32_t i) { release(hosts_[r], hosts_[r].next[i]); }
  void release(Host& h, const std::vector<std::uint32_t>& waiting) {
    for (const std::uint32_t i : waiting)
      if (--h.left[i] == 0) free_[static_cast<std::uint32_t>(&h - hosts_.data())].push_back(i);
  }
  void begin_freed() {
    for (auto& [rank, free] : free_) begin(rank, free);
    free_.clear();
  }

  void again(Event e, double when) {
    e.time = when;
    events_.push(e);
  }

  void compute(const Event& e, const GoalOperation& o) {
    double& cpu = hosts_[e.rank].cpu[o.cpu];
    if (cpu > e.time) return again(e, cpu);
    cpu = e.time + static_cast<double>(o.amount);
    begun(e.rank, e.operation);
    done(e.rank, e.operation);
    begin_freed();
  }

  double more(const GoalOperation& o) const { return std::max<double>(0, static_cast<double>(o.amount) - 1); }

  void send(const Event& e, const GoalOperation& o) {
    double &cpu = hosts_[e.rank].cpu[o.cpu], &out = hosts_[e.rank].out[o.nic];
    if (std::max(cpu, out) > e.time) return again(e, std::max(cpu, out));
    cpu = e.time + p_.o + more(o) * p_.O;
    out = e.time + p_.g + more(o) * p_.G;
    begun(e.rank, e.operation);
    push({.time = e.time + p_.o + p_.L,
          .rank = static_cast<std::uint32_t>(o.peer),
          .operation = e.operation,
          .message = true,
          .sender = e.rank});
    if (static_cast<double>(o.amount) <= p_.S) done(e.rank, e.operation);
    begin_freed();
  }

  // The sender of a large message may go on when it is received.
  void let_sender_go(std::uint32_t sender, std::uint32_t operation, double now) {
    const GoalOperation& o = goal_.ranks[sender][operation];
    if (static_cast<double>(o.amount) <= p_.S) return;
    Host& h = hosts_[sender];
    h.cpu[o.cpu] = std::max(h.cpu[o.cpu], now);
    h.out[o.nic] = std::max(h.out[o.nic], now);
    done(sender, operation);
  }

  void receive(const Event& e, const GoalOperation& o) {
    begun(e.rank, e.operation);
    auto& waiting = hosts_[e.rank].unexpected;
    const auto found = std::ranges::find_if(waiting, [&](const Waiting& w) {
      return (o.peer < 0 || w.source == o.peer) && (o.tag < 0 || w.tag < 0 || w.tag == o.tag);
    });
    if (found == waiting.end()) {
      hosts_[e.rank].receives.push_back({o.peer, o.tag, e.operation});
    } else {
      const Waiting matched = *found;
      waiting.erase(found);
      let_sender_go(static_cast<std::uint32_t>(matched.source), matched.operation, e.time);
      done(e.rank, e.operation);
    }
    begin_freed();
  }

  void arrive(const Event& e) {
    const GoalOperation& o = goal_.ranks[e.sender][e.operation];
    Host& h = hosts_[e.rank];
    double &cpu = h.cpu[std::min<std::size_t>(o.cpu, h.cpu.size() - 1)],
           &in = h.in[std::min<std::size_t>(o.nic, h.in.size() - 1)];
    if (std::max(cpu, in) > e.time) return again(e, std::max(cpu, in));
    cpu = e.time + p_.o + std::max(more(o) * p_.O, more(o) * p_.G);
    in = e.time + p_.g + more(o) * p_.G;
    const auto found = std::ranges::find_if(h.receives, [&](const Waiting& w) {
      return (w.source < 0 || w.source == e.sender) && (w.tag < 0 || o.tag < 0 || w.tag == o.tag);
    });
    if (found == h.receives.end()) {
      h.unexpected.push_back({e.sender, o.tag, e.operation});
      return;
    }
    const std::uint32_t receive = found->operation;
    h.receives.erase(found);
    let_sender_go(e.sender, e.operation, e.time);
    done(e.rank, receive);
    begin_freed();
  }

  void expect_done() const {
    for (std::uint32_t r = 0; r < hosts_.size(); ++r) {
      const Host& h = hosts_[r];
      if (!h.unexpected.empty())
        text::refuse(
            "{}: line {}: nobody receives it", goal_.name,
            goal_.ranks[static_cast<std::size_t>(h.unexpected.front().source)][h.unexpected.front().operation].line);
      if (!h.receives.empty())
        text::refuse("{}: line {}: nobody sends it", goal_.name, goal_.ranks[r][h.receives.front().operation].line);
      for (std::uint32_t i = 0; i < h.left.size(); ++i)
        if (h.left[i] > 0)
          text::refuse("{}: line {}: waits for itself, by way of others", goal_.name, goal_.ranks[r][i].line);
    }
  }

  const GoalProgram& goal_;
  const LogGops& p_;
  std::vector<Host> hosts_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_;  // by rank: what can begin now
  std::uint64_t made_ = 0;
};

}  // namespace

std::vector<double> play_goal(const GoalProgram& goal, const LogGops& parameters) {
  return Player(goal, parameters).run();
}

}  // namespace trellis::sim
