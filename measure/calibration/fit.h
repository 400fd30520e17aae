// Fits figures to measurements. The range that was assumed for a figure counts as one more measurement. A figure that
// the measurements do not determine stays as it was, and the reason is given.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace trellis::measure {

struct FreeFigure {
  std::string key;
  double value = 0, low = 0, high = 0;  // the range is to hold four values in five
  double least = 0, most = 0;           // bounds of the values that have a meaning; equal: none
};

struct Measurement {
  std::string name;   // where it stands, as "runs.csv:7"
  std::string group;  // measurements of one group are left out together
  double seconds = 0;
};

struct FittedFigure {
  FreeFigure before;
  double value = 0, low = 0, high = 0;
  std::string why_not;  // why it is not identified and stays as it was; empty: it is identified
  bool identified() const { return why_not.empty(); }
};

struct CalibrationResult {
  std::vector<FittedFigure> figures;
  // log(predicted / measured) by measurement: with the figures as they were, as fitted to all measurements, and as
  // fitted without the measurement's group.
  std::vector<double> before, after, left_out;
  bool one_group = false;  // then nothing can be left out
  bool stopped = false;
};

// The predicted seconds of a measurement with these values of the figures; 0 or less: the prediction was stopped.
using Predict = std::function<double(std::size_t measurement, const std::vector<double>& values)>;

// Throws invalid_argument where there is no measurement.
CalibrationResult calibrate(const std::vector<FreeFigure>&, const std::vector<Measurement>&, const Predict&);

}  // namespace trellis::measure
