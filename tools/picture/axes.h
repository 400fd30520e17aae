// A chart's axes: where values lie on the paper, and the grid with its words.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tools/picture/svg.h"

namespace trellis::tools::draw {

struct PlotAxis {
  double low = 0, high = 1;  // values at the ends; those beyond are drawn there
  double from = 0, to = 1;   // the ends' places on the paper
  double step = 1;           // from a line of the grid to the next: added, or on a logarithmic axis multiplied
  bool logarithmic = false;

  double at(double value) const;
  std::vector<double> ticks() const;
};

// Linear, with lines at four to ten round numbers.
PlotAxis linear_axis(double low, double high, double from, double to);
// Logarithmic, widened to whole powers of the base, with at most `most` lines.
PlotAxis power_axis(double low, double high, double base, int most, double from, double to);

using Words = std::function<std::string(double)>;
void draw_grid(Svg&, const PlotAxis& x, const Words& x_words, const PlotAxis& y, const Words& y_words);

}  // namespace trellis::tools::draw
