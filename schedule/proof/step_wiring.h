// The steps of all ranks as one graph, and the order in which they can go. Steps are numbered consecutively, rank after
// rank.
#pragma once
#include <optional>

#include "schedule/proof/verify.h"

namespace trellis::schedule {

using StepId = std::uint32_t;

// The two ends of every transfer, matched, and `after` inverted into each step's list of followers.
class StepWiring {
 public:
  // Returns a fault for schedules that can't be interpreted at all: a rank that does not exist, an `after` that is not
  // earlier, a transfer with one end only.
  static std::optional<Fault> connect(const Schedule&, StepWiring&);

  static constexpr StepId none = static_cast<StepId>(-1);
  StepId id(Rank rank, std::int64_t step) const { return first_[rank] + static_cast<StepId>(step); }
  Rank rank(StepId) const;
  std::int64_t step(StepId id) const { return id - first_[rank(id)]; }
  StepId count() const { return first_.back(); }
  StepId partner(StepId id) const { return partner_[id]; }  // none for local steps
  StepId second_partner(StepId) const;                      // none except for a send with two destinations
  std::span<const StepId> lets_go(StepId id) const {
    return {followers_.data() + begin_[id], followers_.data() + begin_[id + 1]};
  }

 private:
  std::optional<Fault> number(const Schedule&);
  std::optional<Fault> match(const Schedule&);
  void follow(const Schedule&);

  std::vector<StepId> first_;  // first step id of each rank, plus an end mark
  std::vector<StepId> partner_;
  std::vector<std::pair<StepId, StepId>> second_;  // sorted
  std::vector<StepId> begin_, followers_;
};

// Executes a schedule in a valid topological order under rendezvous: a transfer happens once all its ends have started.
// The caller's callbacks do the work; interpret and verify are built on this.
class DataflowExecutor {
 public:
  DataflowExecutor(const Schedule&, const StepWiring&);

  // Calls local(id) for each copy or reduce, and transfer(send, receive) for each arrival. Returns false if some
  // step never starts.
  template <class Local, class Transfer>
  bool run(Local local, Transfer transfer) {
    for (StepId id = 0; id < wiring_.count(); ++id)
      if (--waits_[id] == 0) start(id);
    while (!ready_.empty()) {
      const StepId id = ready_.back();
      ready_.pop_back();
      if (wiring_.partner(id) == StepWiring::none) {
        local(id);
        finish(id);
        continue;
      }
      const StepId to = wiring_.partner(id), also = wiring_.second_partner(id);
      transfer(id, to);
      if (also != StepWiring::none) transfer(id, also);
      finish(id), finish(to);
      if (also != StepWiring::none) finish(also);
    }
    return finished_ == wiring_.count();
  }

  // After a run that got stuck: steps of a circular wait, or steps that wait for one.
  std::vector<StepId> circle() const;

 private:
  void start(StepId);  // queues the step once all ends of its transfer have started
  void finish(StepId);
  bool done(StepId id) const { return waits_[id] == finished_mark; }
  bool started(StepId id) const { return waits_[id] == 0; }
  StepId blocker(StepId) const;

  static constexpr std::uint32_t finished_mark = static_cast<std::uint32_t>(-1);
  const Schedule& schedule_;
  const StepWiring& wiring_;
  std::vector<std::uint32_t> waits_;  // unfinished dependencies per step; one more until the run has begun
  std::vector<StepId> ready_;
  std::uint64_t finished_ = 0;
};

std::string describe(const Program&, const Step&);           // "send in[3..5] to 2 tag 0"
std::string where(Rank, const Program&, std::int64_t step);  // "rank 1 step 4 (send in[3] to 2)"

inline std::string where(const Schedule& s, Rank rank, std::int64_t step) {
  return where(rank, s.programs[rank], step);
}

}  // namespace trellis::schedule
