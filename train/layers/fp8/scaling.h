// How factors of a product are scaled before they are rounded to 8 bits.
#pragma once

#include <cstdint>

namespace trellis::train {

// tensor: a power of two for each whole tensor. mx: one for each 32 elements that a sum of the product takes.
enum class Fp8Scaling : std::uint8_t { none, tensor, mx };

}  // namespace trellis::train
