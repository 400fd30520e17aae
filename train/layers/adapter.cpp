#include <algorithm>

#include "train/layers/arithmetic.h"
#include "train/layers/linear.h"

namespace trellis::train {
namespace {

// A or B as the factor of a product with x: in x's type, which autocast makes narrower than the parameters'.
Matrix factor(Writer& w, std::string_view name, const Parameter& p, bool transposed, TensorId x) {
  return {cast_to(w, name, p.value, w.tensor(x).type), p.slice.row_count, p.slice.column_count, transposed};
}

Matrix rows_of(const Writer& w, TensorId t, bool transposed = false) {
  return {t, w.tensor(t).rows, w.tensor(t).columns, transposed};
}

}  // namespace

Adapter::Adapter(Writer& w, Parameters& parameters, const Adapters& o, const std::string& name, std::size_t inputs,
                 std::size_t outputs, Split split, const std::optional<TensorPart>& part) {
  if (o.rank == 0) return;
  const std::string last = name.substr(name.rfind('.') + 1);
  parameters.add_projection(last);
  if (std::ranges::find(o.targets, last) == o.targets.end()) return;
  const bool columns = split == Split::columns;
  scale_ = static_cast<float>(o.scale);
  a_ = &parameters.add(w, {.name = name + ".lora_A.weight",
                           .rows = o.rank,
                           .columns = inputs,
                           .split = columns ? Split::columns : Split::none,
                           .initial = {Initial::Kind::normal, 1.0 / static_cast<double>(o.rank)},
                           .partial = !columns,
                           .adapter = true,
                           .part = columns ? part : std::nullopt});
  b_ = &parameters.add(w, {.name = name + ".lora_B.weight",
                           .rows = outputs,
                           .columns = o.rank,
                           .split = columns ? Split::none : Split::rows,
                           .initial = {Initial::Kind::zeros},
                           .partial = columns,
                           .adapter = true,
                           .part = columns ? std::nullopt : part});
}

TensorId Adapter::narrowed(Writer& w, TensorId x) const {
  const TensorId u = w.tensor("narrow", w.tensor(x).type, w.tensor(x).rows, a_->slice.row_count);
  product(w, "lora_A", rows_of(w, x), factor(w, "narrow_lora_A", *a_, true, x), u, {.model_part = a_->share});
  return u;
}

void Adapter::forward(Writer& w, TensorId x, TensorId y) const {
  if (none()) return;
  const TensorId u = narrowed(w, x);
  product(w, "lora_B", rows_of(w, u), factor(w, "narrow_lora_B", *b_, true, u), y,
          {.alpha = scale_, .accumulate = true, .model_part = b_->share});
}

TensorId Adapter::backward(Writer& w, TensorId dy, TensorId dx, float times) const {
  if (none()) return no_tensor;
  const TensorId du = w.tensor("dnarrow", w.tensor(dy).type, w.tensor(dy).rows, b_->slice.column_count);
  product(w, "dlora_B", rows_of(w, dy), factor(w, "narrow_lora_B", *b_, false, dy), du, {.alpha = scale_ * times});
  product(w, "dx_lora", rows_of(w, du), factor(w, "narrow_lora_A", *a_, false, du), dx, {.accumulate = true});
  return du;
}

void Adapter::gradients(Writer& w, TensorId dy, TensorId x, TensorId du) const {
  if (none()) return;
  product(w, "dlora_A", rows_of(w, du, true), rows_of(w, x), a_->gradient, {.accumulate = true});
  product(w, "dlora_B", rows_of(w, dy, true), rows_of(w, narrowed(w, x)), b_->gradient,
          {.alpha = scale_, .accumulate = true});
}

}  // namespace trellis::train
