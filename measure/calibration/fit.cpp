#include "measure/calibration/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "text/refuse.h"

namespace trellis::measure {
namespace {

constexpr double four_in_five = 1.2816;  // standard deviations either way
constexpr double usual_noise = 0.1, least_noise = 0.02;
constexpr double identified = 0.5;    // a figure is identified if at most this fraction of its assumed range is left
constexpr double far = 2;             // standard deviations beyond which a measurement pulls no harder (Huber)
constexpr double by_median = 1.4826;  // standard deviation / median absolute deviation, which outliers do not move
constexpr int most_rounds = 12;
constexpr double little = 0.01;  // fraction of a time: a figure that changes no time by more is not fitted

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

double median_of(Vector values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The standard deviation of errors around their median: an error that all of them share is not noise, as a figure may
// explain it. One or two errors tell nothing of the noise, so usual_noise is taken.
double noise_of(const Vector& errors) {
  if (errors.size() < 3) return usual_noise;
  const double common = median_of(errors);
  Vector sizes;
  for (double e : errors) sizes.push_back(std::abs(e - common));
  return std::max(least_noise, by_median * median_of(std::move(sizes)));
}

// The inverse of a symmetric, positive definite matrix.
Matrix inverse(Matrix a) {
  const std::size_t n = a.size();
  Matrix out(n, Vector(n, 0));
  for (std::size_t i = 0; i < n; ++i) out[i][i] = 1;
  for (std::size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (std::size_t k = 0; k < n; ++k) a[i][k] /= pivot, out[i][k] /= pivot;
    for (std::size_t j = 0; j < n; ++j) {
      const double times = a[j][i];
      if (j == i || times == 0) continue;
      for (std::size_t k = 0; k < n; ++k) a[j][k] -= times * a[i][k], out[j][k] -= times * out[i][k];
    }
  }
  return out;
}

// Measures a figure in standard deviations of its assumed range, by logarithms where the range is above 0.
struct Scale {
  explicit Scale(const FreeFigure& f) : figure(f), log(f.value > 0 && f.low > 0) {
    width = (log ? std::log(f.high / f.low) : f.high - f.low) / (2 * four_in_five);
  }
  double value(double x) const {
    const double v = log ? figure.value * std::exp(x * width) : figure.value + x * width;
    return figure.least < figure.most ? std::clamp(v, figure.least, figure.most) : v;
  }
  FreeFigure figure;
  bool log = false;
  double width = 0;
};

class Fitting {
 public:
  Fitting(const std::vector<FreeFigure>& figures, const std::vector<Measurement>& measured, const Predict& predict)
      : measured_(measured), predict_(predict), why_not_(figures.size()), x_(figures.size(), 0) {
    for (const FreeFigure& f : figures) scales_.emplace_back(f);
  }

  CalibrationResult run() {
    CalibrationResult out;
    out.before = errors(x_);
    do fit();
    while (!stopped_ && drop());
    out.after = residual_;
    for (std::size_t k = 0; k < scales_.size(); ++k) {
      const double spread =
          why_not_[k].empty() && !stopped_ ? four_in_five * std::sqrt(covariance_[index(k)][index(k)]) : 0;
      FittedFigure& f = out.figures.emplace_back(FittedFigure{.before = scales_[k].figure, .why_not = why_not_[k]});
      f.value = scales_[k].value(x_[k]), f.low = f.before.low, f.high = f.before.high;
      if (f.identified()) f.low = scales_[k].value(x_[k] - spread), f.high = scales_[k].value(x_[k] + spread);
    }
    std::set<std::string> groups;
    for (const Measurement& m : measured_) groups.insert(m.group);
    out.one_group = groups.size() < 2;
    if (!out.one_group && !stopped_) out.left_out = without_each();
    out.stopped = stopped_;
    return out;
  }

 private:
  Vector values(const Vector& x) const {
    Vector all;
    for (std::size_t k = 0; k < scales_.size(); ++k) all.push_back(scales_[k].value(x[k]));
    return all;
  }
  double error(std::size_t i, const Vector& x) {
    const double seconds = stopped_ ? 0 : predict_(i, values(x));
    if (!(seconds > 0)) return stopped_ = true, 0;
    return std::log(seconds / measured_[i].seconds);
  }
  Vector errors(const Vector& x) {
    Vector all;
    for (std::size_t i = 0; i < measured_.size(); ++i) all.push_back(error(i, x));
    return all;
  }

  std::size_t index(std::size_t figure) const {
    return static_cast<std::size_t>(std::ranges::find(free_, figure) - free_.begin());
  }

  void slopes(const Vector& errors_here) {
    constexpr double step = 0.25;
    slope_.assign(measured_.size(), Vector(free_.size(), 0));
    for (std::size_t a = 0; a < free_.size(); ++a) {
      Vector other = x_;
      // Steps towards the middle of the range, so that no bound is exceeded.
      other[free_[a]] += x_[free_[a]] > 0 ? -step : step;
      for (std::size_t i = 0; i < measured_.size(); ++i)
        slope_[i][a] = (error(i, other) - errors_here[i]) / (other[free_[a]] - x_[free_[a]]);
    }
  }

  double weight(double error) const { return std::min(1.0, far * noise_ / std::max(std::abs(error), 1e-12)); }

  // A Gauss-Newton step, and the covariance of the figures after it. Leaves out measurements of the group `without`.
  Vector step(const Vector& errors_here, const std::string* without, Matrix* covariance) const {
    const std::size_t n = free_.size();
    Matrix normal(n, Vector(n, 0));
    Vector right(n, 0);
    for (std::size_t a = 0; a < n; ++a) normal[a][a] = 1, right[a] = -x_[free_[a]];
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      if (without != nullptr && measured_[i].group == *without) continue;
      const double w = weight(errors_here[i]) / (noise_ * noise_);
      for (std::size_t a = 0; a < n; ++a) {
        right[a] -= w * slope_[i][a] * errors_here[i];
        for (std::size_t b = 0; b < n; ++b) normal[a][b] += w * slope_[i][a] * slope_[i][b];
      }
    }
    const Matrix inverted = inverse(normal);
    Vector out(n, 0);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) out[a] += inverted[a][b] * right[b];
    if (covariance != nullptr) *covariance = inverted;
    return out;
  }

  double cost(const Vector& x, const Vector& errors_there) const {
    double sum = 0;
    for (std::size_t k : free_) sum += x[k] * x[k];
    for (double e : errors_there) {
      const double size = std::abs(e) / noise_;
      sum += size <= far ? size * size : far * (2 * size - far);
    }
    return sum;
  }

  void fit() {
    free_.clear();
    for (std::size_t k = 0; k < scales_.size(); ++k)
      if (why_not_[k].empty())
        free_.push_back(k);
      else
        x_[k] = 0;
    noise_ = usual_noise;
    residual_ = errors(x_);
    for (int round = 0; round < most_rounds && !free_.empty() && !stopped_; ++round) {
      slopes(residual_);
      const Vector by = step(residual_, nullptr, nullptr);
      double part = 1, moved = 0;
      for (; part > 1e-3; part /= 2) {
        Vector other = x_;
        for (std::size_t a = 0; a < free_.size(); ++a) other[free_[a]] += part * by[a];
        Vector there = errors(other);
        if (cost(other, there) > cost(x_, residual_) + 1e-12) continue;
        for (double each : by) moved = std::max(moved, std::abs(part * each));
        x_ = std::move(other), residual_ = std::move(there);
        break;
      }
      noise_ = noise_of(residual_);
      if (moved < 1e-3) break;
    }
    if (free_.empty() || stopped_) return;
    slopes(residual_);
    step(residual_, nullptr, &covariance_);
  }

  // Excludes the figure that the measurements determine least, if that is too little. Returns whether there was one.
  bool drop() {
    std::size_t worst = free_.size();
    double most = identified;
    for (std::size_t a = 0; a < free_.size(); ++a)
      if (const double left = std::sqrt(covariance_[a][a]); left > most) most = left, worst = a;
    if (worst == free_.size()) return false;
    why_not_[free_[worst]] = reason(worst, most);
    return true;
  }

  std::string reason(std::size_t a, double left) const {
    double effect = 0;
    for (const Vector& s : slope_) effect = std::max(effect, std::abs(s[a]) * 2 * four_in_five);
    if (effect < little) return fmt::format("no time depends on it by more than {:.1g}% over its range", 100 * effect);
    std::size_t like = a;
    double most = 0.5;
    for (std::size_t b = 0; b < free_.size(); ++b) {
      const double together = std::abs(covariance_[a][b]) / std::sqrt(covariance_[a][a] * covariance_[b][b]);
      if (b != a && together > most) most = together, like = b;
    }
    if (like != a)
      return fmt::format("these measurements do not tell it from {}, which changes the same times alike",
                         scales_[free_[like]].figure.key);
    return fmt::format(
        "its whole range changes times by {:.1f}% at most, against errors of {:.1f}%: {:.0f}% of the range "
        "would be left",
        100 * effect, 100 * noise_, 100 * left);
  }

  // The error of each measurement, with figures fitted to the other groups.
  Vector without_each() {
    Vector out;
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      Vector other = x_;
      if (!free_.empty()) {
        const Vector by = step(residual_, &measured_[i].group, nullptr);
        for (std::size_t a = 0; a < free_.size(); ++a) other[free_[a]] += by[a];
      }
      out.push_back(error(i, other));
    }
    return out;
  }

  const std::vector<Measurement>& measured_;
  const Predict& predict_;
  std::vector<Scale> scales_;
  std::vector<std::string> why_not_;
  Vector x_, residual_;
  std::vector<std::size_t> free_;
  Matrix slope_, covariance_;  // by measurement and free figure; by two free figures
  double noise_ = usual_noise;
  bool stopped_ = false;
};

}  // namespace

CalibrationResult calibrate(const std::vector<FreeFigure>& figures, const std::vector<Measurement>& measured,
                            const Predict& predict) {
  if (measured.empty()) throw std::invalid_argument("no measurement to calibrate by");
  for (const Measurement& m : measured)
    if (!(m.seconds > 0) || !std::isfinite(m.seconds))
      text::refuse("{}: {} s: expected a time above 0", m.name, m.seconds);
  return Fitting(figures, measured, predict).run();
}

}  // namespace trellis::measure
