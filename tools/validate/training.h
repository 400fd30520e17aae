// Published training records, held against priced steps: what each was run with is data, rules for those that
// contradict themselves too; figures are fitted again with each family of models left out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "measure/published/record.h"

namespace trellis::tools {

struct TrainingLine {
  std::string id, family, rule;
  bool fits = true;      // figures may be fitted to it
  double measured = 0;   // seconds of a step
  double simulated = 0;  // with the machine's figures
  double left_out = 0;   // with those fitted to the other families
  double low = 0, high = 0;
  double table = 0;  // by one MFU of its family: the baseline
  bool inside() const { return low <= measured && measured <= high; }
};

struct FittedFigures {
  std::string without;  // the family that was left out; empty: none
  double exposed = 1, hosts = 0;
};

struct TrainingAnswer {
  std::vector<TrainingLine> lines;
  std::vector<FittedFigures> fitted;
  std::map<std::string, std::vector<double>> errors;  // |log| errors, by how many figures were fitted
  std::map<std::string, std::string> apart;           // records that are not priced, and why
  std::map<std::string, std::string> faults;          // that could not be priced
};

// `setups`: the text of a file like sim/published/training.json. `figures`: a file that replaces a machine's; empty:
// none.
TrainingAnswer training_answer(const std::string& setups, const std::vector<measure::Record>&,
                               const std::string& figures = "");
std::string training_text(const TrainingAnswer&);

// The answer to every training record, by its id: the priced step in the record's unit, or why there is none.
std::map<std::string, measure::Answer> training_answers(const std::string& setups, const std::vector<measure::Record>&);

}  // namespace trellis::tools
