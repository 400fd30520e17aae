// What the engines of a rank do in a second, from its chip's figures, and how long their work takes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/hardware/figures/figures.h"

namespace trellis::sim {

class EngineRates {
 public:
  // `cores`: NeuronCores of a rank; 0: those of a logical core. `name`: the chip's, for errors. Throws invalid_argument
  // for a figure that is missing.
  explicit EngineRates(const Figures& chip, double cores = 0, std::string name = "the chip");

  // Throws invalid_argument for a type that is unknown, or that the chip does not compute with.
  void expect_type(std::string_view type) const;

  // Seconds of a product of rows x inner by inner x columns. It goes through the array tile by tile, and a part of each
  // tile's load is exposed.
  double product(std::uint64_t rows, std::uint64_t columns, std::uint64_t inner, std::string_view type) const;
  // Seconds to move `rows` rows through each of `tiles` tiles, which the array holds one after the other.
  double tile_passes(double tiles, double rows, std::string_view type) const;
  double vector(double passes_of_elements, std::string_view type) const;
  double quantize_mx(double elements) const;  // seconds of Vector, to round 16-bit elements to MX
  double scalar(double passes_of_elements) const;
  // Seconds to move `bytes` bytes in rows of `row_bytes`: short rows keep the DMA engines below their rate.
  double memory(double bytes, double row_bytes) const;

  double memory_rate() const { return memory_; }  // bytes a second: the lower of HBM's share and the DMA engines'
  double sbuf() const { return sbuf_; }           // bytes
  double spill() const { return spill_; }         // fraction of fused operations' arrays that pass through memory
  double lanes() const { return array_rows_; }    // rows and columns of the array
  const Figures& figures() const { return figures_; }
  double cores() const { return cores_; }
  bool narrowed(std::string_view type) const;  // whether products of the type are made in 16 bits

 private:
  double row_cycles(std::string_view type) const;

  Figures figures_;
  double cores_ = 1;
  std::string name_;
  double array_rows_ = 0, array_columns_ = 0, moving_most_ = 0, tensor_clock_ = 0, exposed_ = 0;
  double row_16_ = 0, row_32_ = 0, row_8_ = 0, row_mx_ = 0;  // row_mx_ is 0: no MX
  bool autocast_ = false;
  double vector_16_ = 0, vector_32_ = 0, vector_mx_ = 0, scalar_ = 0;  // elements a second
  double memory_ = 0, row_full_ = 0, sbuf_ = 0, spill_ = 0;
};

// An element's; throws invalid_argument, naming the known ones. A block's scale in MX is not counted, as that of a
// whole tensor in other types of 8 bits is not.
double bytes_of(std::string_view type);
bool is_mx(std::string_view type);  // one of kernels::MxFormat

}  // namespace trellis::sim
