// Kinds for microscaling (MX) types: groups of 32 numbers, 8 partitions by 4 elements, share a scale. The scale of
// partitions 8g to 8g + 7 of a quadrant is in its partition g.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/layers/matmul.h"
#include "kernels/types/mx.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"
#include "sim/core/arithmetic/psum_accumulation.h"

namespace trellis::sim::core {
namespace {

constexpr std::int64_t quadrant = 32, group_rows = 8, group_columns = 4;

std::int64_t scale_row(std::int64_t row) { return row / quadrant * quadrant + row % quadrant / group_rows; }

bool is_mx(DType d) { return d == DType::f8e4m3fn || d == DType::f8e5m2; }
kernels::MxFormat mx_format(DType d) {
  return d == DType::f8e5m2 ? kernels::MxFormat::mxfp8_e5m2 : kernels::MxFormat::mxfp8_e4m3;
}

void check_pair(const BoundInstruction& call, std::string_view what, const View& data, const View& scale) {
  if (!is_mx(data.type)) refuse(call, "{} is {}; expected f8e4m3fn or f8e5m2", what, name(data.type));
  if (scale.type != DType::u8) refuse(call, "{}'s scale is {}; expected u8", what, name(scale.type));
  if (data.rows % quadrant != 0) refuse(call, "{} has {} rows; expected a multiple of 32", what, data.rows);
  if (data.elements() % group_columns != 0)
    refuse(call, "{} has {} elements a row; expected a multiple of 4", what, data.elements());
  expect_rows(call, fmt::format("{}'s scale", what), scale, scale_row(data.rows - 1) + 1);
  expect_elements(call, fmt::format("{}'s scale", what), scale, data.elements() / group_columns);
}

void check_quantize(const BoundInstruction& call) {
  const View &from = call.in(), &to = call.out(0);
  if (!is_16bit(from.type)) refuse(call, "source is {}; expected f16 or bf16", name(from.type));
  expect_rows(call, "out", to, from.rows);
  expect_elements(call, "out", to, from.elements());
  check_pair(call, "out", to, call.out(1));
}

void quantize(const BoundInstruction& call, CoreMemory& memory) {
  const View &from = call.in(), &to = call.out(0), &scales = call.out(1);
  const auto n = static_cast<std::size_t>(from.elements());
  std::vector<float> rows(n * group_rows);
  std::vector<std::byte> out(n * group_rows);
  std::vector<std::uint8_t> scale(n / group_columns);
  float block[kernels::mx_block];
  std::byte codes[kernels::mx_block];
  for (std::int64_t first = 0; first < from.rows; first += group_rows) {
    for (std::size_t r = 0; r < group_rows; ++r)
      memory.read(from, first + static_cast<std::int64_t>(r), rows.data() + r * n);
    for (std::size_t g = 0; g < scale.size(); ++g) {
      for (std::size_t i = 0; i < kernels::mx_block; ++i)
        block[i] = rows[i / group_columns * n + g * group_columns + i % group_columns];
      kernels::mx_encode(mx_format(to.type), block, codes, &scale[g], kernels::mx_block,
                         {.scale = kernels::MxScaleRule::trainium});
      for (std::size_t i = 0; i < kernels::mx_block; ++i)
        out[i / group_columns * n + g * group_columns + i % group_columns] = codes[i];
    }
    for (std::size_t r = 0; r < group_rows; ++r)
      memory.write_bytes(to, first + static_cast<std::int64_t>(r), out.data() + r * n);
    memory.write_bytes(scales, scale_row(first), reinterpret_cast<const std::byte*>(scale.data()));
  }
}

const RegisteredInstruction quantize_mx({.name = "quantize_mx",
                                         .summary = "out, scale = source in f8 by groups of 8 partitions x 4 elements",
                                         .engines = {Engine::vector},
                                         .outputs = {{"out", false, in_sbuf}, {"scale", false, in_sbuf}},
                                         .inputs = {{"source", false, in_sbuf}},
                                         .generation = 4,
                                         .check = check_quantize,
                                         .run = quantize});

// Inputs: stationary [P x 4M], moving [P x 4N], and their scales.
void check_matmul(const BoundInstruction& call) {
  check_pair(call, "stationary", call.in(0), call.in(2));
  check_pair(call, "moving", call.in(1), call.in(3));
  expect_rows(call, "moving", call.in(1), call.in(0).rows);
  const std::int64_t m = call.in(0).elements() / group_columns;
  if (m % 2 != 0 || m > 128) refuse(call, "stationary has {} columns; expected an even number up to 128", m);
  expect_rows(call, "product", call.out(), m);
  expect_elements(call, "product", call.out(), call.in(1).elements() / group_columns);
}

void check_matmul_on(const BoundInstruction& call, const ChipSpec& chip) {
  const DType type = call.out().type;
  if (type != DType::f32 && type != DType::bf16) refuse(call, "product is {}; expected f32 or bf16", name(type));
  const std::int64_t most = chip.tensor.moving_most * (type == DType::bf16 ? 2 : 1);
  if (call.out().elements() > most)
    refuse(call, "moving has {} columns; expected at most {}", call.out().elements(), most);
}

double matmul_cycles(const BoundInstruction& call, const CostRow&, const ChipSpec& chip) {
  const TensorSpec& t = chip.tensor;
  if (t.row_cycles_mx <= 0) refuse(call, "{} multiplies no MX (tensor.row.mx is 0)", chip.name);
  const std::int64_t rows = std::max(call.in(1).elements() / group_columns,
                                     std::min<std::int64_t>(64, call.in(0).elements() / group_columns));
  return (static_cast<double>(rows * group_columns) * t.row_cycles_mx + t.load_exposed) * array_share(call, t);
}

double matmul_flops(const BoundInstruction& call) {
  return 2.0 * static_cast<double>(call.in(0).rows * call.in(0).elements()) *
         static_cast<double>(call.in(1).elements() / group_columns);
}

// Unpacks the numbers [4P x columns]: row 4p + e has element 4c + e of partition p in column c.
std::vector<float> numbers(CoreMemory& memory, const View& data, const View& scales) {
  const auto n = static_cast<std::size_t>(data.elements()), columns = n / group_columns;
  std::vector<float> all(static_cast<std::size_t>(data.rows) * n), row(n);
  std::vector<std::uint8_t> scale(columns);
  for (std::int64_t r = 0; r < data.rows; ++r) {
    memory.read(data, r, row.data());
    memory.read_bytes(scales, scale_row(r), reinterpret_cast<std::byte*>(scale.data()));
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint8_t s = scale[i / group_columns];
      const float factor = s == 255 ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, s - 127);
      all[(static_cast<std::size_t>(r) * group_columns + i % group_columns) * columns + i / group_columns] =
          row[i] * factor;
    }
  }
  return all;
}

void matmul(const BoundInstruction& call, CoreMemory& memory) {
  const std::vector<float> a = numbers(memory, call.in(0), call.in(2)), b = numbers(memory, call.in(1), call.in(3));
  const auto m = static_cast<std::size_t>(call.out().rows), n = static_cast<std::size_t>(call.out().elements());
  std::vector<float> product(m * n);
  kernels::tile_product({m, n, static_cast<std::size_t>(call.in(0).rows * group_columns)}, DType::f32,
                        {a.data(), m, true}, {b.data(), n}, product.data(), n);
  put_product(call, memory, product.data());
}

const RegisteredInstruction nc_matmul_mx(
    {.name = "nc_matmul_mx",
     .summary = "product = stationary transposed times moving, both microscaled f8",
     .engines = {Engine::tensor},
     .outputs = {{"product", false, in_psum}},
     .inputs = {{"stationary", false, in_sbuf},
                {"moving", false, in_sbuf},
                {"stationary_scale", false, in_sbuf},
                {"moving_scale", false, in_sbuf}},
     .keys = {{Key::accumulate}, {Key::tile_row}, {Key::tile_rows}},
     .generation = 4,
     .check = check_matmul,
     .check_on = check_matmul_on,
     .cycles = matmul_cycles,
     .flops = matmul_flops,
     .run = matmul,
     .cost = "tensor.row.mx, tensor.load.exposed",
     .not_yet = "MXFP4 elements"});

}  // namespace
}  // namespace trellis::sim::core
