#include "sim/core/programs/attention.h"

#include <algorithm>
#include <cmath>

#include "text/refuse.h"

namespace trellis::sim::core::attention {

double scale() { return 1 / std::sqrt(static_cast<double>(head_size)); }

AttentionSizes sizes_of(const Arguments& a) {
  const AttentionSizes s{a.count("seq_len"), a.count("heads"), a.type("type"), a.word("causal") == "yes"};
  if (s.length % lanes != 0) text::refuse("attention: seq_len={}; expected a multiple of 128", s.length);
  return s;
}

TensorOperand interleaved(const TensorOperand& table, std::int64_t first, std::int64_t blocks) {
  TensorOperand part = table.row_range(first, lanes);
  part.view.dims = 2;
  part.view.dim[0] = {static_cast<std::int32_t>(blocks), static_cast<std::int32_t>(lanes * head_size)};
  part.view.dim[1] = {static_cast<std::int32_t>(head_size), 1};
  return part;
}

TensorOperand mask(ProgramBuilder& b) {
  const TensorOperand mask = b.tile("mask", DType::f32, lanes, lanes);
  fill(b, mask, 0);
  b.add("affine_select", Engine::gpsimd, {mask}, {mask},
        {number(Key::rows, 1), number(Key::step, -1), alu(AluOp::is_ge, Key::compare), number(Key::value, -1e30)});
  return mask;
}

AttentionInputs::AttentionInputs(const AttentionSizes& s, CoreMemory& memory)
    : sizes(s),
      q_(numbers_of(memory, "q", s.type)),
      k_(numbers_of(memory, "k", s.type)),
      v_(numbers_of(memory, "v", s.type)) {}

// An exponent is a sum of 128 products, times the scale, less the largest. Its error bound counts a rounding of each
// product and each sum, and the roundings of the scaling and the difference.
ReferenceSoftmaxRow row_of(const AttentionInputs& in, std::int64_t head, std::int64_t query) {
  ReferenceSoftmaxRow row;
  const std::int64_t seen = in.sizes.causal ? query + 1 : in.sizes.length;
  double most = -1e300, sizes = 0, largest = 0;
  for (std::int64_t key = 0; key < seen; ++key) {
    double sum = 0, size = 0;
    for (std::int64_t d = 0; d < head_size; ++d) {
      const double term = in.query(head, query, d) * in.key(head, key, d);
      sum += term;
      size += std::abs(term);
    }
    row.weights.push_back(sum * scale());
    most = std::max(most, row.weights.back());
    sizes = std::max(sizes, size * scale());
    largest = std::max(largest, std::abs(row.weights.back()));
  }
  double total = 0;
  for (double& w : row.weights) total += w = std::exp(w - most);
  for (double& w : row.weights) w /= total;
  row.lse = most + std::log(total);
  row.exponent_error = unit_f32 * (static_cast<double>(head_size + 2) * sizes + 6 * largest);
  return row;
}

}  // namespace trellis::sim::core::attention
