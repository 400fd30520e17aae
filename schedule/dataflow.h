// Walks through a schedule in an order that its rules allow, under rendezvous: a transfer happens when all its ends
// have started. What "happens" means is the caller's; interpret and verify stand on this walk.
#pragma once
#include "schedule/wiring.h"

namespace trellis::schedule {

class Dataflow {
 public:
  Dataflow(const Schedule&, const Wiring&);

  // Calls local(id) for each copy or reduce and transfer(send, receive) for each arrival. False if a step never starts.
  template <class Local, class Transfer>
  bool run(Local local, Transfer transfer) {
    for (StepId id = 0; id < wiring_.count(); ++id)
      if (--waits_[id] == 0) start(id);
    while (!ready_.empty()) {
      const StepId id = ready_.back();
      ready_.pop_back();
      if (wiring_.partner(id) == Wiring::none) {
        local(id);
        finish(id);
        continue;
      }
      const StepId to = wiring_.partner(id), also = wiring_.second_partner(id);
      transfer(id, to);
      if (also != Wiring::none) transfer(id, also);
      finish(id), finish(to);
      if (also != Wiring::none) finish(also);
    }
    return finished_ == wiring_.count();
  }

  // After a run that stuck: the steps that wait for each other in a circle, or for one that does.
  std::vector<StepId> circle() const;

 private:
  void start(StepId);  // queues it once all ends of its transfer have started
  void finish(StepId);
  bool done(StepId id) const { return waits_[id] == finished_mark; }
  bool started(StepId id) const { return waits_[id] == 0; }
  StepId blocker(StepId) const;

  static constexpr std::uint32_t finished_mark = static_cast<std::uint32_t>(-1);
  const Schedule& schedule_;
  const Wiring& wiring_;
  std::vector<std::uint32_t> waits_;  // steps that each still waits for; one more until the run has begun
  std::vector<StepId> ready_;
  std::uint64_t finished_ = 0;
};

}  // namespace trellis::schedule
