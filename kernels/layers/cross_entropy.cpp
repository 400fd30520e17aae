#include "kernels/layers/cross_entropy.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/layers/elementary.h"
#include "kernels/layers/row_sum_truth.h"
#include "kernels/types/check_arguments.h"
#include "text/refuse.h"

namespace trellis::kernels {
namespace {

template <DType type>
void sums_truth(const RowKernelArguments& s) {
  for (std::size_t row = s.from; row < s.to; ++row) {
    const auto x = [&](std::size_t i) { return element(type, s.reads[0], row * s.columns + i); };
    constexpr float none = -std::numeric_limits<float>::infinity();
    const float most = along_row(s.columns, none, x, [](float a, float b) { return b > a ? b : a; });
    const float taken = most == none ? 0 : most;
    put_element(DType::f32, s.writes[0], row, most);
    put_element(DType::f32, s.writes[1], row,
                row_sum(s.columns, [&](std::size_t i) { return exponential(x(i) - taken); }));
  }
}

template <DType type>
void gradient_truth(const RowKernelArguments& s) {
  const auto& settings = *static_cast<const CrossEntropySettings*>(s.settings);
  for (std::size_t row = s.from; row < s.to; ++row) {
    const auto label = static_cast<const std::int32_t*>(s.reads[1])[row];
    const std::int64_t target = label - settings.first;
    const float log_sum = element(DType::f32, s.reads[2], row);
    for (std::size_t i = 0; i < s.columns; ++i) {
      float slope = 0;
      if (label != settings.ignore) {
        const float share = exponential(element(type, s.reads[0], row * s.columns + i) - log_sum);
        slope = (share - (static_cast<std::int64_t>(i) == target ? 1.0F : 0.0F)) * settings.factor;
      }
      put_element(type, s.writes[0], row * s.columns + i, slope);
    }
  }
}

constexpr CrossEntropySettings sample{-100, 0, 0.25F};

template <DType type>
void add_to(std::vector<RowKernel>& all) {
  const RowOperandSpec logits{type, OperandShape::table}, one{DType::f32, OperandShape::row},
      label{DType::i32, OperandShape::row};
  all.push_back({.name = fmt::format("cross_entropy.{}", name(type)),
                 .reads = {logits},
                 .writes = {one, one},
                 .truth = sums_truth<type>});
  all.push_back({.name = fmt::format("cross_entropy_gradient.{}", name(type)),
                 .reads = {logits, label, one},
                 .writes = {logits},
                 .settings = &sample,
                 .truth = gradient_truth<type>});
}

const RegisteredRows registered({add_to<DType::f32>, add_to<DType::bf16>});

void check_labels(const std::int32_t* labels, std::size_t rows, std::size_t columns, const CrossEntropyOptions& o) {
  const auto here = static_cast<std::int64_t>(columns);
  const std::int64_t classes = o.classes == 0 ? here : o.classes;
  if (columns > std::numeric_limits<std::int32_t>::max() || o.first < 0 || o.first > classes - here)
    text::refuse("cross_entropy: columns {} to {} are no classes of {}", o.first, o.first + here, classes);
  for (std::size_t row = 0; row < rows; ++row)
    if (labels[row] != o.ignore && (labels[row] < 0 || labels[row] >= classes))
      text::refuse("cross_entropy: label {} of row {} is neither below {} nor {}, the ignored", labels[row], row,
                   classes, o.ignore);
}

template <class T>
KernelOperand one_a_row(std::string_view name, const T* data, std::size_t rows) {
  return array_of("cross_entropy", name, data, rows);
}

}  // namespace

void cross_entropy_parts(DType type, const void* logits, const std::int32_t* labels, float* largest, float* sums,
                         float* targets, std::size_t rows, std::size_t columns, const CrossEntropyOptions& o) {
  const std::size_t bytes = check_table("cross_entropy", type, rows, columns) * size_of(type);
  check_threads("cross_entropy", o.threads);
  const KernelOperand out[] = {one_a_row("largest", largest, rows), one_a_row("sums", sums, rows),
                               one_a_row("targets", targets, rows)};
  const KernelOperand in[] = {{"logits", logits, bytes}, one_a_row("labels", labels, rows)};
  check_operands("cross_entropy", out, in, false);
  if (rows == 0) return;
  check_labels(labels, rows, columns, o);
  void* const writes[] = {largest, sums};
  run_rows(fmt::format("cross_entropy.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = writes, .reads = &logits}, o.threads);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int64_t column = labels[row] - o.first;
    const bool here = labels[row] != o.ignore && column >= 0 && column < static_cast<std::int64_t>(columns);
    targets[row] = here ? element(type, logits, row * columns + static_cast<std::size_t>(column)) : 0;
  }
}

CrossEntropyResult cross_entropy_finish(const std::int32_t* labels, const float* largest, const float* sums,
                                        const float* targets, float* losses, float* log_sums, std::size_t rows,
                                        const CrossEntropyOptions& o) {
  const KernelOperand out[] = {one_a_row("losses", losses, losses == nullptr ? 0 : rows),
                               one_a_row("log_sums", log_sums, rows)};
  const KernelOperand in[] = {one_a_row("labels", labels, rows), one_a_row("largest", largest, rows),
                              one_a_row("sums", sums, rows), one_a_row("targets", targets, rows)};
  check_operands("cross_entropy", out, in, true);
  CrossEntropyResult all;
  for (std::size_t row = 0; row < rows; ++row) {
    const double log_sum = largest[row] + std::log(static_cast<double>(sums[row]));
    const bool counts = labels[row] != o.ignore;
    const double loss = counts ? log_sum - targets[row] : 0;
    log_sums[row] = static_cast<float>(log_sum);
    if (losses != nullptr) losses[row] = static_cast<float>(loss);
    all.loss += loss;
    all.counted += counts;
  }
  return all;
}

CrossEntropyResult cross_entropy(DType type, const void* logits, const std::int32_t* labels, float* losses,
                                 float* log_sums, std::size_t rows, std::size_t columns, const CrossEntropyOptions& o) {
  if (o.classes != 0 && o.classes != static_cast<std::int64_t>(columns))
    text::refuse("cross_entropy: {} columns of {} classes; shards take the parts", columns, o.classes);
  check_table("cross_entropy", type, rows, columns);
  std::vector<float> largest(rows), sums(rows), targets(rows);
  cross_entropy_parts(type, logits, labels, largest.data(), sums.data(), targets.data(), rows, columns, o);
  return cross_entropy_finish(labels, largest.data(), sums.data(), targets.data(), losses, log_sums, rows, o);
}

void cross_entropy_gradient(DType type, const void* logits, const std::int32_t* labels, const float* log_sums,
                            void* dlogits, std::size_t rows, std::size_t columns, const CrossEntropyOptions& o) {
  const std::size_t bytes = check_table("cross_entropy_gradient", type, rows, columns) * size_of(type);
  check_threads("cross_entropy_gradient", o.threads);
  const KernelOperand out{"dlogits", dlogits, bytes}, in{"logits", logits, bytes};
  const KernelOperand others[] = {one_a_row("labels", labels, rows), one_a_row("log_sums", log_sums, rows)};
  check_operands("cross_entropy_gradient", {&out, 1}, {&in, 1}, true);
  check_operands("cross_entropy_gradient", {&out, 1}, others, false);
  if (rows == 0) return;
  check_labels(labels, rows, columns, o);
  const CrossEntropySettings settings{o.ignore, o.first, o.factor};
  const void* const reads[] = {logits, labels, log_sums};
  run_rows(fmt::format("cross_entropy_gradient.{}", name(type)),
           {.rows = rows, .columns = columns, .writes = &dlogits, .reads = reads, .settings = &settings}, o.threads);
}

}  // namespace trellis::kernels
