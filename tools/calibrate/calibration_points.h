// A user's measurements to calibrate by: collectives and training steps, each a function of figures.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/calibration/fit.h"
#include "measure/calibration/measurements_csv.h"
#include "measure/published/record.h"
#include "sim/cluster/machine/machine.h"
#include "sim/hardware/figures/figures.h"
#include "tools/train/operation_times_option.h"
#include "tools/validate/training_records.h"

namespace trellis::tools {

using FigureValues = std::map<std::string, double>;

struct FreeMachineFigure : measure::FreeFigure {
  sim::Dimension dimension = sim::Dimension::number;
};

struct CalibrationPoint {
  measure::Measurement measurement;
  std::string words;                                     // "all_reduce of 64 MiB, 32 ranks"; "llama7b on trn1.32xlarge"
  std::function<double(const FigureValues&)> seconds;    // its time with these figures; it ignores unknown ones
  std::function<std::vector<FreeMachineFigure>()> free;  // its machine's figures that the time depends on
  bool step = false;
};

// Defaults for what rows and records do not say.
struct MeasurementDefaults {
  std::string machine, figures, era, collective, config, software;
  std::string times = by_formulas;  // how a step's operations are timed, as by --times
  int ranks = 0;
};

CalibrationPoint step_of_row(const measure::TableRow&, const std::string& file, const MeasurementDefaults&);
CalibrationPoint step_of_record(const TrainingRecord&, const MeasurementDefaults&);

// Throws invalid_argument with the row's place.
CalibrationPoint collective_of_row(const measure::TableRow&, const MeasurementDefaults&);
CalibrationPoint collective_of_record(const measure::Record&, const std::string& place, const MeasurementDefaults&);

}  // namespace trellis::tools
