#include "train/layers/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/layers/cross_entropy.h"
#include "train/layers/parameter.h"

namespace trellis::train {
namespace {

constexpr std::int32_t ignored = -100;

// This rank's classes are first .. first + columns.
struct Shard {
  std::size_t rows, columns;
  std::int64_t first, classes;
  kernels::CrossEntropyOptions options(int threads, float factor = 1) const {
    return {.ignore = ignored, .first = first, .classes = classes, .factor = factor, .threads = threads};
  }
};

Shard shard_of(const Writer& w, TensorId logits, const LossOptions& plan) {
  const Tensor& t = w.tensor(logits);
  return {t.rows, t.columns, plan.whole ? 0 : static_cast<std::int64_t>(uneven_part(plan.classes, w).first),
          static_cast<std::int64_t>(plan.classes)};
}

// The number of rows that the loss is a mean over.
std::size_t counted(const Memory& at, const LossSaved& s, std::size_t rows) {
  if (s.counted != no_tensor) return static_cast<std::size_t>(*at.as<std::int32_t>(s.counted));
  return counted_labels(at.as<std::int32_t>(s.labels), rows);
}

// The part a' of the target that is spread over all K classes: each gets a' / K, and the label gets 1 - a' more.
double spread(const LossOptions& p) {
  const auto k = static_cast<double>(p.classes);
  return p.label_smoothing * k / (k - 1);
}

// Sums of each row's logits, in double.
void row_sums(const float* logits, float* sums, const Shard& s) {
  for (std::size_t r = 0; r < s.rows; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < s.columns; ++c) sum += static_cast<double>(logits[r * s.columns + c]);
    sums[r] = static_cast<float>(sum);
  }
}

// The gradient of smoothing on top of the plain one: (a' at the label - a' / K everywhere) times the factor.
void add_smoothing(float* dlogits, const std::int32_t* labels, const Shard& s, double share, float factor) {
  const float everywhere = factor * static_cast<float>(share / static_cast<double>(s.classes));
  const float at_label = factor * static_cast<float>(share);
  for (std::size_t r = 0; r < s.rows; ++r) {
    if (labels[r] == ignored) continue;
    float* const row = dlogits + r * s.columns;
    for (std::size_t c = 0; c < s.columns; ++c) row[c] -= everywhere;
    const std::int64_t column = labels[r] - s.first;
    if (column >= 0 && column < static_cast<std::int64_t>(s.columns)) row[column] += at_label;
  }
}

// Joins the ranks' parts of each row: takes the largest logit of all, rescales the sums to it, adds sums and targets.
void join(Writer& w, TensorId largest, TensorId sums, TensorId targets, std::size_t rows) {
  const TensorId all = w.tensor("largest_of_all", DType::f32, rows, 1);
  w.compute("keep_largest", {largest}, {all}, 0, shape_over("copy", w.tensor(all)),
            [=](const Memory& at, const StepInputs&) { std::copy_n(at.as<float>(largest), rows, at.as<float>(all)); });
  w.all_reduce("largest", Axis::tensor, all, kernels::Reduction::max);
  w.compute("to_largest", {largest, all, sums}, {largest, sums}, static_cast<double>(rows),
            shape_over("add", w.tensor(all)), [=](const Memory& at, const StepInputs&) {
              float *const own = at.as<float>(largest), *const top = at.as<float>(all), *const sum = at.as<float>(sums);
              for (std::size_t r = 0; r < rows; ++r) sum[r] *= std::exp(own[r] - top[r]), own[r] = top[r];
            });
  w.all_reduce("sums", Axis::tensor, sums);
  w.all_reduce("targets", Axis::tensor, targets);
}

}  // namespace

std::size_t counted_labels(const std::int32_t* labels, std::size_t n) {
  return n - static_cast<std::size_t>(std::count(labels, labels + n, ignored));
}

void cross_entropy(Writer& w, TensorId logits, TensorId labels, TensorId loss, const LossOptions& plan,
                   LossSaved& saved) {
  const Shard s = shard_of(w, logits, plan);
  const auto one_a_row = [&](const char* what) { return w.tensor(what, DType::f32, s.rows, 1); };
  const TensorId largest = one_a_row("largest"), sums = one_a_row("sums"), targets = one_a_row("targets");
  const TensorId log_sums = one_a_row("log_sums");
  saved = {logits, labels, log_sums, saved.counted};
  w.compute("cross_entropy_parts", {logits, labels}, {largest, sums, targets},
            4.0 * static_cast<double>(s.rows * s.columns), shape_over("cross_entropy", w.tensor(logits)),
            [=](const Memory& at, const StepInputs&) {
              kernels::cross_entropy_parts(DType::f32, at.at(logits), at.as<std::int32_t>(labels),
                                           at.as<float>(largest), at.as<float>(sums), at.as<float>(targets), s.rows,
                                           s.columns, s.options(at.threads()));
            });
  if (w.shape().tensor > 1 && !plan.whole) join(w, largest, sums, targets, s.rows);
  std::vector<TensorId> reads{labels, largest, sums, targets, loss};
  if (saved.counted != no_tensor) reads.push_back(saved.counted);
  TensorId totals = no_tensor;
  if (plan.label_smoothing > 0) {
    totals = one_a_row("totals");
    w.compute("totals", {logits}, {totals}, static_cast<double>(s.rows * s.columns),
              shape_over("reduce", w.tensor(logits)),
              [=](const Memory& at, const StepInputs&) { row_sums(at.as<float>(logits), at.as<float>(totals), s); });
    if (w.shape().tensor > 1 && !plan.whole) w.all_reduce("totals", Axis::tensor, totals);
    reads.push_back(totals);
  }
  w.compute("cross_entropy", reads, {log_sums, loss}, static_cast<double>(s.rows),
            shape_over("add", w.tensor(log_sums)), [=, saved = saved](const Memory& at, const StepInputs&) {
              const auto* const label = at.as<std::int32_t>(labels);
              const std::size_t n = counted(at, saved, s.rows);
              double sum =
                  kernels::cross_entropy_finish(label, at.as<float>(largest), at.as<float>(sums), at.as<float>(targets),
                                                nullptr, at.as<float>(log_sums), s.rows, s.options(at.threads()))
                      .loss;
              if (totals != no_tensor) {
                const double share = spread(plan);
                sum *= 1 - share;
                for (std::size_t r = 0; r < s.rows; ++r)
                  if (label[r] != ignored)
                    sum -= share * (static_cast<double>(at.as<float>(totals)[r]) / static_cast<double>(s.classes) -
                                    static_cast<double>(at.as<float>(log_sums)[r]));
              }
              if (n > 0) *at.as<double>(loss) += plan.weight * sum / static_cast<double>(n);
            });
}

TensorId cross_entropy_gradient(Writer& w, const LossSaved& saved, const LossOptions& plan) {
  const Shard s = shard_of(w, saved.logits, plan);
  std::vector<TensorId> reads{saved.logits, saved.labels, saved.log_sums};
  if (saved.counted != no_tensor) reads.push_back(saved.counted);
  w.compute("cross_entropy_gradient", std::move(reads), {saved.logits}, 3.0 * static_cast<double>(s.rows * s.columns),
            shape_over("cross_entropy_gradient", w.tensor(saved.logits)), [=](const Memory& at, const StepInputs&) {
              const auto* const label = at.as<std::int32_t>(saved.labels);
              const std::size_t n = counted(at, saved, s.rows);
              const auto factor = static_cast<float>(n == 0 ? 0 : plan.weight / static_cast<double>(n));
              auto* const logits = at.as<float>(saved.logits);
              kernels::cross_entropy_gradient(DType::f32, logits, label, at.as<float>(saved.log_sums), logits, s.rows,
                                              s.columns, s.options(at.threads(), factor));
              if (plan.label_smoothing > 0) add_smoothing(logits, label, s, spread(plan), factor);
            });
  return saved.logits;
}

}  // namespace trellis::train
