#include "ccl/diagnosis/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "text/refuse.h"

namespace trellis::ccl {
namespace {

constexpr std::int64_t slack_ns = 1'000'000'000;  // allowed between the last dump and the launch's record

// Returns the dump whose view of the other ranks tells most: the first one after a failure, else after a signal. Later
// dumps see other ranks that the failure has already ended.
const RankDump* best_witness(const std::map<Rank, RankDump>& dumps) {
  const RankDump* best = nullptr;
  const auto worth = [](const RankDump& d) {
    return std::tuple(d.trouble == FailureKind::none, d.signal.empty(), d.moment_ns);
  };
  for (const auto& [rank, d] : dumps)
    if (!d.seen.empty() && (best == nullptr || worth(d) < worth(*best))) best = &d;
  return best;
}

// A dump written on a failure or a signal describes a fixed moment; later events did not change it.
bool is_fixed(const RankDump& d) { return d.trouble != FailureKind::none || !d.signal.empty(); }

// `seen`: what the best witness saw of the rank; `by_others`: what each dump saw of it.
InferredRankState place_of(const RankDump* own, const PeerSnapshot* seen,
                           const std::vector<const PeerSnapshot*>& by_others) {
  InferredRankState p{.own = own, .seen = seen};
  if (own != nullptr && !own->entries.empty()) p.last = own->entries.back();
  if (own != nullptr)
    p.divisions =
        static_cast<int>(std::ranges::count_if(own->entries, [](const DumpedEntry& e) { return !e.division.empty(); }));
  if (seen == nullptr || (own != nullptr && is_fixed(*own))) return p;
  p.standing = seen->standing;
  // Takes the operation that the witness saw if the rank has no dump, or has gone since its dump, in the same operation
  // or a later one.
  if (own == nullptr || (p.gone() && seen->last.operation >= p.last.operation)) p.last = seen->last;
  if (own != nullptr || !(p.gone() || p.silent())) return p;
  // A rank that has ended does no more, so whoever saw it furthest saw it last.
  for (const PeerSnapshot* s : by_others)
    if (s->last.operation > p.last.operation) p.last = s->last;
  return p;
}

// Whether the launch started the dump's process, directly or through a script.
bool has(const LaunchRecord& record, const RankDump& d) {
  if (d.moment_ns < record.began_ns || d.moment_ns > record.written_ns + slack_ns) return false;
  if (!d.job_identity.empty() && !record.job_identity.empty()) return d.job_identity == record.job_identity;
  return std::ranges::any_of(record.ranks, [&](const LaunchedRank& r) { return r.process == d.process; });
}

// Groups numbers that belong together (union-find).
class Together {
 public:
  explicit Together(std::size_t count) : next_(count) { std::iota(next_.begin(), next_.end(), 0); }
  std::size_t of(std::size_t i) {
    while (next_[i] != i) i = next_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) { next_[of(a)] = of(b); }

 private:
  std::vector<std::size_t> next_;
};

bool belong_together(const CommunicatorEvidence& a, const CommunicatorEvidence& b) {
  if (!a.parent.empty() && (a.parent == b.communicator || a.parent == b.parent)) return true;
  if (!b.parent.empty() && b.parent == a.communicator) return true;
  std::set<std::string> processes;
  for (const auto& [rank, d] : a.dumps)
    if (!d.process_identity.empty()) processes.insert(d.process_identity);
  return std::ranges::any_of(b.dumps, [&](const auto& one) { return processes.contains(one.second.process_identity); });
}

bool belong_together(const LaunchRecord& a, const LaunchRecord& b) {
  return a.nodes == b.nodes && a.node != b.node && a.job_identity == b.job_identity && a.began_ns <= b.written_ns &&
         b.began_ns <= a.written_ns;
}

}  // namespace

bool InferredRankState::is_in(const DumpedEntry& what) const {
  return last.under_way && last.operation == what.operation && last.points == what.points &&
         last.division == what.division;
}

std::int64_t InferredRankState::process() const {
  if (own != nullptr && own->process != 0) return own->process;
  return seen == nullptr ? 0 : seen->process;
}

std::vector<Rank> InferredRankState::waits() const {
  std::vector<Rank> ranks;
  if (own != nullptr)
    for (const PendingMessage& p : own->pending) ranks.push_back(p.peer);
  const Rank shown = own != nullptr ? own->waits_for : seen != nullptr ? seen->waits_for : -1;
  if (ranks.empty() && last.under_way && shown >= 0) ranks.push_back(shown);
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::int64_t CommunicatorEvidence::moment_ns() const {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const auto& [rank, d] : dumps) first = std::min(first, d.moment_ns);
  return first;
}

std::vector<InferredRankState> CommunicatorEvidence::places() const {
  const RankDump* const witness = best_witness(dumps);
  std::vector<InferredRankState> all;
  for (Rank r = 0; r < ranks; ++r) {
    const auto found = dumps.find(r);
    std::vector<const PeerSnapshot*> seen;
    for (const auto& [other, d] : dumps)
      if (!d.seen.empty()) seen.push_back(&d.seen[static_cast<std::size_t>(r)]);
    all.push_back(place_of(found == dumps.end() ? nullptr : &found->second,
                           witness == nullptr ? nullptr : &witness->seen[static_cast<std::size_t>(r)], seen));
  }
  return all;
}

std::uint64_t CommunicatorEvidence::furthest_operation() const {
  std::uint64_t furthest = 0;
  for (const auto& [rank, d] : dumps)
    if (!d.entries.empty()) furthest = std::max(furthest, d.entries.back().operation);
  return furthest;
}

std::int64_t JobEvidence::moment_ns() const {
  std::int64_t last = 0;
  for (const CommunicatorEvidence& m : communicators) last = std::max(last, m.moment_ns());
  for (const LaunchRecord& l : launches) last = std::max(last, l.written_ns);
  return last;
}

// Goes from child to parent, as far as parents are known.
CommunicatorRank JobEvidence::origin(CommunicatorRank n) const {
  for (std::size_t steps = 0; steps < communicators.size(); ++steps) {
    const CommunicatorEvidence& m = communicators[n.communicator];
    const auto parent = std::ranges::find(communicators, m.parent, &CommunicatorEvidence::communicator);
    if (m.parent.empty() || m.in_parent.empty() || parent == communicators.end()) break;
    const Rank there = m.in_parent[static_cast<std::size_t>(n.rank)];
    if (there >= parent->ranks) break;
    n = {static_cast<std::size_t>(parent - communicators.begin()), there};
  }
  return n;
}

// Containers have process-id namespaces of their own, so processes on a job's hosts often have the same id.
bool JobEvidence::repeats(std::int64_t process) const {
  std::ptrdiff_t launched = 0;
  for (const LaunchRecord& record : launches)
    launched += std::ranges::count(record.ranks, process, &LaunchedRank::process);
  std::set<std::string> identities;
  for (const CommunicatorEvidence& m : communicators)
    for (const auto& [rank, d] : m.dumps)
      if (d.process == process && !d.process_identity.empty()) identities.insert(d.process_identity);
  return launched > 1 || identities.size() > 1;
}

// Where process ids repeat, the rank must match too. That needs an origin communicator with all ranks of the launch, in
// which ranks have the launch's numbers.
const LaunchedRank* JobEvidence::launched(CommunicatorRank n, std::int64_t process) const {
  if (process == 0) return nullptr;
  const bool by_rank = repeats(process);
  const CommunicatorRank top = origin(n);
  std::size_t all = 0;
  for (const LaunchRecord& record : launches) all += record.ranks.size();
  if (by_rank && all != static_cast<std::size_t>(communicators[top.communicator].ranks)) return nullptr;
  for (const LaunchRecord& record : launches)
    for (const LaunchedRank& r : record.ranks)
      if (r.process == process && (!by_rank || r.rank == top.rank)) return &r;
  return nullptr;
}

const LaunchedRank* JobEvidence::launched_as(Rank rank) const {
  for (const LaunchRecord& record : launches)
    for (const LaunchedRank& r : record.ranks)
      if (r.rank == rank) return &r;
  return nullptr;
}

const LaunchedRank* JobEvidence::first_failed() const {
  const LaunchedRank* first = nullptr;
  for (const LaunchRecord& record : launches)
    if (const LaunchedRank* f = record.first_failed(); f != nullptr && (!first || f->ended_ns < first->ended_ns))
      first = f;
  return first;
}

void CollectedEvidence::add(RankDump d) {
  const std::string key = d.made() ? d.communicator : fmt::format("of {} ranks, never made", d.ranks);
  CommunicatorEvidence& m = communicators_[key];
  if (m.dumps.empty())
    m = {.communicator = d.communicator, .ranks = d.ranks, .parent = d.parent, .in_parent = d.in_parent, .dumps = {}};
  if (d.ranks != m.ranks) text::refuse("it tells of {} ranks, and others of {}", d.ranks, m.ranks);
  const auto [at, is_new] = m.dumps.emplace(d.rank, d);
  if (!is_new && at->second.moment_ns < d.moment_ns) at->second = std::move(d);
}

std::vector<JobEvidence> CollectedEvidence::jobs() const {
  std::vector<const CommunicatorEvidence*> members;
  for (const auto& [key, m] : communicators_) members.push_back(&m);
  const std::size_t count = members.size();
  Together together(count + launches_.size());
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      if (belong_together(*members[i], *members[j])) together.join(i, j);
    for (std::size_t l = 0; l < launches_.size(); ++l)
      if (std::ranges::any_of(members[i]->dumps, [&](const auto& one) { return has(launches_[l], one.second); }))
        together.join(i, count + l);
  }
  for (std::size_t i = 0; i < launches_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (belong_together(launches_[i], launches_[j])) together.join(count + i, count + j);
  std::map<std::size_t, JobEvidence> jobs;
  for (std::size_t i = 0; i < count; ++i) jobs[together.of(i)].communicators.push_back(*members[i]);
  for (std::size_t l = 0; l < launches_.size(); ++l) jobs[together.of(count + l)].launches.push_back(launches_[l]);
  std::vector<JobEvidence> all;
  for (auto& [key, job] : jobs) {
    std::ranges::stable_sort(job.communicators, {}, &CommunicatorEvidence::moment_ns);
    std::ranges::sort(job.launches, {}, &LaunchRecord::node);
    all.push_back(std::move(job));
  }
  std::ranges::stable_sort(all, std::greater<>(), &JobEvidence::moment_ns);
  return all;
}

}  // namespace trellis::ccl
