#include "sim/cluster/workload/goodput.h"

#include <cmath>

namespace trellis::sim {

// Between two checkpoints lie interval + save seconds without a failure. With failures every `between` seconds, that
// takes (between + restart) (e^((interval + save) / between) - 1) seconds in the mean (Daly, 2006).
double goodput(const GoodputInputs& f) {
  const double mean = (f.between + f.restart) * std::expm1((f.interval + f.save) / f.between);
  return f.interval / mean;
}

// Golden-section search over the logarithm of the interval: goodput has a single peak.
double best_interval(const GoodputInputs& f) {
  constexpr double golden = 0.6180339887498949;
  double low = std::log(f.between * 1e-7), high = std::log(f.between * 10);
  const auto at = [&](double log) {
    GoodputInputs other = f;
    other.interval = std::exp(log);
    return goodput(other);
  };
  for (int i = 0; i < 200 && high - low > 1e-9; ++i) {
    const double a = high - golden * (high - low), b = low + golden * (high - low);
    (at(a) < at(b) ? low : high) = at(a) < at(b) ? a : b;
  }
  return std::exp((low + high) / 2);
}

}  // namespace trellis::sim
