// Family: the communicators of one rank that were split from one another. While the rank waits in one of them, it shows
// that in the others, so that a rank that waits for it there finds the rank at fault.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ccl/transports/transport.h"

namespace trellis::ccl {

class FamilyMember;

class CommunicatorFamily {
 public:
  // What another communicator of the family shows of a rank that is not in this one.
  struct Outsider {
    bool known = false;  // a communicator of the family has both this rank and that one
    bool stopped = false, answers = false;
    bool occupied = false;         // in an operation, split or shrink there, or elsewhere
    std::vector<Rank> waits = {};  // the places for which it waits
  };

 private:
  friend class FamilyMember;
  std::mutex mutex_;
  std::vector<FamilyMember*> members_;
};

// A communicator in its family. A rank's place is its number in the family's first communicator.
class FamilyMember {
 public:
  // `in_parent`: its ranks' numbers in the communicator that it is split from; no parent: it is a family's first.
  FamilyMember(Transport&, const FamilyMember* parent, std::span<const Rank> in_parent);
  ~FamilyMember();
  FamilyMember(const FamilyMember&) = delete;
  FamilyMember& operator=(const FamilyMember&) = delete;

  Rank place(Rank r) const { return places_[static_cast<std::size_t>(r)]; }
  Rank rank_at(Rank place) const;  // -1: it is not in this communicator

  // Shows in the family's other communicators that this rank waits here for that one, until rests(). Call it regularly.
  void waits_for(Rank, const WaitProgress& = {});
  void rests() {
    if (shown_) show(-1, {});
  }
  CommunicatorFamily::Outsider outsider(Rank place, std::chrono::milliseconds patience) const;

 private:
  void show(Rank place, const WaitProgress&);

  const std::shared_ptr<CommunicatorFamily> family_;
  Transport& transport_;
  const std::vector<Rank> places_;
  bool shown_ = false;
};

}  // namespace trellis::ccl
