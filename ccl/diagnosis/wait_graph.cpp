#include "ccl/diagnosis/wait_graph.h"

#include <algorithm>
#include <set>

namespace trellis::ccl {
namespace {

// The number of the communicator's ranks that are threads of this process.
int ranks_of(const CommunicatorEvidence& m, const std::string& process) {
  return static_cast<int>(
      std::ranges::count_if(m.dumps, [&](const auto& one) { return one.second.process_identity == process; }));
}

bool divided_from(const CommunicatorEvidence& child, Rank in_child, const CommunicatorEvidence& parent,
                  Rank in_parent) {
  return child.parent == parent.communicator && !child.parent.empty() && !child.in_parent.empty() &&
         child.in_parent[static_cast<std::size_t>(in_child)] == in_parent;
}

// Marks the rank as ended: dumps of ranks on other hosts may not show that yet, and its launch may have seen it later
// than another launch saw what followed. A process that exited was in no operation, since operations never call exit.
void end_as(InferredRankState& p, const LaunchedRank& launched) {
  p.standing = RankStatus::ended;
  if (launched.end.starts_with("exited")) p.last.under_way = false;
}

// Whether any dump saw the process stopped. Reads the dumps of all communicators, since the ranks on the process's own
// host, which know more than others, may share only another communicator with it.
bool seen_stopped(const JobEvidence& job, CommunicatorRank n, std::int64_t process) {
  const bool by_rank = job.repeats(process);
  const auto stands = [&](const PeerSnapshot& s) { return s.process == process && s.standing == RankStatus::stopped; };
  for (CommunicatorRank other{}; other.communicator < job.communicators.size(); ++other.communicator)
    for (const auto& [witness, dump] : job.communicators[other.communicator].dumps)
      for (std::size_t r = 0; r < dump.seen.size(); ++r) {
        other.rank = static_cast<Rank>(r);
        if (stands(dump.seen[r]) && (!by_rank || job.origin(other) == job.origin(n))) return true;
      }
  return false;
}

}  // namespace

WaitGraph::WaitGraph(const JobEvidence& job) : job_(job) {
  for (const CommunicatorEvidence& m : job.communicators) places_.push_back(m.places());
  for (CommunicatorRank n{}; n.communicator < places_.size(); ++n.communicator)
    for (n.rank = 0; n.rank < job.communicators[n.communicator].ranks; ++n.rank) {
      InferredRankState& p = places_[n.communicator][static_cast<std::size_t>(n.rank)];
      const LaunchedRank* const l = p.own == nullptr && p.known() ? job.launched(n, p.process()) : nullptr;
      if (l != nullptr && l->failed && !l->told)
        end_as(p, *l);
      else if (p.silent() && seen_stopped(job, n, p.process()))
        p.standing = RankStatus::stopped;
    }
}

std::vector<CommunicatorRank> WaitGraph::waiting() const {
  std::vector<CommunicatorRank> all;
  for (std::size_t c = 0; c < places_.size(); ++c)
    for (std::size_t r = 0; r < places_[c].size(); ++r)
      if (places_[c][r].own != nullptr && places_[c][r].last.under_way) all.push_back({c, static_cast<Rank>(r)});
  return all;
}

bool WaitGraph::unmatched(CommunicatorRank n, CommunicatorRank other) const {
  const InferredRankState &mine = at(n), &theirs = at(other);
  if (n.communicator != other.communicator || !mine.last.points || mine.own == nullptr) return false;
  for (const PendingMessage& p : mine.own->pending) {
    if (p.peer != other.rank) continue;
    if (theirs.own == nullptr || !theirs.last.points || !theirs.last.under_way) return true;
    if (std::ranges::none_of(theirs.own->pending,
                             [&](const PendingMessage& q) { return q.peer == n.rank && q.receives != p.receives; }))
      return true;
  }
  return false;
}

// The ranks without which the operation cannot end.
std::vector<Rank> WaitGraph::missing(const CommunicatorEvidence& m, const InferredRankState& mine,
                                     CommunicatorRank n) const {
  std::vector<Rank> ranks;
  const std::vector<Rank> awaited_ones = mine.waits();
  const bool tells_messages = mine.own != nullptr && !mine.own->pending.empty();
  for (Rank r = 0; r < m.ranks; ++r) {
    const InferredRankState& p = at({n.communicator, r});
    if (r == n.rank) continue;
    const bool awaited = std::ranges::binary_search(awaited_ones, r);
    bool misses = false;
    if (mine.last.points)
      misses = awaited && (!tells_messages || unmatched(n, {n.communicator, r}));
    else if (mine.last.division == "shrink")  // a shrink excludes some ranks, and does not record which
      misses = mine.own != nullptr && mine.own->trouble == FailureKind::lost && mine.own->blamed == r;
    else if (!mine.last.division.empty())
      misses = !p.known() || (p.divisions < mine.divisions && !p.is_in(mine.last));
    else
      misses = !p.known() || p.last.operation < mine.last.operation;
    if (misses || (p.gone() && (p.last.under_way || awaited)) || (p.stopped() && p.last.under_way)) ranks.push_back(r);
  }
  return ranks;
}

std::vector<CommunicatorRank> WaitGraph::elsewhere(CommunicatorRank n) const {
  std::vector<CommunicatorRank> found;
  const CommunicatorEvidence& here = job_.communicators[n.communicator];
  const InferredRankState& mine = at(n);
  for (CommunicatorRank other{}; other.communicator < places_.size(); ++other.communicator) {
    if (other.communicator == n.communicator) continue;
    const CommunicatorEvidence& there = job_.communicators[other.communicator];
    for (const auto& [rank, dump] : there.dumps) {
      other.rank = rank;
      const InferredRankState& p = at(other);
      if (!p.last.under_way) continue;
      const std::string& process = p.own->process_identity;
      const bool same_process = mine.own != nullptr && !process.empty() && mine.own->process_identity == process &&
                                ranks_of(here, process) == 1 && ranks_of(there, process) == 1;
      if (same_process || divided_from(there, other.rank, here, n.rank) ||
          divided_from(here, n.rank, there, other.rank))
        found.push_back(other);
    }
  }
  return found;
}

std::vector<CommunicatorRank> WaitGraph::of(CommunicatorRank n) const {
  const InferredRankState& mine = at(n);
  if (!mine.last.under_way) return elsewhere(n);
  if (mine.gone() || mine.stopped()) return {};
  std::vector<CommunicatorRank> all;
  for (const Rank r : missing(job_.communicators[n.communicator], mine, n)) all.push_back({n.communicator, r});
  return all;
}

std::vector<CommunicatorRank> WaitGraph::ends(const std::vector<CommunicatorRank>& from) const {
  std::set<CommunicatorRank> met(from.begin(), from.end());
  std::vector<CommunicatorRank> open = from, found;
  while (!open.empty()) {
    const CommunicatorRank n = open.back();
    open.pop_back();
    const std::vector<CommunicatorRank> next = of(n);
    if (next.empty() && std::ranges::count(from, n) == 0) found.push_back(n);
    for (const CommunicatorRank& m : next)
      if (met.insert(m).second) open.push_back(m);
  }
  std::ranges::sort(found);
  return found;
}

std::vector<CommunicatorRank> WaitGraph::circle(const std::vector<CommunicatorRank>& from) const {
  struct Step {
    CommunicatorRank node;
    std::vector<CommunicatorRank> next;
    std::size_t taken = 0;
  };
  std::set<CommunicatorRank> met;
  for (const CommunicatorRank& start : from) {
    if (!met.insert(start).second) continue;
    std::vector<Step> way = {{start, of(start)}};
    while (!way.empty()) {
      Step& last = way.back();
      if (last.taken == last.next.size()) {
        way.pop_back();
        continue;
      }
      const CommunicatorRank next = last.next[last.taken++];
      if (const auto again = std::ranges::find(way, next, &Step::node); again != way.end()) {
        std::vector<CommunicatorRank> found;
        for (auto s = again; s != way.end(); ++s) found.push_back(s->node);
        return found;
      }
      if (met.insert(next).second) way.push_back({next, of(next)});
    }
  }
  return {};
}

}  // namespace trellis::ccl
