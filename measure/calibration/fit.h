// Figures fitted to measurements, beside what was assumed of them: a figure's range counts as one more measurement.
// What the measurements cannot tell is left as it was, with the reason.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace trellis::measure {

struct FreeFigure {
  std::string key;
  double value = 0, low = 0, high = 0;  // the range is to hold four values in five
  double least = 0, most = 0;           // beyond which the figure has no meaning; equal: it may have any value
};

struct Measurement {
  std::string name;   // where it stands, as "runs.csv:7"
  std::string group;  // what is left out together
  double seconds = 0;
};

struct FittedFigure {
  FreeFigure before;
  double value = 0, low = 0, high = 0;
  std::string why_not;  // it is not identified, and stays as it was; empty: it is
  bool identified() const { return why_not.empty(); }
};

struct Calibration {
  std::vector<FittedFigure> figures;
  // log(predicted / measured) by measurement: with the figures as they were, as fitted, and fitted without its group.
  std::vector<double> before, after, left_out;
  bool one_group = false;  // then nothing can be left out
  bool stopped = false;
};

// Seconds of a measurement with these values of the figures; not above 0: it was stopped.
using Predict = std::function<double(std::size_t measurement, const std::vector<double>& values)>;

// Throws invalid_argument where there is no measurement.
Calibration calibrate(const std::vector<FreeFigure>&, const std::vector<Measurement>&, const Predict&);

}  // namespace trellis::measure
