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

// As SVG. Throws invalid_argument when there is nothing to draw.
std::string loss_curve(const std::string& title, const std::vector<LossLine>&);

}  // namespace trellis::tools
