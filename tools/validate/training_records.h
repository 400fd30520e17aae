// Published training records, each with what it was run with, as a file beside them says (sim/published/training.json).
#pragma once

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/published/record.h"
#include "tools/train/step_pricing.h"

namespace trellis::tools {

struct TrainingRecord {
  std::string id, family, rule;
  bool fits = true;     // figures may be fitted to it
  double measured = 0;  // seconds of a step
  train::StepConfig config;
  std::string machine, software;
  train::Rank ranks = 0;  // that take part; 0: all of the machine's
};

struct TrainingRecords {
  std::vector<TrainingRecord> records;
  std::map<std::string, std::string> apart, faults;  // why a record is not priced, and why one cannot be
};

// `setups`: the text of a file like sim/published/training.json. What a record says of itself (sizes of axes and
// batches, the release, the hosts) is taken from the record, unless its entry in the file says otherwise. Throws
// invalid_argument for any other text.
TrainingRecords training_records(const std::string& setups, const std::vector<measure::Record>&);

class StepStopped : public std::runtime_error {
 public:
  StepStopped() : std::runtime_error("interrupted before the step was priced") {}
};

// A step on a machine of its own, as a function of the figures that are fitted.
class FittableStep {
 public:
  // `ranks`: 0: all of the machine's.
  FittableStep(const train::StepConfig&, const sim::MachineSpec&, const sim::StepOptions&, train::Rank ranks = 0);

  bool has_exposed() const { return !step_.factors().exposed.empty(); }
  bool on_several_hosts() const { return several_; }
  // `exposed`: of every axis that has such a figure. `level`: of computation, against the machine's own. Throws
  // StepStopped where the options say stop.
  double seconds(double exposed, double hosts, double level = 1);
  double usual();
  double spread() const { return step_.factors().spread; }
  double flops_of_rank() const { return step_.flops() / ranks_; }
  const sim::Machine& machine() const { return machine_; }

 private:
  double seconds_with(const sim::StepFactors&);

  sim::Machine machine_;
  train::Rank ranks_;
  PreparedStep step_;
  bool several_ = false;
};

}  // namespace trellis::tools
