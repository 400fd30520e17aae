#include "sim/cluster/price/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include "sim/cluster/price/critical_path.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

constexpr std::size_t spans_of_move = 10;  // about: software, bytes, and each resource on the route

// A simulated rank.
struct Own {
  std::vector<std::int64_t> moves;  // its own, in the order in which they become ready
  Time last_arrival = 0;
  Rank last_from = -1;
};

class Writer {
 public:
  Writer(const SimulationRun& run, const Machine& machine, const RunTimelineOptions& options)
      : run_(run), machine_(machine), first_span_(run.traces().size(), -1), last_span_(run.traces().size(), -1) {
    gather();
    choose(options);
  }

  RunTimeline write() {
    find_users();
    for (const auto& [resource, moves] : users_)  // links come first
      tracks_[resource] =
          seen_.timeline.track(std::string(machine_.port_name(resource)), machine_.resource_name(resource));
    for (Rank r : seen_.shown) write_rank(r, owns_.at(r));
    add_causes();
    for (const auto& [resource, moves] : users_) write_resource(tracks_.at(resource), moves);
    seen_.gone_through = static_cast<Rank>(owns_.size());
    return std::move(seen_);
  }

 private:
  Rank representative(Rank r) const { return run_.folding() != nullptr ? run_.folding()->representative(r) : r; }

  void gather() {
    const auto& traces = run_.traces();
    for (std::int64_t i = 0; i < std::ssize(traces); ++i) {
      const SimulationRun::Place where = run_.place(i);
      owns_[where.rank].moves.push_back(i);
      for (Rank to : {where.peer, where.also}) {
        if (to < 0) continue;
        Own& receiver = owns_[representative(to)];
        const Time arrived = traces[i].end + run_.latency(i);
        if (arrived > receiver.last_arrival) receiver.last_arrival = arrived, receiver.last_from = where.rank;
      }
    }
    for (auto& [rank, own] : owns_)
      std::ranges::stable_sort(own.moves, {}, [&](std::int64_t i) { return traces[i].ready; });
  }

  void choose(const RunTimelineOptions& options) {
    for (Rank r : options.ranks) {
      if (r < 0 || r >= machine_.ranks()) text::refuse("--show {}: expected ranks 0 to {}", r, machine_.ranks() - 1);
      if (owns_.contains(r)) continue;
      const Rank like = representative(r);
      throw std::invalid_argument(owns_.contains(like)
                                      ? fmt::format("rank {} was not simulated: it is like rank {}", r, like)
                                      : fmt::format("--show {}: this rank takes no part", r));
    }
    const std::set<Rank> wanted(options.ranks.begin(), options.ranks.end());
    std::size_t room = options.most_spans;
    for (const auto& [rank, own] : owns_) {
      const std::size_t needed = own.moves.size() * spans_of_move;
      if (!wanted.empty() && !wanted.contains(rank)) continue;
      if (!seen_.shown.empty() && needed > room) break;
      seen_.shown.push_back(rank);
      room -= std::min(room, needed);
    }
  }

  std::string label(const SimulationRun::Place& where) const {
    if (where.peer < 0) return where.move->adds ? "sum" : "copy";
    std::string text = fmt::format("to {}", short_name(machine_, where.peer));
    if (where.also >= 0) text += fmt::format(" and {}", where.also);
    return where.move->adds ? text + ", summed there" : text;
  }

  std::int64_t add(std::uint32_t track, std::string_view words, Time start, Time end, double bytes = 0) {
    Span span{.track = track, .label = seen_.timeline.label_of(words), .start = start, .end = end, .ready = start};
    span.bytes = bytes;
    return seen_.timeline.add(span);
  }

  void write_rank(Rank rank, const Own& own) {
    Timeline& timeline = seen_.timeline;
    const std::string group = rank_name(machine_, rank);
    const std::uint32_t software = timeline.track(group, "software"), moving = timeline.track(group, "moving");
    const std::uint32_t waiting = timeline.track(group, "waiting");
    Time until = 0;  // from then on, nothing of its own is in flight
    for (std::int64_t i : own.moves) {
      const MoveTrace& t = run_.traces()[i];
      const SimulationRun::Place where = run_.place(i);
      if (t.ready > until) add_wait(until == 0 && t.cause < 0 ? software : waiting, rank, t, until);
      const std::string words = label(where);
      if (t.begin > t.ready) first_span_[i] = last_span_[i] = add(software, words, t.ready, t.begin);
      if (t.end > t.begin) {
        last_span_[i] = add(moving, words, t.begin, t.end, run_.bytes(i));
        if (first_span_[i] < 0)
          first_span_[i] = last_span_[i];
        else
          timeline.spans[last_span_[i]].cause = first_span_[i];
      }
      until = std::max(until, t.end);
    }
    if (own.last_arrival > until)
      add(waiting, fmt::format("for {}", short_name(machine_, own.last_from)), until, own.last_arrival);
  }

  // Adds the wait from the end of the rank's work so far until its next move is ready.
  void add_wait(std::uint32_t track, Rank rank, const MoveTrace& next, Time from) {
    if (next.cause < 0) {
      add(track, "launch", from, next.ready);
      return;
    }
    const SimulationRun::Place cause = run_.place(next.cause);
    const bool own = cause.rank == rank && !(run_.folding() != nullptr && cause.peer >= 0);
    // In a folded run the rank stands for its like, so a wait for one of them appears as a wait for itself.
    add(track, own ? "for its own bytes to land" : fmt::format("for {}", sender_words(rank, cause)), from, next.ready);
  }

  std::string sender_words(Rank rank, const SimulationRun::Place& cause) const {
    return cause.rank == rank ? "another like it" : short_name(machine_, cause.rank);
  }

  // A move that took no time is replaced by its cause.
  std::int64_t shown_cause(std::int64_t move) const {
    while (move >= 0 && last_span_[move] < 0) move = run_.traces()[move].cause;
    return move < 0 ? -1 : last_span_[move];
  }

  void add_causes() {
    for (std::int64_t i = 0; i < std::ssize(first_span_); ++i)
      if (first_span_[i] >= 0) seen_.timeline.spans[first_span_[i]].cause = shown_cause(run_.traces()[i].cause);
  }

  void find_users() {
    std::vector<ResourceId> used;
    for (std::int64_t i = 0; i < std::ssize(run_.traces()); ++i) {
      if (run_.traces()[i].end == run_.traces()[i].begin) continue;
      run_.uses(i, used);
      for (ResourceId r : used)
        if (belongs_to_shown(r)) users_[r].push_back(i);
    }
  }

  bool belongs_to_shown(ResourceId r) const {
    const auto first = std::ranges::lower_bound(seen_.shown, machine_.owner(r));
    return first != seen_.shown.end() && *first < machine_.owner(r) + machine_.span(r);
  }

  struct Change {
    Time time = 0;
    std::int64_t move = 0;
    bool begins = false;
  };

  // A resource has one row, however many moves use it: a span for each stretch of time in which the users are the same.
  void write_resource(std::uint32_t track, const std::vector<std::int64_t>& moves) {
    std::vector<Change> changes;
    for (std::int64_t i : moves) {
      changes.push_back({run_.traces()[i].begin, i, true});
      changes.push_back({run_.traces()[i].end, i, false});
    }
    std::ranges::stable_sort(changes, {}, &Change::time);
    std::set<std::int64_t> active;
    std::int64_t last = -1;  // the resource's last span; -1: none
    for (std::size_t at = 0; at < changes.size();) {
      const Time now = changes[at].time;
      for (; at < changes.size() && changes[at].time == now; ++at)
        changes[at].begins ? (void)active.insert(changes[at].move) : (void)active.erase(changes[at].move);
      if (active.empty()) continue;
      const std::uint32_t label = seen_.timeline.label_of(users_words(active));
      Span* before = last < 0 ? nullptr : &seen_.timeline.spans[last];
      if (before != nullptr && before->end == now && before->label == label)
        before->end = changes[at].time;
      else
        last = add(track, users_words(active), now, changes[at].time);
    }
  }

  std::string users_words(const std::set<std::int64_t>& active) const {
    constexpr std::size_t most_named = 2;
    std::string text = active.size() > 1 ? fmt::format("{} at once: ", active.size()) : "";
    std::size_t named = 0;
    for (std::int64_t i : active) {
      if (named == most_named) return text + ", ...";
      const SimulationRun::Place where = run_.place(i);
      text += fmt::format("{}{}", named++ == 0 ? "" : ", ", where.rank);
      if (where.peer >= 0) text += fmt::format(" to {}", where.peer);
      if (where.peer < 0) text += where.move->adds ? ", sum" : ", copy";
    }
    return text;
  }

  const SimulationRun& run_;
  const Machine& machine_;
  std::map<Rank, Own> owns_;
  std::map<ResourceId, std::vector<std::int64_t>> users_;  // the moves that use a resource of a shown rank
  std::map<ResourceId, std::uint32_t> tracks_;
  std::vector<std::int64_t> first_span_, last_span_;  // of each move
  RunTimeline seen_;
};

}  // namespace

RunTimeline timeline_of(const SimulationRun& run, const Machine& machine, const RunTimelineOptions& options) {
  return Writer(run, machine, options).write();
}

}  // namespace trellis::sim
