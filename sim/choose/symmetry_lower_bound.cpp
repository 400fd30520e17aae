#include "sim/choose/symmetry_lower_bound.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "sim/choose/resource_lower_bound.h"
#include "sim/choose/uncontended_route.h"

namespace trellis::sim {
namespace {

// The transfers of a class to one peer, over all ranks of the class.
struct Way {
  Time latency = forever;  // the shortest
  double rate = 0;         // the fastest, if all use links
  bool within_chip = false;
  double bytes = 0;        // of all of them
  double first_bytes = 0;  // of those for whose peers it is the first
  std::int64_t first_transfers = 0;
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

  // Times are rounded to picoseconds at every event, so a sum of loads may exceed the simulated time by a trace.
  Time least(Time limit) {
    constexpr double rounding = 1e-5;
    add_ways(in_seconds(limit) / (1 - 2 * rounding));
    Time most = std::max(turns_, static_cast<Time>(busiest_ * static_cast<double>(second) * (1 - rounding)));
    if (overheads_.launch + most <= limit) most = std::max(most, longest_chain(limit));
    if (overheads_.launch + most <= limit) most = std::max(most, longest_window(limit));
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
          const bool first = peer == m.peer;
          sends += first ? 1 : 0;
          way(c, peer).bytes += chunk_ * m.chunks;
          way(c, peer).first_bytes += first ? chunk_ * m.chunks : 0;
          way(c, peer).first_transfers += first ? 1 : 0;
        }
      if (sends > 0) turns_ = std::max(turns_, sends * overheads_.message + overheads_.handshake);
    }
  }

  // Ranks that lie differently in the machine, ordered by class.
  std::vector<Rank> kinds() const {
    std::vector<Rank> all = folding_ ? folding_->representatives() : std::vector<Rank>{};
    if (!folding_)
      for (Rank r = 0; r < pattern_.ranks(); ++r) all.push_back(r);
    std::ranges::stable_sort(all, {}, [&](Rank r) { return pattern_.class_of(r); });
    return all;
  }

  // Stops as soon as the bound exceeds the limit.
  void add_ways(double most_seconds) {
    for (const Rank rank : kinds()) {
      if (busiest_ > most_seconds) return;
      const std::size_t at = pattern_.class_of(rank);
      double away = -in_seconds(overheads_.away);
      for (std::size_t peer = 0; peer < program(at).peers.size(); ++peer)
        away += add_way(rank, pattern_.peer(rank, program(at).peers[peer]), way(at, static_cast<std::int32_t>(peer)));
      busiest_ = std::max(busiest_, away);
    }
  }

  // Returns how long the rank is busy with this way's sends to another host, including the wait after each of these
  // transfers.
  double add_way(Rank from, Rank to, Way& way) {
    const UncontendedRoute lone = uncontended_route(machine_, place(from), place(to), links_);
    way.latency = std::min(way.latency, lone.latency);
    way.within_chip |= lone.rate == 0;
    if (lone.rate == 0 || way.bytes <= 0) return 0;
    way.rate = std::max(way.rate, lone.rate);
    for (const ResourceId r : links_) load(r, way.bytes);
    load(machine_.hbm(place(from)), way.bytes);
    load(machine_.hbm(place(to)), way.bytes);
    load(machine_.dma(place(from)), 2 * way.bytes);
    if (!lone.away) return 0;
    return way.first_bytes / lone.rate + static_cast<double>(way.first_transfers) * in_seconds(overheads_.away);
  }

  void load(ResourceId r, double bytes) {
    if (r == no_resource) return;
    Load& load = loads_[folding_ ? folding_->representative(r) : r];
    if (load.rate == 0) load.rate = machine_.rate(r);
    load.bytes += bytes * (folding_ ? folding_->sharers(r) : 1);
    busiest_ = std::max(busiest_, load.bytes / load.rate);
  }

  // A move of a class, and the earliest time at which everything it waits for has ended.
  struct Ready {
    std::uint32_t at = 0, move = 0;
  };

  // Starts at the launch. Ranks of one class have the same steps and the same waits.
  Time longest_chain(Time limit) {
    std::vector<std::vector<std::uint32_t>> waits;
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
        const std::uint32_t keeper = f.peer == no_peer ? at : keeper_of(c, f.peer);
        times_[keeper][f.move] = std::max(times_[keeper][f.move], time);
        if (--waits[keeper][f.move] == 0) ready_.push_back({keeper, f.move});
      }
    };
    while (!ready_.empty() && overheads_.launch + last_ <= limit) {
      const Ready next = ready_.back();
      ready_.pop_back();
      order_.push_back(next);
      follow(next, let_go);
    }
    return last_;
  }

  bool has_bytes(std::size_t at, const Move& m) {
    return m.peer != no_peer && chunk_ > 0 && m.chunks > 0 && !way(at, m.peer).within_chip;
  }
  Time before(std::size_t at, const Move& m) {  // its bytes begin to move
    if (m.peer == no_peer) return 0;
    const Time start = has_bytes(at, m) ? overheads_.dma_start + (m.adds ? overheads_.reduce : 0) : 0;
    return overheads_.message + overheads_.handshake + start;
  }
  Time moving(std::size_t at, const Move& m) {
    if (!has_bytes(at, m)) return 0;
    return static_cast<Time>(chunk_ * m.chunks / way(at, m.peer).rate * static_cast<double>(second));
  }

  template <class LetGo>
  void follow(const Ready& next, const LetGo& let_go) {
    const PatternClass& c = program(next.at);
    const Move& m = c.moves[next.move];
    const Time time = times_[next.at][next.move] + before(next.at, m) + moving(next.at, m) + overheads_.semaphore;
    let_go(next.at, m.step, time);
    if (m.peer == no_peer) return;
    const auto arrives = [&](std::int32_t peer, std::uint32_t step) {
      let_go(keeper_of(c, peer), step, time + way(next.at, peer).latency);
    };
    arrives(m.peer, m.arrival);
    if (m.second != no_peer) arrives(m.second, m.second_arrival);
  }

  // For each resource and each rank's turns, with what precedes and what follows. Stops once beyond the limit.
  Time longest_window(Time limit) {
    find_tails();
    Time longest = 0;
    std::unordered_map<ResourceId, ResourceLowerBound> resources;
    std::size_t at = pattern_.classes().size();  // none
    std::vector<Part> parts;
    for (const Rank rank : kinds()) {
      if (pattern_.class_of(rank) != at) {
        at = pattern_.class_of(rank);
        longest = std::max(longest, turns_window(at));
        parts = parts_of(at);
      }
      longest = std::max(longest, add_parts(rank, at, parts, resources));
      if (overheads_.launch + longest > limit) return longest;
    }
    for (const auto& [resource, windows] : resources) longest = std::max(longest, windows.least());
    return longest;
  }

  // Goes backwards over the moves in the order of longest_chain.
  void find_tails() {
    for (const auto& times : times_) tails_.emplace_back(times.size(), 0);
    const auto after = [&](std::uint32_t at, std::uint32_t step) {
      const PatternClass& c = program(at);
      Time most = 0;
      for (std::uint32_t i = c.begin[step]; i < c.begin[step + 1]; ++i) {
        const Follower& f = c.followers[i];
        const std::uint32_t keeper = f.peer == no_peer ? at : keeper_of(c, f.peer);
        const Move& m = program(keeper).moves[f.move];
        most = std::max(most, before(keeper, m) + moving(keeper, m) + tails_[keeper][f.move]);
      }
      return most;
    };
    for (auto ready = order_.rbegin(); ready != order_.rend(); ++ready) {
      const PatternClass& c = program(ready->at);
      const Move& m = c.moves[ready->move];
      Time most = after(ready->at, m.step);
      const auto arrives = [&](std::int32_t peer, std::uint32_t step) {
        if (peer != no_peer) most = std::max(most, way(ready->at, peer).latency + after(keeper_of(c, peer), step));
      };
      arrives(m.peer, m.arrival);
      arrives(m.second, m.second_arrival);
      tails_[ready->at][ready->move] = overheads_.semaphore + most;
    }
  }

  Time turns_window(std::size_t at) {
    ResourceLowerBound turns(last_);
    bool any = false;
    for (std::uint32_t i = 0; i < program(at).moves.size(); ++i) {
      const Move& m = program(at).moves[i];
      if (m.peer == no_peer) continue;
      any = true;
      turns.add(in_seconds(overheads_.message), times_[at][i],
                before(at, m) - overheads_.message + moving(at, m) + tails_[at][i]);
    }
    return any ? turns.least() : 0;
  }

  // What the ranks of a class send to one peer in one move.
  struct Part {
    std::int32_t peer = no_peer;
    Time head = 0, tail = 0;
    double bytes = 0;
    bool first = true;  // of the move's peers
  };

  std::vector<Part> parts_of(std::size_t at) {
    std::vector<Part> parts;
    for (std::uint32_t i = 0; i < program(at).moves.size(); ++i) {
      const Move& m = program(at).moves[i];
      if (chunk_ * m.chunks <= 0) continue;
      for (const std::int32_t peer : {m.peer, m.second})
        if (peer != no_peer)
          parts.push_back({peer, times_[at][i] + before(at, m), tails_[at][i], chunk_ * m.chunks, peer == m.peer});
    }
    std::ranges::sort(parts, {}, [](const Part& p) { return std::tuple(p.peer, p.head, p.tail); });
    return parts;
  }

  // Returns the rank's own busy window towards other hosts.
  Time add_parts(Rank rank, std::size_t at, const std::vector<Part>& parts,
                 std::unordered_map<ResourceId, ResourceLowerBound>& resources) {
    ResourceLowerBound away(last_);
    bool any_away = false;
    const auto load = [&](ResourceId r, const Part& part, double bytes) {
      if (r == no_resource) return;
      const ResourceId one = folding_ ? folding_->representative(r) : r;
      const auto [found, fresh] = resources.try_emplace(one, last_);
      found->second.add(bytes * (folding_ ? folding_->sharers(r) : 1) / machine_.rate(r), part.head, part.tail);
    };
    UncontendedRoute lone;
    Rank to = -1;
    for (const Part& part : parts) {
      if (const Rank peer = pattern_.peer(rank, program(at).peers[static_cast<std::size_t>(part.peer)]); peer != to)
        lone = uncontended_route(machine_, place(rank), place(to = peer), links_);
      if (lone.rate == 0) continue;
      for (const ResourceId r : links_) load(r, part, part.bytes);
      load(machine_.hbm(place(rank)), part, part.bytes);
      load(machine_.hbm(place(to)), part, part.bytes);
      load(machine_.dma(place(rank)), part, 2 * part.bytes);
      if (!lone.away || !part.first) continue;
      any_away = true;
      away.add(part.bytes / lone.rate + in_seconds(overheads_.away), part.head, part.tail);
    }
    return any_away ? away.least() - overheads_.away : 0;
  }

  std::uint32_t keeper_of(const PatternClass& c, std::int32_t peer) const {
    return pattern_.class_of(c.peers[static_cast<std::size_t>(peer)]);
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
  std::vector<std::vector<Time>> tails_;  // likewise: from the last byte to the end of all that follows
  std::vector<Ready> ready_, order_;
  Time last_ = 0;
};

}  // namespace

Time symmetry_lower_bound(const Pattern& pattern, const Machine& machine, const PriceOptions& options, Time limit) {
  return ClassBound(pattern, machine, options).least(limit);
}

}  // namespace trellis::sim
