// Products of matrices. Results leave PSUM through one pass of the Scalar engine, which adds a bias on the way.
#include <algorithm>
#include <tuple>

#include "sim/cluster/operation/element_passes.h"

namespace trellis::sim {
namespace {

EngineTimes product(const OperationShape& s, const EngineRates& e) {
  const auto m = static_cast<double>(s.rows), n = static_cast<double>(s.columns), k = static_cast<double>(s.inner);
  const auto b = static_cast<double>(s.batch);
  const double in = bytes_of(s.type), out = bytes_of(s.result_type());
  const double read = s.inputs == 1 ? 0 : m * k * in, results = s.outputs == 0 ? 0 : s.accumulate ? 2 : 1;
  EngineTimes t;
  t.tensor = b * e.product(s.rows, s.columns, s.inner, s.type);
  if (results > 0) t.scalar = e.scalar(s.elements());
  if (s.accumulate && results > 0) t.vector = e.vector(s.elements(), s.result_type());
  t.memory = b * (e.memory(read, k * in) + e.memory(n * k * in, k * in) + e.memory(results * m * n * out, n * out));
  t.bytes = b * (read + n * k * in + results * m * n * out);
  t.flops = 2 * b * m * n * k;
  return t;
}

// How many tiles an extent is cut into. They are loaded in equal blocks of `most` / 2 to `most` tiles: smaller blocks
// would keep the array waiting for loads, so adding a few tiles of zeros costs less.
std::uint64_t tiles_of(std::uint64_t extent, std::uint64_t tile, std::uint64_t most) {
  const auto has_block = [&](std::uint64_t tiles) {
    if (tiles <= most) return true;
    for (std::uint64_t block = most; 2 * block >= most; --block)
      if (tiles % block == 0) return true;
    return false;
  };
  std::uint64_t tiles = (extent + tile - 1) / tile;
  while (!has_block(tiles)) ++tiles;
  return tiles;
}

// c = a^T b, for which the array holds tiles of one side and the other side moves through it. Rows or columns move,
// whichever way needs fewer tiles.
std::optional<CoreProgram> program(const OperationShape& s, const EngineRates& e) {
  constexpr std::uint64_t narrow = 128, wide = 512;
  constexpr std::uint64_t products_timed = 65536, fewest_timed = 8;  // tile products to simulate; fewest column tiles
  OperationShape plain = s;
  plain.result = "", plain.accumulate = false, plain.inputs = plain.outputs = -1;
  if (e.narrowed(s.type)) plain.type = "bf16";
  const auto type = program_type(plain);
  if (!type) return {};
  const std::uint64_t k = tiles_of(s.inner, narrow, 8);
  const auto tiles = [&](std::uint64_t held, std::uint64_t moving) {
    return std::tuple(tiles_of(held, narrow, 16), tiles_of(moving, wide, 2));
  };
  const auto one = tiles(s.columns, s.rows), other = tiles(s.rows, s.columns);
  const auto wasted = [](const auto& t) { return std::get<0>(t) * std::get<1>(t); };
  const auto [m, n] = wasted(other) < wasted(one) ? other : one;
  const double padded = static_cast<double>(m * narrow * n * wide * k * narrow);
  constexpr double most_wasted = 1.25;
  if (padded > most_wasted * s.elements() / static_cast<double>(s.batch) * static_cast<double>(s.inner)) return {};
  const std::uint64_t timed = std::max(fewest_timed, products_timed / (m * k) / 4 * 4);
  return CoreProgram{
      .name = "matmul",
      .parameters = {{"M", std::to_string(m * narrow)}, {"K", std::to_string(k * narrow)}, {"type", *type}},
      .grows = "N",
      .extent = n * wide,
      .most = timed * wide,
      .times = static_cast<double>(s.batch),
      .does = std::move(plain)};
}

const OperationModel::Registered registered({.name = "product",
                                             .summary = "a product of matrices",
                                             .extents = "rows x inner by inner x columns, batch times",
                                             .work = product,
                                             .program = program});

}  // namespace
}  // namespace trellis::sim
