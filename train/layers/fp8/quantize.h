// Factors of products rounded to 8 bits, as a tensor engine takes them: e4m3 of activations and weights, e5m2 of
// gradients. A rounded value, scaled back, is exactly a bf16; these bf16 are what is kept here and multiplied.
#pragma once

#include <string_view>

#include "train/layers/linear.h"
#include "train/step/writer.h"

namespace trellis::train {

enum class Fp8Format : std::uint8_t { e4m3, e5m2 };

struct Fp8QuantizeOptions {
  std::size_t rows = 0, columns = 0;  // of the tensor, which may have more rows
  Fp8Format format = Fp8Format::e4m3;
  Fp8Scaling scaling = Fp8Scaling::tensor;
  bool along_rows = false;  // mx: a block is 32 rows of a column; else 32 columns of a row
  bool split = false;       // each tensor rank has a part of it: the scale is that of the whole tensor
};

// The scale of a whole tensor is the largest power of two that leaves its largest element within the format. With mx,
// scales are those of the OCP MX formats, and the last block of a row or column may be shorter.
TensorId quantized(Writer&, std::string_view name, TensorId, const Fp8QuantizeOptions&);

// The name of such elements as a type of the simulator's operations.
std::string_view type_name(Fp8Format, Fp8Scaling);

}  // namespace trellis::train
