#include "train/layers/arithmetic.h"

#include <array>

#include "kernels/layers/matmul.h"
#include "kernels/reduce/cast.h"
#include "kernels/reduce/elementwise.h"
#include "text/refuse.h"
#include "train/layers/element_access.h"

namespace trellis::train {

DType factor_type(const Writer& w, std::string_view product, TensorId a, TensorId b) {
  const DType type = w.tensor(a).type, other = w.tensor(b).type;
  if (type != other)
    text::refuse("the factors of the product {} are {} {} and {} {}: expected one type", product, kernels::name(type),
                 w.tensor(a).name, kernels::name(other), w.tensor(b).name);
  return type;
}

void product(Writer& w, std::string_view name, Matrix a, Matrix b, TensorId c, const ProductOptions& o) {
  const std::size_t m = a.transposed ? a.columns : a.rows, k = a.transposed ? a.rows : a.columns;
  const std::size_t n = b.transposed ? b.rows : b.columns;
  const DType from = factor_type(w, name, a.tensor, b.tensor), to = w.tensor(c).type;
  std::vector<TensorId> reads{a.tensor, b.tensor};
  if (o.accumulate) reads.push_back(c);
  schedule::OperationShape shape{.kind = "product",
                                 .rows = m,
                                 .columns = n,
                                 .inner = k,
                                 .type = std::string(kernels::name(from)),
                                 .result = std::string(kernels::name(to)),
                                 .accumulate = o.accumulate && !o.joined};
  if (o.again) shape.inputs = 1;
  if (o.kept) shape.outputs = 0;
  if (!o.type.empty()) shape.type = o.type;
  w.compute(
      name, std::move(reads), {c}, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      std::move(shape),
      [=](const Memory& at, const StepInputs&) {
        kernels::matmul({m, n, k}, from, {at.at(a.tensor), a.columns, a.transposed},
                        {at.at(b.tensor), b.columns, b.transposed}, to, at.at(c), n,
                        {.alpha = o.alpha, .beta = o.accumulate ? 1.0F : 0.0F, .threads = at.threads()});
      },
      o.model_part);
}

TensorId added(Writer& w, std::string_view name, TensorId a, TensorId b) {
  if (w.tensor(a).type != w.tensor(b).type) {
    a = cast_to(w, "widened", a, DType::f32), b = cast_to(w, "widened", b, DType::f32);
  }
  const Tensor like = w.tensor(a);
  const TensorId sum = w.tensor(std::string(name), like.type, like.rows, like.columns);
  w.compute(name, {a, b}, {sum}, static_cast<double>(like.elements()), fused_over("add", like),
            [=, n = like.elements(), type = like.type](const Memory& at, const StepInputs&) {
              const std::array<const void*, 2> sources{at.at(a), at.at(b)};
              kernels::reduce(kernels::Reduction::sum, type, sources, at.at(sum), n, {.threads = at.threads()});
            });
  return sum;
}

void add_into(Writer& w, std::string_view name, TensorId from, TensorId to, double factor) {
  const std::size_t n = w.tensor(from).elements();
  const DType source = w.tensor(from).type, target = w.tensor(to).type;
  w.compute(name, {from, to}, {to}, 2.0 * static_cast<double>(n), fused_over("add", w.tensor(to)),
            [=](const Memory& at, const StepInputs&) {
              if (source == target)
                return kernels::axpy(target, factor, at.at(from), at.at(to), n, {.threads = at.threads()});
              typed(source, at.at(from), [&](const auto* x) {
                typed(target, at.at(to), [&](auto* y) {
                  for (std::size_t i = 0; i < n; ++i) put(get(y[i]) + static_cast<float>(factor) * get(x[i]), y[i]);
                });
              });
            });
}

TensorId cast_to(Writer& w, std::string_view name, TensorId t, DType type) {
  const Tensor like = w.tensor(t);
  if (like.type == type) return t;
  const TensorId to = w.tensor(std::string(name), type, like.rows, like.columns);
  schedule::OperationShape shape = fused_over("cast", like);
  shape.result = kernels::name(type);
  w.compute(name, {t}, {to}, 0, std::move(shape),
            [=, n = like.elements(), from = like.type](const Memory& at, const StepInputs&) {
              kernels::cast(from, at.at(t), type, at.at(to), n, {.threads = at.threads()});
            });
  return to;
}

void zero(Writer& w, std::string_view name, TensorId t) {
  const Tensor like = w.tensor(t);
  w.compute(name, {}, {t}, 0, shape_over("fill", like),
            [=, n = like.elements(), type = like.type](const Memory& at, const StepInputs&) {
              kernels::fill(type, at.at(t), n, 0, at.threads());
            });
}

TensorId activated(Writer& w, std::string_view name, TensorId x, kernels::Activation a) {
  const Tensor like = w.tensor(x);
  const TensorId y = w.tensor(std::string(name), like.type, like.rows, like.columns);
  w.compute("gelu", {x}, {y}, 8.0 * static_cast<double>(like.elements()), fused_over("gelu", like),
            [=, n = like.elements(), type = like.type](const Memory& at, const StepInputs&) {
              kernels::activate(a, type, at.at(x), at.at(y), n, at.threads());
            });
  return y;
}

TensorId activation_gradient(Writer& w, std::string_view name, TensorId dy, TensorId x, kernels::Activation a) {
  const Tensor like = w.tensor(x);
  const TensorId dx = w.tensor(std::string(name), like.type, like.rows, like.columns);
  w.compute("gelu_gradient", {dy, x}, {dx}, 12.0 * static_cast<double>(like.elements()),
            fused_over("gelu_gradient", like),
            [=, n = like.elements(), type = like.type](const Memory& at, const StepInputs&) {
              kernels::activate_gradient(a, type, at.at(dy), at.at(x), at.at(dx), n, at.threads());
            });
  return dx;
}

void add_bias(Writer& w, std::string_view name, TensorId y, TensorId bias, std::size_t columns) {
  const std::size_t rows = w.tensor(y).rows;
  const DType type = w.tensor(y).type, from = w.tensor(bias).type;
  w.compute(name, {y, bias}, {y}, static_cast<double>(rows * columns), shape_over("bias", w.tensor(y)),
            [=](const Memory& at, const StepInputs&) {
              typed(type, at.at(y), [&](auto* out) {
                typed(from, at.at(bias), [&](const auto* b) {
                  for (std::size_t r = 0; r < rows; ++r, out += columns)
                    for (std::size_t c = 0; c < columns; ++c) put(get(out[c]) + get(b[c]), out[c]);
                });
              });
            });
}

void add_bias_gradient(Writer& w, std::string_view name, TensorId dy, TensorId gradient, std::size_t columns) {
  const std::size_t rows = w.tensor(dy).rows;
  const DType type = w.tensor(dy).type, sum = w.tensor(gradient).type;
  w.compute(name, {dy, gradient}, {gradient}, static_cast<double>(rows * columns), fused_over("reduce", w.tensor(dy)),
            [=](const Memory& at, const StepInputs&) {
              std::vector<float> sums(columns, 0);
              typed(type, at.at(dy), [&](const auto* row) {
                for (std::size_t r = 0; r < rows; ++r, row += columns)
                  for (std::size_t c = 0; c < columns; ++c) sums[c] += get(row[c]);
              });
              typed(sum, at.at(gradient), [&](auto* to) {
                for (std::size_t c = 0; c < columns; ++c) put(get(to[c]) + sums[c], to[c]);
              });
            });
}

TensorId dropped(Writer& w, std::string_view name, TensorId t, const Dropout& d) {
  if (d.rate <= 0) return t;
  const Tensor like = w.tensor(t);
  const TensorId to = w.tensor(std::string(name), like.type, like.rows, like.columns);
  const auto below = static_cast<std::uint32_t>(d.rate * 65536);
  w.compute(name, {t}, {to}, static_cast<double>(like.elements()), fused_over("dropout", like),
            [=, type = like.type, rows = like.rows, columns = like.columns](const Memory& at, const StepInputs& now) {
              const kernels::RandomKey key =
                  kernels::random_key({.seed = d.seed, .step = static_cast<std::uint64_t>(now.step), .tensor = d.site});
              const float scale = static_cast<float>(1 / (1 - d.rate));
              typed(type, at.at(to), [&](auto* out) {
                const auto* in = static_cast<decltype(out)>(at.at(t));
                for (std::size_t r = d.row; r < d.row + rows; ++r) {
                  const std::size_t first = (d.part.position(r / d.batch) * d.batch + r % d.batch) * columns;
                  for (std::size_t c = 0; c < columns; ++c, ++in, ++out)
                    put(kernels::random16(key, first + c) < below ? 0.0F : get(*in) * scale, *out);
                }
              });
            });
  return to;
}

}  // namespace trellis::train
