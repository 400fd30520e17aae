// Split and shrink: creates a communicator out of another one. This is one rank's part, from the call to its return.
#pragma once

#include <exception>
#include <functional>

#include "ccl/divide/split_protocol.h"
#include "ccl/failure/heartbeat_monitor.h"
#include "ccl/failure/sibling_waits.h"
#include "ccl/transports/open.h"

namespace trellis::ccl {

// State of the parent communicator that is kept between calls.
struct ParentState {
  Transport& transport;
  FamilyMember& family;
  MembershipNotice& notice;               // on this rank's board
  RankActivity& activity;                 // of its last operation
  const bool ended;                       // it has failed or was aborted
  const std::function<void()> meanwhile;  // called from time to time while it waits
};

class SplitOrShrink {
 public:
  // `joining`: config, device and deadline of the new communicator. `members`: the participants among all ranks, in
  // order; for a split, all.
  SplitOrShrink(const ParentState&, const JoinOptions& joining, MembershipNotice::Call, std::vector<Rank> members,
                ColorKey = {});

  // Returns the new communicator's transport; null: this rank asked for none. Throws PeerLost, Mismatch and Aborted.
  std::unique_ptr<Transport> run();
  std::span<const Rank> group() const { return group_; }  // the new communicator's members, as ranks in the parent

 private:
  class Offers;
  std::unique_ptr<Transport> meet();
  std::unique_ptr<Transport> join();  // null: the attempt was dropped
  SplitView known() const { return {notice_, me_, seen_, group_}; }
  bool splits() const { return notice_.call == MembershipNotice::Call::split; }
  void show(MembershipNotice::Stage);
  void begin(std::uint32_t attempt);
  void keep_wishes();
  std::uint64_t posts_seen() const;
  void look();                                                    // reads the boards
  void check(const std::function<std::vector<Rank>()>& missing);  // throws if one cannot come, or at the deadline
  void beat(Rank waits_for);
  Rank failed_in(Rank) const;  // the rank that its failure is blamed on
  void check_split();
  [[noreturn]] void await_who_failed();
  void end(Rank blames);
  void end_with(const std::exception_ptr&);
  bool leader_is_gone(const MembershipNotice& offered);

  ParentState of_;
  JoinOptions joining_;
  MembershipNotice& notice_;
  Transport& transport_;
  const Rank me_;
  std::vector<MembershipNotice> seen_;
  std::vector<std::uint32_t> seen_posts_;  // one per rank
  std::vector<ColorKey> wishes_;
  std::vector<Rank> group_;
  HeartbeatMonitor watch_;
  std::uint32_t idle_ = 0;
  const Deadline began_;
  Deadline next_check_ = {};
};

}  // namespace trellis::ccl
