#include "trellis/torch/native/time_estimator.h"

#include <algorithm>
#include <cstdlib>

#include <c10/util/Exception.h>

#include "sim/cluster/simulate.h"

namespace trellis::process_group {

const char* TimeEstimator::machine() {
  const char* const name = std::getenv("TRELLIS_SIMULATE");
  return name != nullptr && *name != '\0' ? name : nullptr;
}

void TimeEstimator::begin() {
  TORCH_CHECK(machine() != nullptr, "trellis: an estimate: set TRELLIS_SIMULATE to a machine, as in trn2.48xlarge");
  TORCH_CHECK(!on(), "trellis: an estimate has begun already");
  text_.emplace();
  ranks_ = tasks_ = 0;
}

void TimeEstimator::add(const RecordedCommunication& what, const Membership& group) {
  const std::string name = what.collective;
  const auto in_job = [&](int rank) {
    const std::int64_t told = group.in_job(rank);
    ranks_ = std::max(ranks_, told + 1);
    return std::to_string(told);
  };
  const bool message = name == "send_recv", barrier = name == "barrier";
  TORCH_CHECK_VALUE(!message || what.root >= 0, "trellis: no estimate of a receive from any rank");
  if (group.size < 2 || (what.bytes == 0 && !barrier)) return;
  std::string line = name + " t" + std::to_string(tasks_++);
  if (!barrier) line += " " + std::to_string(what.bytes) + "B";
  if (message) {
    line += " from " + in_job(what.root) + " to " + in_job(what.peer);
  } else {
    for (int rank = 0; rank < group.size; ++rank) line += (rank == 0 ? " on " : ",") + in_job(rank);
    if (name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter")
      line += " root " + std::to_string(what.root);
  }
  *text_ += line + " stream s\n";
}

float TimeEstimator::end() {
  TORCH_CHECK(on(), "trellis: no estimate has begun");
  const std::string text = *std::exchange(text_, std::nullopt);
  if (tasks_ == 0) return 0;
  try {
    return static_cast<float>(1e6 * workload_seconds("ranks " + std::to_string(ranks_) + "\n" + text, machine()));
  } catch (const std::exception& failed) {
    TORCH_CHECK_VALUE(false, "trellis: TRELLIS_SIMULATE=", machine(), ": ", failed.what());
  }
}

}  // namespace trellis::process_group
