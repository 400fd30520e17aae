#include "train/layers/linear.h"

#include "train/layers/arithmetic.h"
#include "train/layers/fp8/quantize.h"

namespace trellis::train {
namespace {

std::size_t ranks(const Writer& w) { return static_cast<std::size_t>(w.shape().tensor); }
std::size_t rows_of(const Writer& w, TensorId t) { return w.tensor(t).rows; }

Matrix whole(const Parameter& p, bool transposed) {
  return {p.value, p.slice.row_count, p.slice.column_count, transposed};
}

bool rounds(const LinearOptions& o) { return o.fp8 != Fp8Scaling::none; }

// Rounds a product's factor x or dy. along_rows: the product sums over its rows, else over its columns. split: each
// tensor rank has a part of it.
TensorId rounded(Writer& w, const LinearOptions& o, std::string_view name, TensorId t, Fp8Format format,
                 bool along_rows, bool split) {
  if (!rounds(o)) return t;
  return quantized(w, name, t,
                   {.rows = w.tensor(t).rows,
                    .columns = w.tensor(t).columns,
                    .format = format,
                    .scaling = o.fp8,
                    .along_rows = along_rows,
                    .split = split});
}

// What a product of rounded factors is priced as; e4m3 and e5m2 take the same time.
std::string_view price_type(const LinearOptions& o) { return rounds(o) ? type_name(Fp8Format::e4m3, o.fp8) : ""; }

// The weight as a factor of a product; with autocast, a copy in bf16 that lives until the product.
Matrix factor(Writer& w, const Parameter& p, bool transposed, const LinearOptions& o) {
  Matrix m = whole(p, transposed);
  if (rounds(o))
    m.tensor = quantized(w, "fp8_weight", p.value,
                         {.rows = p.slice.row_count,
                          .columns = p.slice.column_count,
                          .scaling = o.fp8,
                          .along_rows = !transposed,
                          .split = true});
  else if (o.narrow)
    m.tensor = cast_to(w, "narrow_weight", p.value, DType::bf16);
  return m;
}

// dW += dy^T x, and db += the sum of dy's rows.
void weight_gradients(Writer& w, const Parameter& weight, const Parameter* bias, TensorId dy, TensorId x,
                      TensorId bias_dy, std::string_view type) {
  product(w, "dweight", {dy, rows_of(w, dy), weight.slice.row_count, true},
          {x, rows_of(w, x), weight.slice.column_count}, weight.gradient,
          {.accumulate = !(weight.overwritten && w.first_term(weight.gradient)), .type = type});
  if (bias != nullptr) add_bias_gradient(w, "dbias", bias_dy, bias->gradient, bias->slice.row_count);
}

}  // namespace

TensorId gathered_rows(Writer& w, TensorId rows) {
  if (ranks(w) == 1) return rows;
  const Tensor like = w.tensor(rows);
  const TensorId all = w.tensor("gathered", like.type, like.rows * ranks(w), like.columns);
  w.all_gather("gather", Axis::tensor, rows, all);
  return all;
}

TensorId summed_parts(Writer& w, TensorId part, DType type, bool sequence, const std::function<void()>& beside) {
  if (ranks(w) == 1) {
    if (beside) beside();
    return cast_to(w, "narrowed", part, type);
  }
  const Tensor like = w.tensor(part);
  if (sequence) {
    const TensorId own = w.tensor("summed", like.type, like.rows / ranks(w), like.columns);
    const int ticket = w.begin("scatter", {.kind = Exchange::Kind::reduce_scatter,
                                           .axis = Axis::tensor,
                                           .transfers = {{{part, 0}, {own, 0}, w.tensor(own).elements(), like.type}}});
    if (beside) beside();
    w.wait(ticket);
    return cast_to(w, "narrowed", own, type);
  }
  if (!beside) {
    w.all_reduce("sum", Axis::tensor, part);
    return cast_to(w, "narrowed", part, type);
  }
  const int ticket = w.begin("sum", {.kind = Exchange::Kind::all_reduce,
                                     .axis = Axis::tensor,
                                     .transfers = {{{part, 0}, {part, 0}, like.elements(), like.type}}});
  beside();
  w.wait(ticket);
  return cast_to(w, "narrowed", part, type);
}

ColumnParallel::ColumnParallel(Writer& w, Parameters& parameters, std::size_t inputs,
                               const std::vector<Output>& outputs, const LinearOptions& options)
    : inputs_(inputs), options_(options), outputs_(outputs) {
  for (const Output& o : outputs) {
    weights_.push_back(&parameters.add(w, {.name = o.name + ".weight",
                                           .rows = o.outputs,
                                           .columns = inputs,
                                           .split = Split::rows,
                                           .initial = {Initial::Kind::normal, options.deviation},
                                           .owner = o.owner,
                                           .part = o.part,
                                           .of_products = true}));
    biases_.push_back(!options.bias ? nullptr
                                    : &parameters.add(w, {.name = o.bias_name.empty() ? o.name + ".bias" : o.bias_name,
                                                          .rows = o.outputs,
                                                          .split = Split::rows,
                                                          .initial = {Initial::Kind::zeros},
                                                          .part = o.part}));
    adapters_.emplace_back(w, parameters, options.adapters, o.name, inputs, o.outputs, Split::rows, o.part);
    trained_ = trained_ || !weights_.back()->frozen || !adapters_.back().none();
  }
}

// x as products take it: in bf16 under autocast, and with sequence parallelism gathered.
TensorId ColumnParallel::gathered(Writer& w, TensorId x) const {
  const TensorId own = options_.narrow ? cast_to(w, "narrow_x", x, DType::bf16) : x;
  return options_.sequence ? gathered_rows(w, own) : own;
}

std::vector<Matrix> ColumnParallel::factors(Writer& w, bool transposed) const {
  std::vector<Matrix> all;
  for (const Parameter* p : weights_) all.push_back(factor(w, *p, transposed, options_));
  return all;
}

std::vector<TensorId> ColumnParallel::forward(Writer& w, TensorId x) const {
  const TensorId all = gathered(w, x);
  const std::vector<Matrix> matrices = factors(w, true);
  const TensorId in = rounded(w, options_, "fp8_x", all, Fp8Format::e4m3, false, false);
  std::vector<TensorId> ys;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Writer::Scope scope(w, outputs_[i].name.substr(outputs_[i].name.rfind('.') + 1));
    const DType type = outputs_[i].own_type ? outputs_[i].type : w.tensor(all).type;
    const TensorId y = w.tensor("y", type, rows_of(w, all), local_outputs(i));
    product(w, "matmul", {in, rows_of(w, all), inputs_}, matrices[i], y,
            {.again = i > 0, .type = price_type(options_), .model_part = weights_[i]->share});
    adapters_[i].forward(w, all, y);
    if (biases_[i] != nullptr) add_bias(w, "add_bias", y, biases_[i]->value, local_outputs(i));
    ys.push_back(y);
  }
  return ys;
}

TensorId ColumnParallel::backward(Writer& w, const std::vector<TensorId>& from, TensorId x) const {
  const DType type = w.tensor(x).type;
  std::vector<TensorId> dys = from;
  if (options_.narrow)
    for (TensorId& dy : dys) dy = cast_to(w, "narrow_dy", dy, DType::bf16);
  const std::vector<Matrix> matrices = factors(w, false);
  const std::size_t rows = rows_of(w, dys[0]);
  const bool wide = dys.size() > 1 || ranks(w) > 1;
  const TensorId dx = w.tensor("dx", wide && !options_.bf16_sums ? DType::f32 : type, rows, inputs_);
  std::vector<TensorId> narrow;
  for (std::size_t i = 0; i < dys.size(); ++i) {
    const float factor = 1.0F / static_cast<float>(outputs_[i].part ? outputs_[i].part->copies : 1);
    const TensorId dy = rounded(w, options_, "fp8_dy", dys[i], Fp8Format::e5m2, false, true);
    product(w, "dx", {dy, rows, local_outputs(i)}, matrices[i], dx,
            {.alpha = factor,
             .accumulate = i > 0,
             .kept = i + 1 < dys.size(),
             .joined = i > 0,
             .type = price_type(options_)});
    narrow.push_back(adapters_[i].backward(w, dys[i], dx, factor));
  }
  return summed_parts(w, dx, type, options_.sequence, [&] {
    if (!trained_) return;
    w.weight_gradient([this, dys, x, narrow](Writer& writer) {
      const TensorId all = gathered(writer, x);
      TensorId in = no_tensor;
      for (std::size_t i = 0; i < dys.size(); ++i) {
        if (!weights_[i]->frozen) {
          if (in == no_tensor) in = rounded(writer, options_, "fp8_x", all, Fp8Format::e4m3, true, false);
          const TensorId dy = rounded(writer, options_, "fp8_dy", dys[i], Fp8Format::e5m2, true, true);
          weight_gradients(writer, *weights_[i], biases_[i], dy, in, dys[i], price_type(options_));
        }
        adapters_[i].gradients(writer, dys[i], all, narrow[i]);
      }
    });
  });
}

RowParallel::RowParallel(Writer& w, Parameters& parameters, const std::string& name, std::size_t inputs,
                         std::size_t outputs, const LinearOptions& options, const std::optional<TensorPart>& of_inputs)
    : outputs_(outputs),
      options_(options),
      adapter_(w, parameters, options.adapters, name, inputs, outputs, Split::columns, of_inputs) {
  weight_ = &parameters.add(w, {.name = name + ".weight",
                                .rows = outputs,
                                .columns = inputs,
                                .split = Split::columns,
                                .initial = {Initial::Kind::normal, options.deviation},
                                .part = of_inputs,
                                .of_products = true});
  if (options.bias)
    bias_ = &parameters.add(
        w, {.name = name + ".bias", .rows = outputs, .initial = {Initial::Kind::zeros}, .partial = options.sequence});
}

TensorId RowParallel::forward(Writer& w, TensorId given) const {
  const TensorId x = options_.narrow ? cast_to(w, "narrow_x", given, DType::bf16) : given;
  const DType type = w.tensor(x).type;
  const TensorId part =
      w.tensor("part", ranks(w) > 1 && !options_.bf16_sums ? DType::f32 : type, rows_of(w, x), outputs_);
  const Matrix weight = factor(w, *weight_, true, options_);
  const TensorId in = rounded(w, options_, "fp8_x", x, Fp8Format::e4m3, false, true);
  product(w, "matmul", {in, rows_of(w, x), weight_->slice.column_count}, weight, part, {.type = price_type(options_)});
  adapter_.forward(w, x, part);
  const TensorId y = summed_parts(w, part, type, options_.sequence);
  if (bias_ != nullptr) add_bias(w, "add_bias", y, bias_->value, outputs_);
  return y;
}

TensorId RowParallel::backward(Writer& w, TensorId given, TensorId x) const {
  const TensorId dy = options_.narrow ? cast_to(w, "narrow_dy", given, DType::bf16) : given;
  const TensorId all = options_.sequence ? gathered_rows(w, dy) : dy;
  const TensorId dx = w.tensor("dx", w.tensor(x).type, rows_of(w, x), weight_->slice.column_count);
  const Matrix weight = factor(w, *weight_, false, options_);
  const TensorId from = rounded(w, options_, "fp8_dy", all, Fp8Format::e5m2, false, false);
  product(w, "dx", {from, rows_of(w, all), outputs_}, weight, dx, {.type = price_type(options_)});
  const TensorId narrow = adapter_.backward(w, all, dx);
  w.weight_gradient([this, all, dy, x, narrow](Writer& writer) {
    if (!weight_->frozen) {
      const TensorId grad = rounded(writer, options_, "fp8_dy", all, Fp8Format::e5m2, true, false);
      const TensorId in = rounded(writer, options_, "fp8_x", x, Fp8Format::e4m3, true, true);
      weight_gradients(writer, *weight_, bias_, grad, in, dy, price_type(options_));
    }
    adapter_.gradients(writer, all, x, narrow);
  });
  return dx;
}

}  // namespace trellis::train
