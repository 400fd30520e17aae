// Kind nc_matmul: product[M x N] = stationary[K x M] transposed times moving[K x N]. K is along the partitions.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "kernels/layers/matmul.h"
#include "sim/core/arithmetic/checks_and_costs.h"
#include "sim/core/arithmetic/operand_rows.h"
#include "sim/core/arithmetic/psum_accumulation.h"

namespace trellis::sim::core {
namespace {

constexpr double double_row = 1;  // the mode with two rows of K in a partition: [K, 2, M] and [K, 2, N]

constexpr int array = 128;  // rows and columns of every generation's array

// How many rows of K a partition holds.
std::int64_t depth(const BoundInstruction& call) { return call.number(Key::mode) == double_row ? 2 : 1; }

std::int64_t columns(const BoundInstruction& call, const View& v) { return v.elements() / depth(call); }

bool wide(DType d) { return d == DType::f32 || d == DType::tf32; }

void check(const BoundInstruction& call) {
  const View &stationary = call.in(0), &moving = call.in(1), &product = call.out();
  expect_rows(call, "moving", moving, stationary.rows);
  if (depth(call) == 2)
    for (const View& v : call.inputs) {
      if (!is_f8(v.type)) refuse(call, "mode double_row is of f8 types, not {}", name(v.type));
      if (v.dims < 2 || v.dim[0].count != 2)
        refuse(call, "mode double_row expects an outermost dimension of 2 in stationary and moving");
    }
  if (wide(stationary.type) != wide(moving.type))
    refuse(call, "stationary is {} and moving {}; f32 and tf32 go only with each other", name(stationary.type),
           name(moving.type));
  if (call.number(Key::transpose) != 0 && (depth(call) != 1 || moving.elements() != stationary.rows))
    refuse(call, "a transpose moves an identity of {0} x {0}; moving is {1} x {2}", stationary.rows, moving.rows,
           moving.elements());
  const SystolicArrayTile tile = array_tile(call, array, array);
  for (const auto& [what, at, size] : {std::tuple{"row", tile.row, tile.rows}, {"column", tile.column, tile.columns}})
    if ((size != 32 && size != 64 && size != array) || at < 0 || at % size != 0 || at + size > array)
      refuse(call, "a part of the array of {} {}s at {}; expected 32, 64 or 128 at a multiple of that", size, what, at);
  if (stationary.rows > tile.rows || columns(call, stationary) > tile.columns)
    refuse(call, "stationary is {} x {}; the part of the array {} x {}", stationary.rows, columns(call, stationary),
           tile.rows, tile.columns);
  expect_rows(call, "product", product, columns(call, stationary));
  expect_elements(call, "product", product, columns(call, moving));
}

void check_on(const BoundInstruction& call, const ChipSpec& chip) {
  const View &moving = call.in(1), &product = call.out();
  const bool narrow = product.type == DType::bf16;
  if (product.type != DType::f32 && !(narrow && chip.generation >= 4))
    refuse(call, "product is {}; expected f32{}", name(product.type), chip.generation >= 4 ? " or bf16" : "");
  const std::int64_t most = chip.tensor.moving_most * (narrow ? 2 : 1);
  if (columns(call, moving) > most)
    refuse(call, "moving has {} columns; expected at most {}", columns(call, moving), most);
  if (depth(call) == 2 && chip.generation < 3) refuse(call, "mode double_row is NeuronCore-v3's and later");
  const SystolicArrayTile tile = array_tile(call, array, array);
  if (chip.generation < 3 && (tile.rows == 32 || tile.columns == 32))
    refuse(call, "parts of 32 rows or columns are NeuronCore-v3's and later");
}

double cycles(const BoundInstruction& call, const CostRow&, const ChipSpec& chip) {
  const TensorSpec& t = chip.tensor;
  const DType type = call.in(1).type;
  const bool transposes = call.number(Key::transpose) != 0;
  const double each = type == DType::f32 ? (transposes ? t.transpose_f32 : t.row_cycles_f32)
                      : depth(call) == 2 ? 2 * t.row_cycles_f8
                                         : t.row_cycles_wide;
  const int passes = type == DType::f32 && !transposes ? t.passes_f32 : 1;
  const std::int64_t rows = std::max(columns(call, call.in(1)), std::min<std::int64_t>(64, columns(call, call.in(0))));
  return (static_cast<double>(rows) * each + t.load_exposed * passes) * array_share(call, t);
}

double flops(const BoundInstruction& call) {
  if (call.number(Key::transpose) != 0) return 0;
  return 2.0 * static_cast<double>(call.in(0).rows * depth(call)) * static_cast<double>(columns(call, call.in(0))) *
         static_cast<double>(columns(call, call.in(1)));
}

// A factor as kernels::tile_product takes it: it points into the memory if possible, else to a copy in `bytes`.
struct Tile {
  kernels::MatrixView factor;
  std::vector<std::byte> bytes = {};
};

Tile tile_of(const BoundInstruction& call, CoreMemory& memory, const View& v, DType type) {
  const std::int64_t stride = memory.row_stride(v), size = static_cast<std::int64_t>(kernels::size_of(type));
  if (depth(call) == 1 && v.type == type && contiguous(v) && stride % size == 0)
    return {{memory.row(v, 0), static_cast<std::size_t>(stride / size)}};
  const auto n = static_cast<std::size_t>(columns(call, v)), deep = static_cast<std::size_t>(depth(call));
  const auto rows = static_cast<std::size_t>(v.rows);
  Tile tile{{nullptr, n}, std::vector<std::byte>(rows * deep * n * sizeof(float))};
  auto* to = reinterpret_cast<float*>(tile.bytes.data());
  if (type == DType::bf16)  // copied as bf16, not as f32
    for (std::size_t r = 0; r < rows; ++r)
      memory.read_bytes(v, static_cast<std::int64_t>(r), tile.bytes.data() + r * n * 2);
  else
    for (std::size_t r = 0; r < rows; ++r) memory.read(v, static_cast<std::int64_t>(r), to + r * deep * n);
  tile.factor.data = tile.bytes.data();
  return tile;
}

// Transpose by identity, bit for bit. The moving side is the identity, so nothing needs to be multiplied.
void transpose(const BoundInstruction& call, CoreMemory& memory) {
  const View& from = call.in(0);
  const auto m = static_cast<std::size_t>(from.elements()), k = static_cast<std::size_t>(from.rows);
  std::vector<float> row(m), transposed(m * k);
  for (std::size_t r = 0; r < k; ++r) {
    memory.read(from, static_cast<std::int64_t>(r), row.data());
    for (std::size_t c = 0; c < m; ++c) transposed[c * k + r] = row[c];
  }
  put_product(call, memory, transposed.data());
}

void run(const BoundInstruction& call, CoreMemory& memory) {
  if (call.number(Key::transpose) != 0) return transpose(call, memory);
  const bool bf16 = call.in(0).type == DType::bf16 && call.in(1).type == DType::bf16;
  const DType type = bf16 ? DType::bf16 : DType::f32;
  Tile a = tile_of(call, memory, call.in(0), type);
  const Tile b = tile_of(call, memory, call.in(1), type);
  a.factor.transposed = true;
  const View& out = call.out();
  const auto m = static_cast<std::size_t>(out.rows), n = static_cast<std::size_t>(out.elements());
  const auto k = static_cast<std::size_t>(call.in(0).rows * depth(call));
  const bool accumulates = call.number(Key::accumulate) != 0;
  const std::int64_t stride = memory.row_stride(out);
  if (!accumulates && out.type == DType::f32 && contiguous(out))
    return kernels::tile_product({m, n, k}, type, a.factor, b.factor, reinterpret_cast<float*>(memory.row(out, 0)),
                                 static_cast<std::size_t>(stride) / sizeof(float));
  float* const product = memory.scratch(m * n);
  kernels::tile_product({m, n, k}, type, a.factor, b.factor, product, n);
  put_product(call, memory, product);
}

const RegisteredInstruction nc_matmul(
    {.name = "nc_matmul",
     .summary = "product = stationary transposed times moving, added to PSUM or in its place",
     .engines = {Engine::tensor},
     .outputs = {{"product", false, in_psum}},
     .inputs = {{"stationary", false, in_sbuf}, {"moving", false, in_sbuf}},
     .keys = {{Key::accumulate},
              {Key::transpose},
              {Key::mode},
              {Key::tile_row},
              {Key::tile_column},
              {Key::tile_rows},
              {Key::tile_columns}},
     .check = check,
     .check_on = check_on,
     .cycles = cycles,
     .flops = flops,
     .run = run,
     .cost = "tensor.row.*, tensor.load.exposed, tensor.passes.f32"});

}  // namespace
}  // namespace trellis::sim::core
