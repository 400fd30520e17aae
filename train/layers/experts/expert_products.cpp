#include "train/layers/experts/expert_products.h"

#include <algorithm>
#include <cmath>

#include "kernels/layers/matmul.h"
#include "train/layers/arithmetic.h"

namespace trellis::train {
namespace {

// One product for each expert, with as many rows as are expected.
schedule::OperationShape shape_of(double rows, std::size_t columns, std::size_t inner, std::size_t experts, DType from,
                                  DType to) {
  return {.kind = "product",
          .rows = static_cast<std::uint64_t>(std::max(1.0, std::ceil(rows))),
          .columns = columns,
          .inner = inner,
          .batch = experts,
          .type = std::string(kernels::name(from)),
          .result = std::string(kernels::name(to))};
}

}  // namespace

std::vector<ExpertRows::Run> ExpertRows::runs(const Memory& at) const {
  std::vector<Run> all;
  std::size_t next = 0;
  for (std::size_t e = 0; e < experts; ++e) {
    std::size_t rows = fixed;
    if (fixed == 0)
      for (std::size_t r = 0; r < ranks; ++r)
        rows += static_cast<std::size_t>(at.as<std::int32_t>(counts)[r * experts + e]);
    all.push_back({next, rows});
    next += rows;
  }
  return all;
}

std::size_t ExpertRows::total(const Memory& at) const {
  const Run last = runs(at).back();
  return last.first + last.rows;
}

void expert_product(Writer& w, std::string_view name, TensorId a, const std::vector<const Parameter*>& of,
                    const std::vector<TensorId>& weights, bool back, TensorId c, const ExpertRows& rows,
                    const ExpertProductOptions& o) {
  const TensorSlice& one = of[0]->slice;
  const std::size_t n = back ? one.column_count : one.row_count, k = back ? one.row_count : one.column_count;
  const DType from = factor_type(w, name, a, weights[0]), to = w.tensor(c).type;
  std::vector<TensorId> reads{a};
  reads.insert(reads.end(), weights.begin(), weights.end());
  if (o.accumulate) reads.push_back(c);
  rows.read_by(reads);
  schedule::OperationShape shape = shape_of(rows.expected, n, k, rows.experts, from, to);
  shape.accumulate = o.accumulate && !o.joined;
  if (o.again) shape.inputs = 1;
  const double flops = 2 * rows.expected * static_cast<double>(rows.experts * n * k);
  w.compute(
      name, std::move(reads), {c}, flops, std::move(shape),
      [=, columns = one.column_count](const Memory& at, const StepInputs&) {
        const auto runs = rows.runs(at);
        for (std::size_t e = 0; e < runs.size(); ++e) {
          if (runs[e].rows == 0) continue;
          kernels::matmul(
              {runs[e].rows, n, k}, from, {at.as<std::byte>(a) + runs[e].first * k * kernels::size_of(from), k},
              {at.at(weights[e]), columns, !back}, to, at.as<std::byte>(c) + runs[e].first * n * kernels::size_of(to),
              n, {.beta = o.accumulate ? 1.0F : 0.0F, .threads = at.threads()});
        }
      },
      rows.taken);
}

void expert_gradients(Writer& w, std::string_view name, TensorId dy, TensorId x,
                      const std::vector<const Parameter*>& of, const ExpertRows& rows, float factor) {
  if (of[0]->frozen) return;
  const TensorSlice& one = of[0]->slice;
  const std::size_t m = one.row_count, n = one.column_count;
  const DType from = factor_type(w, name, dy, x), to = w.tensor(of[0]->gradient).type;
  std::vector<TensorId> reads{dy, x}, gradients;
  std::vector<bool> adds;
  for (const Parameter* p : of) {
    gradients.push_back(p->gradient);
    adds.push_back(!(p->overwritten && w.first_term(p->gradient)));
    if (adds.back()) reads.push_back(p->gradient);
  }
  rows.read_by(reads);
  schedule::OperationShape shape =
      shape_of(static_cast<double>(m), n, static_cast<std::size_t>(std::max(1.0, std::ceil(rows.expected))),
               rows.experts, from, to);
  shape.accumulate = adds[0];
  const double flops = 2 * rows.expected * static_cast<double>(rows.experts * m * n);
  w.compute(name, std::move(reads), gradients, flops, std::move(shape), [=](const Memory& at, const StepInputs&) {
    const auto runs = rows.runs(at);
    for (std::size_t e = 0; e < runs.size(); ++e)  // the product of an expert without rows is 0
      kernels::matmul({m, n, runs[e].rows}, from,
                      {at.as<std::byte>(dy) + runs[e].first * m * kernels::size_of(from), m, true},
                      {at.as<std::byte>(x) + runs[e].first * n * kernels::size_of(from), n}, to, at.at(gradients[e]), n,
                      {.alpha = factor, .beta = adds[e] ? 1.0F : 0.0F, .threads = at.threads()});
  });
}

void over_expert_rows(Writer& w, std::string_view name, std::string_view kind, std::vector<TensorId> reads,
                      std::vector<TensorId> writes, double flops_each, const ExpertRows& rows,
                      std::function<void(const Memory&, std::size_t elements)> body) {
  const Tensor like = w.tensor(writes[0]);
  const double all = rows.expected * static_cast<double>(rows.experts);
  schedule::OperationShape shape =
      shape_over(kind, like.type, static_cast<std::size_t>(std::max(1.0, std::ceil(all))), like.columns);
  shape.fused = true;
  rows.read_by(reads);
  w.compute(name, std::move(reads), std::move(writes), flops_each * all * static_cast<double>(like.columns),
            std::move(shape), [=, columns = like.columns, body = std::move(body)](const Memory& at, const StepInputs&) {
              body(at, rows.total(at) * columns);
            });
}

}  // namespace trellis::train
