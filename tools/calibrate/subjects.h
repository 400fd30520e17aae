// What can be calibrated by: collectives and training steps that a user measured, each a function of figures.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/calibration/fit.h"
#include "measure/calibration/table.h"
#include "measure/published/record.h"
#include "sim/cluster/machine/machine.h"
#include "tools/train/operation_times.h"
#include "tools/validate/training_records.h"

namespace trellis::tools {

using FigureValues = std::map<std::string, double>;

struct MeasuredSubject {
  measure::Measurement measurement;
  std::string words;                                   // "all_reduce of 64 MiB, 32 ranks"; "llama7b on trn1.32xlarge"
  std::function<double(const FigureValues&)> seconds;  // with these figures, of those it knows
  std::function<std::vector<measure::FreeFigure>()> free;  // that its time depends on, as the machine has them
  bool step = false;
};

// What rows and records leave open.
struct Usual {
  std::string machine, figures, era, collective, config, software;
  std::string times = by_formulas;  // of a step's operations
  int ranks = 0;
};

MeasuredSubject step_of_row(const measure::TableRow&, const std::string& file, const Usual&);
MeasuredSubject step_of_record(const TrainingRecord&, const Usual&);

// Throws invalid_argument with the row's place.
MeasuredSubject collective_of_row(const measure::TableRow&, const Usual&);
MeasuredSubject collective_of_record(const measure::Record&, const std::string& place, const Usual&);

}  // namespace trellis::tools
