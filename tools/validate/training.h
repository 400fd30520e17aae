// Compares published training records with priced steps. A data file says what each record was run with, and which
// records contradict themselves. Figures are fitted again with each family of models left out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/published/record.h"
#include "tools/train/operation_times_option.h"
#include "tools/validate/training_records.h"

namespace trellis::tools {

struct TrainingComparison {
  std::string id, family, rule;
  bool fits = true;      // figures may be fitted to it
  double measured = 0;   // seconds of a step
  double simulated = 0;  // with the machine's figures
  double left_out = 0;   // with those fitted to the other families; 0: there are no others
  double low = 0, high = 0;
  double table = 0;  // by the median MFU of its family's records: the baseline
  bool inside() const { return low <= measured && measured <= high; }
};

struct FittedFigures {
  std::string without;  // the family that was left out; empty: none
  double exposed = 1, hosts = 0;
};

struct TrainingValidation {
  std::vector<TrainingComparison> lines;
  std::vector<FittedFigures> fitted;                  // empty: no record may be fitted to, or it was stopped
  std::map<std::string, std::vector<double>> errors;  // |log| errors, by how many figures were fitted
  std::map<std::string, std::string> apart;           // records that are not priced, and why
  std::map<std::string, std::string> faults;          // records that could not be priced, and why
  bool stopped = false;                               // `lines` has only what was priced before
};

// For a long answer. next: gets each record's id before it is priced. stopped: whether the user wants to stop.
struct ValidationCallbacks {
  std::function<void(const std::string&)> next = [](const std::string&) {};
  std::function<bool()> stopped = [] { return false; };
};

// `figures`: a file that replaces a machine's; empty: none. `times`: as of --times.
TrainingValidation training_answer(const TrainingRecords&, const std::string& figures = "",
                                   const std::string& times = by_formulas, const ValidationCallbacks& = {});
std::string training_text(const TrainingValidation&);

// Answers to training records one by one: the priced step in the record's unit, or why there is none.
class TrainingRecordPricer {
 public:
  TrainingRecordPricer(const std::string& setups, const std::vector<measure::Record>&);
  // None for records that are not of training. Throws StepStopped.
  std::optional<measure::RecordAnswer> of(const measure::Record&, const std::function<bool()>& stopped) const;

 private:
  TrainingRecords found_;
};

}  // namespace trellis::tools
