// Executes a schedule in a valid topological order under rendezvous: a transfer happens once all its ends have started.
// The caller's callbacks do the work; interpret and verify are built on this.
#pragma once
#include "schedule/proof/wiring.h"

namespace trellis::schedule {

class Dataflow {
 public:
  Dataflow(const Schedule&, const StepWiring&);

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

}  // namespace trellis::schedule
