// Walks an MSCCL++ plan in an order that its signals allow. At each operation it knows which others have surely ended.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "schedule/formats/mscclpp_json_plan.h"

namespace trellis::schedule::mscclpp {

// A vector clock: for each thread block of the plan, how many of its operations have ended.
using Known = std::vector<std::int32_t>;

struct PlanPosition {
  Rank rank = 0;
  std::size_t block = 0;  // within the gpu
  std::size_t operation = 0;
};

class PlanOrder {
 public:
  explicit PlanOrder(const ExecutionPlan&);  // throws invalid_argument if there are too many thread blocks

  // Calls visit(at, known) for every operation that moves data, in topological order. Throws invalid_argument if a wait
  // never ends, or if several signals or thread blocks could end it.
  template <class Visit>
  void run(Visit visit) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        for (; ready(b); moved = true) {
          const PlanPosition at = here(b);
          if (mscclpp::moves(operation(at).kind)) visit(at, blocks_[b].known);
          pass(b);
        }
    }
    check_all_ended();
  }

  std::size_t number(Rank rank, std::size_t block) const { return first_[rank] + block; }
  std::size_t count() const { return blocks_.size(); }
  Known at_the_end(Rank) const;  // what a gpu knows when all its thread blocks have ended

 private:
  using Knowledge = std::shared_ptr<const Known>;
  struct State {
    Rank rank = 0;
    std::size_t next = 0;  // index of the next operation
    Knowledge known;       // known to all threads of the block
    Known learnt;          // known to some threads; to all of them after the next nop
  };
  using Line = std::map<std::pair<Rank, std::int32_t>, std::deque<Knowledge>>;  // pending signals, by receiver and id

  const PlanOperation& operation(const PlanPosition& at) const {
    return plan_.gpus[at.rank].blocks[at.block].operations[at.operation];
  }
  PlanPosition here(std::size_t block) const {
    return {blocks_[block].rank, block - first_[blocks_[block].rank], blocks_[block].next};
  }
  bool ready(std::size_t block);
  void expect_all_meet(const PlanPosition&) const;  // at a barrier
  void pass(std::size_t block);
  void pass_barrier(std::size_t block);
  void meet(State&, std::size_t block);  // the block's threads wait for each other
  void learn(State&, const Known&);
  void only(std::map<std::pair<Rank, std::int32_t>, std::size_t>& users, std::int32_t id, std::size_t block,
            const char* what);
  std::pair<Rank, std::int32_t> other_end(const PlanPosition&, std::int32_t channel) const;
  bool knows_of_data(std::size_t block) const;
  void check_all_ended() const;
  [[noreturn]] void fail(const PlanPosition&, const std::string& why) const;

  const ExecutionPlan& plan_;
  std::vector<std::size_t> first_;  // first thread block of each gpu, plus an end mark
  std::vector<State> blocks_;
  std::vector<std::int32_t> first_move_;  // per thread block: its first operation that moves data
  Line signals_, releases_;
  std::map<std::pair<Rank, std::int32_t>, std::size_t> signallers_, waiters_, releasers_, acquirers_;
  std::map<std::pair<Rank, std::int32_t>, std::set<std::size_t>> users_;       // of each barrier: thread blocks
  std::map<std::pair<Rank, std::int32_t>, std::vector<std::size_t>> arrived_;  // at a barrier
  std::vector<std::vector<std::pair<Rank, std::int32_t>>> ends_;               // other ends of each gpu's channels
};

}  // namespace trellis::schedule::mscclpp
