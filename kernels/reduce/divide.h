// The last step of an average.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// data[i] = data[i] / divisor: floats in f32 (f64 in f64), rounded once to nearest even; integers towards zero.
void divide(DType, void* data, std::size_t n, std::uint32_t divisor);

}  // namespace trellis::kernels
