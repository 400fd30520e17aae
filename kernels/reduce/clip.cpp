#include "kernels/reduce/clip.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

namespace trellis::kernels {

double clip_factor(double norm, double max_norm, double epsilon) {
  if (norm < 0) throw std::invalid_argument(fmt::format("clip: the norm is {}; expected a number >= 0", norm));
  if (!(max_norm >= 0))
    throw std::invalid_argument(fmt::format("clip: max_norm is {}; expected a number >= 0", max_norm));
  if (!(epsilon >= 0) || std::isinf(epsilon))
    throw std::invalid_argument(fmt::format("clip: epsilon is {}; expected a finite number >= 0", epsilon));
  if (std::isnan(norm)) return norm;
  const double below = norm + epsilon;
  return max_norm >= below ? 1 : max_norm / below;
}

}  // namespace trellis::kernels
