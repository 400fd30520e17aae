#include "sim/hardware/figures/model_error_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/hardware/figures/embedded_files.h"

namespace trellis::sim {

ModelErrorRange error_range(std::string_view kind) {
  static const Figures fitted = Figures::read(data_text("published", "fitted"));
  const auto found = fitted.all().find(fmt::format("error.{}", kind));
  return found == fitted.all().end() ? ModelErrorRange{} : ModelErrorRange{found->second.low, found->second.high};
}

ValueRange widened(double middle, ValueRange by_figures, ModelErrorRange by_model) {
  assert(middle > 0 && by_figures.low >= 0);
  const double below = std::hypot(std::log(middle / std::min(by_figures.low, middle)), std::log(by_model.low));
  const double above = std::hypot(std::log(std::max(by_figures.high, middle) / middle), std::log(by_model.high));
  return {middle * std::exp(-below), middle * std::exp(above)};
}

}  // namespace trellis::sim
