// Matches the two ends of every transfer, and inverts `after` into each step's list of followers. Steps of all ranks
// are numbered consecutively, rank after rank.
#pragma once
#include <optional>

#include "schedule/proof/verify.h"

namespace trellis::schedule {

using StepId = std::uint32_t;

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

std::string describe(const Program&, const Step&);           // "send in[3..5] to 2 tag 0"
std::string where(Rank, const Program&, std::int64_t step);  // "rank 1 step 4 (send in[3] to 2)"

inline std::string where(const Schedule& s, Rank rank, std::int64_t step) {
  return where(rank, s.programs[rank], step);
}

}  // namespace trellis::schedule
