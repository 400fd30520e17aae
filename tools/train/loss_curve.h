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

// The losses in a metrics.csv, or in that of a folder: each point is the mean of `mean` steps, the last one of those
// that are left. A second line has the validation losses, if there are any. Throws invalid_argument, and what
// text::read_file throws.
std::vector<LossLine> losses_of(const std::string& run, int mean = 1);

// As SVG. Throws invalid_argument when there is nothing to draw.
std::string loss_curve(const std::string& title, const std::vector<LossLine>&);

}  // namespace trellis::tools
