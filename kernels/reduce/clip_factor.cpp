#include "kernels/reduce/clip_factor.h"

#include <cmath>

#include "text/refuse.h"

namespace trellis::kernels {

double clip_factor(double norm, double max_norm, double epsilon) {
  if (norm < 0) text::refuse("clip: the norm is {}; expected a number >= 0", norm);
  if (!(max_norm >= 0)) text::refuse("clip: max_norm is {}; expected a number >= 0", max_norm);
  if (!(epsilon >= 0) || std::isinf(epsilon))
    text::refuse("clip: epsilon is {}; expected a finite number >= 0", epsilon);
  if (std::isnan(norm)) return norm;
  const double below = norm + epsilon;
  return max_norm >= below ? 1 : max_norm / below;
}

}  // namespace trellis::kernels
