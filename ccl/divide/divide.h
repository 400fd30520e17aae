// Split and shrink: creates a communicator out of another one. This is one rank's part, from the call to its return.
#pragma once

#include <exception>
#include <functional>

#include "ccl/divide/meeting.h"
#include "ccl/failure/family.h"
#include "ccl/failure/watchdog.h"
#include "ccl/transports/open.h"

namespace trellis::ccl {

// State of the parent communicator that is kept between calls.
struct Divided {
  Transport& transport;
  FamilyMember& family;
  Notice& notice;                         // on this rank's board
  Activity& activity;                     // of its last operation
  const bool ended;                       // it has failed or was aborted
  const std::function<void()> meanwhile;  // called from time to time while it waits
};

class Division {
 public:
  // `joining`: config, device and deadline of the new communicator. `members`: the participants among all ranks, in
  // order; for a split, all.
  Division(const Divided&, const Joining& joining, Notice::Call, std::vector<Rank> members, ColorKey = {});

  // Returns the new communicator's transport; null: this rank asked for none. Throws PeerLost, Mismatch and Aborted.
  std::unique_ptr<Transport> run();
  std::span<const Rank> group() const { return group_; }  // the new communicator's members, as ranks in the parent

 private:
  class Offers;
  std::unique_ptr<Transport> meet();
  std::unique_ptr<Transport> join();  // null: the attempt was dropped
  MeetingView known() const { return {notice_, me_, seen_, group_}; }
  bool splits() const { return notice_.call == Notice::Call::split; }
  void show(Notice::Stage);
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
  bool leader_is_gone(const Notice& offered);

  Divided of_;
  Joining joining_;
  Notice& notice_;
  Transport& transport_;
  const Rank me_;
  std::vector<Notice> seen_;
  std::vector<std::uint32_t> seen_posts_;  // one per rank
  std::vector<ColorKey> wishes_;
  std::vector<Rank> group_;
  Watchdog watch_;
  std::uint32_t idle_ = 0;
  const Deadline began_;
  Deadline next_check_ = {};
};

}  // namespace trellis::ccl
