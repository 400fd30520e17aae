#include "sim/cluster/choose/prefix_lower_bound.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>

#include "sim/cluster/choose/uncontended_route.h"

namespace trellis::sim {
namespace {

using schedule::Program;
using schedule::Step;

class PrefixLowerBound {
 public:
  PrefixLowerBound(const schedule::Algorithm& algorithm, const schedule::Request& request, const Machine& machine,
                   const PriceOptions& options, const StepsOfRank& steps_of, std::int64_t steps, Rank programs,
                   bool far)
      : steps_of_(steps_of),
        machine_(machine),
        options_(options),
        overheads_(machine.overheads(options.era)),
        launch_(overheads_.launched(request.ranks())),
        symmetry_(symmetry_of(algorithm, request)),
        routes_left_(steps) {
    chunk_ = least_chunk_bytes(task_of(algorithm, request), options);
    programs_wanted_ = std::min(symmetry_.classes(), programs);
    steps_wanted_ = static_cast<std::size_t>(steps / programs_wanted_) + 1;
    write_programs(far);
    find_kinds();
  }

  Time longest_chain(Time limit) {
    join();
    while (!ready_.empty() && launch_ + last_ <= limit) {
      const Place at = ready_.back();
      ready_.pop_back();
      follow(at);
    }
    return launch_ + last_;
  }

 private:
  struct Place {
    std::size_t program = 0, step = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct Node {
    Time ready = 0;
    std::uint32_t waits = 0;
  };
  struct Written {
    Rank rank = 0;  // the lowest of its class
    std::shared_ptr<const ProgramPrefix> written = {};
    std::span<const Step> steps = {};  // the first ones
    std::vector<Node> nodes = {};
    std::vector<std::vector<std::uint32_t>> followers = {};
    std::map<Rank, std::pair<Time, double>> ways = {};  // by sender: least latency, highest rate; 0: bytes take no time
  };
  // Key of an arrival: the receiver, the sender as the receiver names it, the channel, the sequence number.
  using Transfer = std::tuple<Rank, Rank, std::uint8_t, std::int32_t>;
  struct Arrival {
    Transfer transfer;
    Place at = {};
  };
  struct Sent {
    Place from = {}, to = {};
  };

  // Generates the first steps of rank 0's program, then of its senders' and theirs, depth first: next comes the sender
  // of the last arrival, or with `far` the sender farthest from its receiver.
  void write_programs(bool far) {
    std::vector<Rank> wanted{0};
    while (!wanted.empty() && std::ssize(written_) < programs_wanted_) {
      const Rank rank = symmetry_.representative(wanted.back());
      wanted.pop_back();
      if (!numbers_.emplace(rank, written_.size()).second) continue;
      Written& own = written_.emplace_back(Written{.rank = rank, .written = steps_of_(rank, steps_wanted_)});
      const std::vector<Step>& all = own.written->program.steps;
      own.steps = std::span(all).first(std::min(all.size(), steps_wanted_));
      const auto first = std::ssize(wanted);
      for (const Step& s : own.steps)
        if (receives(s.op) && (wanted.empty() || wanted.back() != s.end.peer)) wanted.push_back(s.end.peer);
      if (far) sort_by_distance(rank, std::span(wanted).subspan(static_cast<std::size_t>(first)));
    }
  }

  void sort_by_distance(Rank to, std::span<Rank> senders) {
    std::unordered_map<Rank, Time> far;
    for (const Rank sender : senders)
      if (const auto [found, fresh] = far.try_emplace(sender); fresh) found->second = uncontended(sender, to).latency;
    std::ranges::stable_sort(senders, {}, [&](Rank sender) { return far.at(sender); });
  }

  // Lists for each class one rank for each way in which its ranks lie in the machine, as their routes may differ. Where
  // ranks cannot be folded, the lists stay empty, and a receive counts no latency and no time for its bytes.
  void find_kinds() {
    if (symmetry_.classes() == symmetry_.ranks()) {
      for (const Written& w : written_) kinds_[w.rank] = {w.rank};
    } else if (const auto folded = folded_ranks(symmetry_, machine_, options_)) {
      for (const Rank r : *folded) kinds_[symmetry_.representative(r)].push_back(r);
    }
  }

  UncontendedRoute uncontended(Rank from, Rank to) {
    return uncontended_route(machine_, options_.place(from), options_.place(to), links_);
  }

  // The least latency and the highest rate of the routes by which ranks of the class receive from this sender (as its
  // lowest rank names it). Both are 0 once too many routes were computed.
  const std::pair<Time, double>& way(Written& to, Rank sender) {
    const auto [found, fresh] = to.ways.try_emplace(sender, 0, 0);
    const auto kinds = kinds_.find(to.rank);
    if (!fresh || kinds == kinds_.end()) return found->second;
    routes_left_ -= std::ssize(kinds->second);
    if (routes_left_ < 0) return found->second;
    Time least = forever;
    double fastest = 0;
    bool within_chip = false;
    for (const Rank r : kinds->second) {
      const UncontendedRoute one = uncontended(symmetry_.image(to.rank, r, sender), r);
      least = std::min(least, one.latency);
      fastest = std::max(fastest, one.rate);
      within_chip |= one.rate == 0;
    }
    return found->second = {least, within_chip ? 0 : fastest};
  }

  // Links each arrival to its send, so that a step also waits for steps of the other ranks in `written_`.
  void join() {
    arrivals_.clear();
    for (std::size_t i = 0; i < written_.size(); ++i) {
      Written& w = written_[i];
      w.nodes.resize(w.steps.size());
      w.followers.resize(w.steps.size());
      for (std::size_t s = 0; s < w.steps.size(); ++s) {
        const Step& step = w.steps[s];
        w.nodes[s].waits = step.after.count;
        for (const std::int32_t before : w.written->program.after(step))
          w.followers[static_cast<std::size_t>(before)].push_back(static_cast<std::uint32_t>(s));
        if (receives(step.op)) arrivals_.push_back({{w.rank, step.end.peer, step.channel, step.end.tag}, {i, s}});
      }
    }
    std::ranges::sort(arrivals_, {}, &Arrival::transfer);
    for (std::size_t i = 0; i < written_.size(); ++i)
      for (std::size_t s = 0; s < written_[i].steps.size(); ++s) join_send({i, s});
    for (std::size_t i = 0; i < written_.size(); ++i)
      for (std::size_t s = 0; s < written_[i].nodes.size(); ++s)
        if (written_[i].nodes[s].waits == 0) ready_.push_back({i, s});
  }

  void join_send(Place at) {
    const Written& w = written_[at.program];
    const Step& step = w.steps[at.step];
    if (!sends(step.op)) return;
    for (const schedule::End& end : {step.end, step.second}) {
      if (end.peer < 0) continue;
      const Rank to = symmetry_.representative(end.peer);
      const Transfer wanted{to, symmetry_.image(end.peer, to, w.rank), step.channel, end.tag};
      const auto found = std::ranges::lower_bound(arrivals_, wanted, {}, &Arrival::transfer);
      if (found == arrivals_.end() || found->transfer != wanted) continue;
      ++written_[found->at.program].nodes[found->at.step].waits;
      sent_.push_back({at, found->at});
    }
  }

  void let_go(Place at, Time time) {
    Node& node = written_[at.program].nodes[at.step];
    node.ready = std::max(node.ready, time);
    if (--node.waits == 0) ready_.push_back(at);
  }

  // Ends a step and releases what waits for it. A send releases its arrival as soon as it is ready: the time of the
  // transfer is counted at the arrival.
  void follow(Place at) {
    Written& w = written_[at.program];
    const Step& step = w.steps[at.step];
    const Time ready = w.nodes[at.step].ready;
    Time end = ready + overheads_.semaphore;
    if (sends(step.op) || receives(step.op)) end += overheads_.message + overheads_.handshake;
    if (receives(step.op)) {
      const auto& [latency, rate] = way(w, step.end.peer);
      end = later(end, latency);
      if (const double bytes = chunk_ * step.to.count; bytes > 0 && rate > 0)
        end = later(end + overheads_.dma_start, time_of_picoseconds(bytes / rate * static_cast<double>(second)));
    }
    last_ = std::max(last_, end);
    for (const std::uint32_t next : w.followers[at.step]) let_go({at.program, next}, end);
    if (!sends(step.op)) return;
    for (auto sent = std::ranges::lower_bound(sent_, at, {}, &Sent::from); sent != sent_.end() && sent->from == at;
         ++sent)
      let_go(sent->to, ready);
  }

  const StepsOfRank& steps_of_;
  const Machine& machine_;
  const PriceOptions& options_;
  const SoftwareOverheads overheads_;
  const Time launch_;
  const schedule::Symmetry symmetry_;
  double chunk_ = 0;  // bytes
  Rank programs_wanted_ = 1;
  std::size_t steps_wanted_ = 1;  // of each rank
  std::int64_t routes_left_ = 0;
  std::vector<Written> written_;
  std::unordered_map<Rank, std::size_t> numbers_;
  std::unordered_map<Rank, std::vector<Rank>> kinds_;  // by a class's lowest rank: see find_kinds()
  std::vector<ResourceId> links_;
  std::vector<Arrival> arrivals_;  // sorted by `transfer`
  std::vector<Sent> sent_;         // sorted by `from`
  std::vector<Place> ready_;
  Time last_ = 0;
};

}  // namespace

Time prefix_lower_bound(const schedule::Algorithm& algorithm, const schedule::Request& request, const Machine& machine,
                        const PriceOptions& options, const StepsOfRank& steps_of, std::int64_t steps, Time limit) {
  // Two bounds, each from half of the steps: the first follows chains through many ranks, with a few steps of each; the
  // second follows chains that begin late, with long prefixes of two ranks' programs.
  constexpr std::int64_t short_program = 32, most_programs = 1024;
  const auto many = static_cast<Rank>(std::clamp<std::int64_t>(steps / 2 / short_program, 2, most_programs));
  const auto chain = [&](Rank programs, bool far) {
    return PrefixLowerBound(algorithm, request, machine, options, steps_of, steps / 2, programs, far)
        .longest_chain(limit);
  };
  const Time least = chain(many, false);
  if (least > limit) return forever;
  if (symmetry_of(algorithm, request).classes() <= 2) return least;
  const Time late = chain(2, true);
  return late > limit ? forever : std::max(least, late);
}

}  // namespace trellis::sim
