// The loss of a training run as a picture.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trellis::tools {

struct LossLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // step and loss
};

// The losses in a metrics.csv or in the folder that holds it, each the mean of so many steps, the last one of those
// that are left, and the validation losses if the run has them. Throws invalid_argument, and what read_input throws.
std::vector<LossLine> losses_of(const std::string& run, int mean = 1);

// As SVG. Throws invalid_argument when there is nothing to draw.
std::string loss_curve(const std::string& title, const std::vector<LossLine>&);

}  // namespace trellis::tools
