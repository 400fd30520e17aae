#include "train/step/program.h"

#include "text/words.h"

namespace trellis::train {

std::string_view name(Category c) {
  return text::word_of(
      c, {"parameters", "gradients", "masters", "moments", "inputs", "activations", "scratch", "accelerator"});
}

std::string_view name(Exchange::Kind k) {
  return text::word_of(
      k, {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "all_to_all_v", "shift", "send", "receive"});
}

std::string_view name(Phase p) { return text::word_of(p, {"forward", "backward", "recompute", "update"}); }

schedule::OperationShape shape_over(std::string_view kind, DType type, std::size_t rows, std::size_t columns) {
  if (columns == 1) std::swap(rows, columns);  // a vector is contiguous: it is priced as one row
  return {.kind = std::string(kind), .rows = rows, .columns = columns, .type = std::string(kernels::name(type))};
}

schedule::OperationShape shape_over(std::string_view kind, const Tensor& t) {
  return shape_over(kind, t.type, t.rows, t.columns);
}

schedule::OperationShape fused_over(std::string_view kind, const Tensor& t) {
  schedule::OperationShape shape = shape_over(kind, t);
  shape.fused = true;
  return shape;
}

double StepProgram::bytes_touched(const Operation& o) const {
  double bytes = 0;
  for (const auto* list : {&o.reads, &o.writes})
    for (TensorId t : *list)
      if (tensor(t).category != Category::accelerator) bytes += static_cast<double>(tensor(t).bytes());
  return bytes;
}

double StepProgram::bytes_exchanged(const Operation& o) const {
  double bytes = 0;
  if (o.exchange.kind == Exchange::Kind::all_to_all_v)
    return o.exchange.expected * static_cast<double>(kernels::size_of(o.exchange.transfers.at(0).type));
  for (const Transfer& t : o.exchange.transfers) bytes += static_cast<double>(t.count * kernels::size_of(t.type));
  return bytes;
}

}  // namespace trellis::train
