#include "sim/class_bound.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "sim/lone_way.h"

namespace trellis::sim {
namespace {

// Of a class's transfers to one peer, over all ranks of the class.
struct Way {
  Time latency = forever;  // the shortest
  double rate = 0;         // the fastest, where all go over links
  bool within_chip = false;
  double bytes = 0;  // all of them
  std::int64_t transfers = 0;
};

class ClassBound {
 public:
  ClassBound(const Pattern& pattern, const Machine& machine, const PriceOptions& options)
      : pattern_(pattern), machine_(machine), options_(options), overheads_(machine.overheads(options.era)) {
    chunk_ = least_chunk_bytes(pattern.task(), options);
    if (auto folded = folded_symmetry(pattern.symmetry(), machine, options))
      folding_.emplace(machine, *std::move(folded));
    add_moves();
  }

  // Times are rounded to picoseconds at every event, so that a sum of loads may be more by a trace.
  Time least(Time limit) {
    constexpr double rounding = 1e-5;
    add_ways(in_seconds(limit) / (1 - 2 * rounding));
    Time most = std::max(turns_, static_cast<Time>(busiest_ * static_cast<double>(second) * (1 - rounding)));
    if (overheads_.launch + most <= limit) most = std::max(most, longest_chain(limit));
    return overheads_.launch + most > limit ? forever : overheads_.launch + most;
  }

 private:
  Rank place(Rank r) const { return options_.place(r); }
  const PatternClass& program(std::size_t at) const { return pattern_.classes()[at]; }
  Way& way(std::size_t at, std::int32_t peer) { return ways_[first_way_[at] + static_cast<std::size_t>(peer)]; }

  void add_moves() {
    for (std::size_t c = 0; c < pattern_.classes().size(); ++c) {
      first_way_.push_back(ways_.size());
      ways_.resize(ways_.size() + program(c).peers.size());
      std::int64_t sends = 0;
      for (const Move& m : program(c).moves)
        for (const std::int32_t peer : {m.peer, m.second}) {
          if (peer == no_peer) continue;
          sends += peer == m.peer ? 1 : 0;
          way(c, peer).bytes += chunk_ * m.chunks;
          way(c, peer).transfers += peer == m.peer ? 1 : 0;
        }
      if (sends > 0) turns_ = std::max(turns_, sends * overheads_.message + overheads_.handshake);
    }
  }

  // As soon as it is beyond the limit, no more.
  void add_ways(double most_seconds) {
    const std::vector<Rank> kinds = folding_ ? folding_->representatives() : std::vector<Rank>{};
    const Rank count = folding_ ? static_cast<Rank>(kinds.size()) : pattern_.ranks();
    for (Rank i = 0; i < count && busiest_ <= most_seconds; ++i) {
      const Rank rank = folding_ ? kinds[static_cast<std::size_t>(i)] : i;
      const std::size_t at = pattern_.class_of(rank);
      double away = -in_seconds(overheads_.away);
      for (std::size_t peer = 0; peer < program(at).peers.size(); ++peer)
        away += add_way(rank, pattern_.peer(rank, program(at).peers[peer]), way(at, static_cast<std::int32_t>(peer)));
      busiest_ = std::max(busiest_, away);
    }
  }

  // How long the rank sends over it to another host, with what it waits after each of these transfers.
  double add_way(Rank from, Rank to, Way& way) {
    const LoneWay lone = lone_way(machine_, place(from), place(to), links_);
    way.latency = std::min(way.latency, lone.latency);
    way.within_chip |= lone.rate == 0;
    if (lone.rate == 0 || way.bytes <= 0) return 0;
    way.rate = std::max(way.rate, lone.rate);
    for (const ResourceId r : links_) load(r, way.bytes);
    load(machine_.hbm(place(from)), way.bytes);
    load(machine_.hbm(place(to)), way.bytes);
    load(machine_.dma(place(from)), 2 * way.bytes);
    if (!lone.away) return 0;
    return way.bytes / lone.rate + static_cast<double>(way.transfers) * in_seconds(overheads_.away);
  }

  void load(ResourceId r, double bytes) {
    if (r == no_resource) return;
    Load& load = loads_[folding_ ? folding_->representative(r) : r];
    if (load.rate == 0) load.rate = machine_.rate(r);
    load.bytes += bytes * (folding_ ? folding_->sharers(r) : 1);
    busiest_ = std::max(busiest_, load.bytes / load.rate);
  }

  // A move of a class, and the earliest time at which all that it waits for has ended.
  struct Ready {
    std::uint32_t at = 0, move = 0;
  };

  // From the launch on: a rank that is like another has like steps, and waits for like ones.
  Time longest_chain(Time limit) {
    std::vector<std::vector<std::uint32_t>> waits;
    times_.clear(), last_ = 0;
    for (std::uint32_t c = 0; c < pattern_.classes().size(); ++c) {
      const auto& moves = program(c).moves;
      times_.emplace_back(moves.size(), 0);
      waits.emplace_back();
      for (std::uint32_t m = 0; m < moves.size(); ++m) {
        waits.back().push_back(moves[m].waits);
        if (moves[m].waits == 0) ready_.push_back({c, m});
      }
    }
    const auto let_go = [&](std::uint32_t at, std::uint32_t step, Time time) {
      const PatternClass& c = program(at);
      last_ = std::max(last_, time);
      for (std::uint32_t i = c.begin[step]; i < c.begin[step + 1]; ++i) {
        const Follower& f = c.followers[i];
        const std::uint32_t keeper =
            f.peer == no_peer ? at : pattern_.class_of(c.peers[static_cast<std::size_t>(f.peer)]);
        times_[keeper][f.move] = std::max(times_[keeper][f.move], time);
        if (--waits[keeper][f.move] == 0) ready_.push_back({keeper, f.move});
      }
    };
    while (!ready_.empty() && overheads_.launch + last_ <= limit) {
      const Ready next = ready_.back();
      ready_.pop_back();
      follow(next, let_go);
    }
    ready_.clear();
    return last_;
  }

  template <class LetGo>
  void follow(const Ready& next, const LetGo& let_go) {
    const PatternClass& c = program(next.at);
    const Move& m = c.moves[next.move];
    Time time = times_[next.at][next.move] + overheads_.semaphore;
    if (m.peer == no_peer) return let_go(next.at, m.step, time);
    const Way& first = way(next.at, m.peer);
    time += overheads_.message + overheads_.handshake;
    if (chunk_ > 0 && m.chunks > 0 && !first.within_chip)
      time += overheads_.dma_start + (m.adds ? overheads_.reduce : 0) +
              static_cast<Time>(chunk_ * m.chunks / first.rate * static_cast<double>(second));
    let_go(next.at, m.step, time);
    const auto arrives = [&](std::int32_t peer, std::uint32_t step) {
      const std::uint32_t keeper = pattern_.class_of(c.peers[static_cast<std::size_t>(peer)]);
      let_go(keeper, step, time + way(next.at, peer).latency);
    };
    arrives(m.peer, m.arrival);
    if (m.second != no_peer) arrives(m.second, m.second_arrival);
  }

  const Pattern& pattern_;
  const Machine& machine_;
  const PriceOptions& options_;
  const Overheads overheads_;
  double chunk_ = 0;  // bytes
  std::optional<Folding> folding_;
  std::vector<Way> ways_;               // of each class's peers
  std::vector<std::size_t> first_way_;  // of each class
  struct Load {
    double bytes = 0, rate = 0;
  };
  std::unordered_map<ResourceId, Load> loads_;
  double busiest_ = 0;  // seconds of a resource, or of a rank that sends to other hosts
  Time turns_ = 0;      // of a rank's sends at its collective cores
  std::vector<ResourceId> links_;
  std::vector<std::vector<Time>> times_;  // by class and move
  std::vector<Ready> ready_;
  Time last_ = 0;
};

}  // namespace

Time least_by_classes(const Pattern& pattern, const Machine& machine, const PriceOptions& options, Time limit) {
  return ClassBound(pattern, machine, options).least(limit);
}

}  // namespace trellis::sim
