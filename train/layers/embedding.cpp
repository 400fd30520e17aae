#include "train/layers/embedding.h"

#include <algorithm>

#include "kernels/layers/embedding.h"
#include "text/refuse.h"
#include "train/layers/arithmetic.h"
#include "train/layers/linear.h"

namespace trellis::train {
namespace {

// The positions of the rows of a tensor rank's part. Row r of the part is row `first` + r of all tensor ranks' rows.
std::vector<std::int32_t> positions_of(const SequencePart& part, std::size_t first, std::size_t rows,
                                       std::size_t batch) {
  std::vector<std::int32_t> ids(rows);
  for (std::size_t r = 0; r < rows; ++r) ids[r] = static_cast<std::int32_t>(part.position((first + r) / batch));
  return ids;
}

}  // namespace

Embedding::Embedding(Writer& w, Parameters& parameters, const EmbeddingOptions& o)
    : options_(o), part_(sequence_part(o.sequence, w.shape(), w.place())) {
  // In generation, a run may begin at any position of the cache: the cache counts as the whole sequence.
  if (o.cached > 0) part_.whole = o.cached;
  weight_ = &parameters.add(w, {.name = o.name + ".weight",
                                .rows = o.vocabulary,
                                .columns = o.hidden,
                                .split = Split::rows,
                                .initial = {Initial::Kind::normal, o.deviation},
                                .part = uneven_part(o.vocabulary, w)});
  if (o.types > 0)
    types_ = &parameters.add(w, {.name = o.type_name + ".weight",
                                 .rows = o.types,
                                 .columns = o.hidden,
                                 .initial = {Initial::Kind::normal, o.deviation},
                                 .partial = o.scattered});
  if (o.positions == 0) return;
  if (o.positions < std::max(o.sequence, o.cached))
    text::refuse("max_position_embeddings is {}: expected at least {} {}", o.positions,
                 o.cached > 0 ? "as many positions as are generated," : "seq_length", std::max(o.sequence, o.cached));
  positions_ = &parameters.add(w, {.name = o.position_name + ".weight",
                                   .rows = o.positions,
                                   .columns = o.hidden,
                                   .initial = {Initial::Kind::normal, o.deviation},
                                   .partial = o.scattered});
}

// The number of rows of all tensor ranks together.
std::size_t Embedding::rows_of_all(const Writer& w) const {
  return options_.sequence * options_.batch / static_cast<std::size_t>(w.shape().context);
}

std::size_t Embedding::rows_here(const Writer& w) const {
  return rows_of_all(w) / (options_.scattered ? static_cast<std::size_t>(w.shape().tensor) : 1);
}

std::size_t Embedding::first_here(const Writer& w) const {
  return options_.scattered ? rows_here(w) * static_cast<std::size_t>(w.place().tensor) : 0;
}

TensorId Embedding::forward(Writer& w, TensorId tokens, TensorId types) const {
  const std::size_t rows = rows_of_all(w);
  const DType type = w.tensor(weight_->value).type;
  const TensorSlice s = weight_->slice;
  TensorId x = w.tensor("embedded", type, rows, options_.hidden);
  w.compute("embedding", {tokens, weight_->value}, {x}, 0, shape_over("embedding", w.tensor(x)),
            [=, v = weight_->value](const Memory& at, const StepInputs&) {
              kernels::embedding(
                  {type, s.row_count, s.columns, static_cast<std::int64_t>(s.row), static_cast<std::int64_t>(s.rows)},
                  at.at(v), at.as<std::int32_t>(tokens), at.at(x), rows);
            });
  if (w.shape().tensor > 1 && options_.scattered) {
    const TensorId own = w.tensor("own_rows", type, rows_here(w), options_.hidden);
    w.reduce_scatter("scatter", Axis::tensor, x, own);
    x = own;
  } else if (w.shape().tensor > 1) {
    w.all_reduce("sum", Axis::tensor, x);
  }
  const std::size_t here = rows_here(w), first = first_here(w);
  if (types_ != nullptr) {
    const TensorId kinds = w.tensor("types", type, here, options_.hidden);
    w.compute("types", {types, types_->value}, {kinds}, 0, shape_over("embedding", w.tensor(kinds)),
              [=, p = types_->slice, v = types_->value](const Memory& at, const StepInputs&) {
                kernels::embedding({type, p.rows, p.columns}, at.at(v), at.as<std::int32_t>(types) + first,
                                   at.at(kinds), here);
              });
    x = added(w, "add_types", x, kinds);
  }
  if (positions_ == nullptr) return x;
  const TensorId places = w.tensor("positions", type, here, options_.hidden);
  w.compute("positions", {positions_->value}, {places}, 0, shape_over("embedding", w.tensor(places)),
            [=, p = positions_->slice, v = positions_->value, b = options_.batch, later = options_.cached > 0,
             part = part_](const Memory& at, const StepInputs& now) {
              const std::size_t before = later ? static_cast<std::size_t>(now.step) * b : 0;
              kernels::embedding({type, p.rows, p.columns}, at.at(v),
                                 positions_of(part, before + first, here, b).data(), at.at(places), here);
            });
  return added(w, "add_positions", x, places);
}

void Embedding::backward(Writer& w, TensorId dy, TensorId tokens, TensorId types) const {
  if (weight_->frozen) return;
  const DType type = w.tensor(dy).type, sum = w.tensor(weight_->gradient).type;
  const std::size_t here = rows_here(w), first = first_here(w);
  if (types_ != nullptr)
    w.compute("types_gradient", {dy, types, types_->gradient}, {types_->gradient}, 0,
              shape_over("embedding_gradient", w.tensor(dy)),
              [=, p = types_->slice, g = types_->gradient](const Memory& at, const StepInputs&) {
                kernels::embedding_gradient({sum, p.rows, p.columns}, at.at(dy), at.as<std::int32_t>(types) + first,
                                            at.at(g), here, {.dy = type, .accumulate = true});
              });
  if (positions_ != nullptr) {
    w.compute("positions_gradient", {dy, positions_->gradient}, {positions_->gradient}, 0,
              shape_over("embedding_gradient", w.tensor(dy)),
              [=, p = positions_->slice, g = positions_->gradient, b = options_.batch, part = part_](
                  const Memory& at, const StepInputs&) {
                kernels::embedding_gradient({sum, p.rows, p.columns}, at.at(dy),
                                            positions_of(part, first, here, b).data(), at.at(g), here,
                                            {.dy = type, .accumulate = true});
              });
  }
  const TensorId all = options_.scattered ? gathered_rows(w, dy) : dy;
  const std::size_t rows = w.tensor(all).rows;
  const TensorSlice s = weight_->slice;
  w.compute("embedding_gradient", {all, tokens, weight_->gradient}, {weight_->gradient},
            static_cast<double>(rows * s.columns), shape_over("embedding_gradient", w.tensor(all)),
            [=, g = weight_->gradient](const Memory& at, const StepInputs&) {
              kernels::embedding_gradient(
                  {sum, s.row_count, s.columns, static_cast<std::int64_t>(s.row), static_cast<std::int64_t>(s.rows)},
                  at.at(all), at.as<std::int32_t>(tokens), at.at(g), rows, {.dy = type, .accumulate = true});
            });
}

}  // namespace trellis::train
