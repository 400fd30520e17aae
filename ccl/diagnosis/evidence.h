// Combines the dumps of ranks and the records of launches into jobs, their communicators, and the state of each rank in
// these.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "ccl/diagnosis/launch_record.h"
#include "ccl/failure/rank_dump.h"

namespace trellis::ccl {

// The state of one rank in a communicator: from its own dump, or else from what another rank saw of it.
struct InferredRankState {
  const RankDump* own = nullptr;
  const PeerSnapshot* seen = nullptr;
  DumpedEntry last = {};
  int divisions = 0;  // number of splits and shrinks started, from its own dump
  RankStatus standing = RankStatus::alive;

  bool known() const { return own != nullptr || seen != nullptr; }
  bool gone() const { return standing == RankStatus::ended || standing == RankStatus::left; }
  bool stopped() const { return standing == RankStatus::stopped; }
  bool silent() const { return standing == RankStatus::silent; }
  bool is_in(const DumpedEntry& what) const;  // the same operation, split or shrink
  std::int64_t process() const;               // process id on the host; 0: not known
  std::vector<Rank> waits() const;            // the ranks whose messages it waits for
};

// A communicator's ranks, or those of a failed attempt to create one.
struct CommunicatorEvidence {
  std::string communicator = {};  // empty: it was never created
  Rank ranks = 1;
  std::string parent = {};
  std::vector<Rank> in_parent = {};
  std::map<Rank, RankDump> dumps = {};

  std::int64_t moment_ns() const;                 // the earliest one that a dump describes
  std::vector<InferredRankState> places() const;  // by rank
  std::uint64_t furthest_operation() const;
};

// One rank of one of a job's communicators.
struct CommunicatorRank {
  std::size_t communicator = 0;
  Rank rank = 0;
  auto operator<=>(const CommunicatorRank&) const = default;
};

struct JobEvidence {
  std::vector<CommunicatorEvidence> communicators = {};  // by moment
  std::vector<LaunchRecord> launches = {};               // by node
  std::int64_t moment_ns() const;                        // the latest of its communicators and launch records
  CommunicatorRank origin(CommunicatorRank) const;       // the same rank in its communicator's oldest known ancestor
  // Whether processes on several hosts have this id.
  bool repeats(std::int64_t process) const;
  // The launch record of the rank's process; null: there is none, or it can't be told from that of another process with
  // the same id.
  const LaunchedRank* launched(CommunicatorRank, std::int64_t process) const;
  const LaunchedRank* launched_as(Rank) const;
  const LaunchedRank* first_failed() const;  // of all nodes; null: none failed without being told to end
};

class CollectedEvidence {
 public:
  // Throws invalid_argument when it contradicts earlier dumps. If one rank of a communicator wrote two dumps, the later
  // one counts.
  void add(RankDump);
  void add(LaunchRecord record) { launches_.push_back(std::move(record)); }
  bool empty() const { return communicators_.empty() && launches_.empty(); }
  std::vector<JobEvidence> jobs() const;  // the last one first

 private:
  std::map<std::string, CommunicatorEvidence> communicators_ = {};
  std::vector<LaunchRecord> launches_ = {};
};

}  // namespace trellis::ccl
