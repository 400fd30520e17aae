#include "sim/cluster/operation/engine_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/types/dtype.h"
#include "kernels/types/mx.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using kernels::DType, kernels::MxFormat;

double cycles_or(const Figures& f, std::string_view key, double otherwise) {
  return f.has(key) ? f.cycles(key) : otherwise;
}

// If one of these figures were 0, an engine would never end, or take no time.
void expect_above_zero(const Figures& f) {
  for (const char* key : {"cores", "tensor.rows", "tensor.columns", "tensor.moving.most", "tensor.clock",
                          "tensor.row.16bit", "tensor.row.f32", "tensor.row.f8", "vector.clock", "scalar.clock",
                          "sbuf.partitions", "sbuf.partition", "hbm.rate", "dma.engines", "dma.engine.rate",
                          "cost.tensor_tensor.vector.element", "cost.activation.scalar.element"})
    if (!(f.at(key).value > 0)) text::refuse("{} is {}: expected more than 0", key, f.at(key).value);
}

}  // namespace

double bytes_of(std::string_view type) {
  for (const DType d : kernels::dtypes())
    if (kernels::name(d) == type) return static_cast<double>(kernels::size_of(d));
  for (const MxFormat f : kernels::mx_formats)
    if (kernels::name(f) == type) return static_cast<double>(kernels::mx_element_bytes(f, 2)) / 2;
  std::string known;
  for (const DType d : kernels::dtypes()) known += fmt::format("{}, ", kernels::name(d));
  for (const MxFormat f : kernels::mx_formats) known += fmt::format("{}, ", kernels::name(f));
  text::refuse("no element type is called '{}'; known are {}", type, known.substr(0, known.size() - 2));
}

bool is_mx(std::string_view type) {
  return std::ranges::any_of(kernels::mx_formats, [&](MxFormat f) { return kernels::name(f) == type; });
}

EngineRates::EngineRates(const Figures& f, double cores, std::string name)
    : figures_(f),
      cores_(cores > 0 ? cores : f.number("logical.cores")),
      name_(std::move(name)),
      array_rows_(f.number("tensor.rows")),
      array_columns_(f.number("tensor.columns")),
      moving_most_(f.number("tensor.moving.most")),
      tensor_clock_(f.frequency("tensor.clock")),
      exposed_(f.cycles("tensor.load.exposed")),
      row_16_(f.cycles("tensor.row.16bit")),
      row_32_(f.cycles("tensor.row.f32")),
      row_8_(f.cycles("tensor.row.f8")),
      row_mx_(f.cycles("tensor.row.mx")),
      autocast_(f.number("operation.autocast") > 0) {
  expect_above_zero(f);
  const double partitions = f.number("sbuf.partitions");
  const double wide = f.cycles("cost.tensor_tensor.vector.element");
  const double narrow =
      cycles_or(f, "cost.tensor_tensor.vector.faster", cycles_or(f, "cost.tensor_tensor.vector.fast", wide));
  vector_32_ = cores_ * partitions * f.frequency("vector.clock") / wide;
  vector_16_ = cores_ * partitions * f.frequency("vector.clock") / narrow;
  vector_mx_ =
      cores_ * partitions * f.frequency("vector.clock") / cycles_or(f, "cost.quantize_mx.vector.element", narrow);
  scalar_ = cores_ * partitions * f.frequency("scalar.clock") / f.cycles("cost.activation.scalar.element");
  memory_ =
      cores_ * std::min(f.rate("hbm.rate") / f.number("cores"), f.number("dma.engines") * f.rate("dma.engine.rate"));
  row_full_ = f.bytes("dma.row.full");
  spill_ = f.number("operation.spill");
  sbuf_ = cores_ * partitions * f.bytes("sbuf.partition");
}

void EngineRates::expect_type(std::string_view type) const {
  bytes_of(type);
  if (is_mx(type) && !(row_mx_ > 0))
    text::refuse("{}: {} has no MX (tensor.row.mx is {}): expected a chip with it, as trn3, or fp8", type, name_,
                 row_mx_);
}

bool EngineRates::narrowed(std::string_view type) const { return autocast_ && bytes_of(type) > 2; }

double EngineRates::row_cycles(std::string_view type) const {
  if (is_mx(type)) return row_mx_;
  const double bytes = bytes_of(type);
  if (bytes > 2) return autocast_ ? row_16_ : row_32_;
  return bytes > 1 ? row_16_ : row_8_;
}

double EngineRates::tile_passes(double tiles, double rows, std::string_view type) const {
  const double loads = std::ceil(rows / moving_most_);
  return tiles * (rows * row_cycles(type) + exposed_ * loads) / tensor_clock_ / cores_;
}

// Either factor may move through the array while tiles of the other are held in it. The faster way counts.
double EngineRates::product(std::uint64_t rows, std::uint64_t columns, std::uint64_t inner,
                            std::string_view type) const {
  const double sums = std::ceil(static_cast<double>(inner) / array_rows_);
  const auto with = [&](std::uint64_t held, std::uint64_t moving) {
    return tile_passes(sums * std::ceil(static_cast<double>(held) / array_columns_), static_cast<double>(moving), type);
  };
  return std::min(with(columns, rows), with(rows, columns));
}

double EngineRates::vector(double passes, std::string_view type) const {
  return passes / (bytes_of(type) > 2 ? vector_32_ : vector_16_);
}

double EngineRates::quantize_mx(double elements) const { return elements / vector_mx_; }

double EngineRates::scalar(double passes) const { return passes / scalar_; }

double EngineRates::memory(double bytes, double row_bytes) const {
  return bytes / memory_ * std::max(1.0, row_full_ / std::max(row_bytes, 1.0));
}

}  // namespace trellis::sim
