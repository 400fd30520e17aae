// How long operations of a group would take on the machine that TRELLIS_SIMULATE names: torch.distributed's
// _time_estimator asks for it.
#pragma once

#include <optional>
#include <string>

#include "trellis/torch/native/progress/torch_errors.h"
#include "trellis/torch/native/records/communication_recorder.h"

namespace trellis::process_group {

class TimeEstimator {
 public:
  static const char* machine();  // null: the variable is not set
  void begin();
  bool on() const { return text_.has_value(); }
  void add(const RecordedCommunication&, const Membership&);
  float end();  // microseconds; the operations follow each other

 private:
  std::optional<std::string> text_;  // of a workload: see sim/cluster/workload/workload.h
  std::int64_t ranks_ = 0;           // of the job, as far as they are known
  int tasks_ = 0;
};

}  // namespace trellis::process_group
