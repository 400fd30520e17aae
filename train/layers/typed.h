// Elements of f32 or bf16 in plain loops: read as f32, written rounded to nearest.
#pragma once

#include <cstdint>

#include "kernels/types/convert.h"
#include "kernels/types/dtype.h"

namespace trellis::train {

inline float get(float v) { return v; }
inline float get(std::uint16_t v) { return kernels::widen_bf16(v); }
inline void put(float v, float& to) { to = v; }
inline void put(float v, std::uint16_t& to) { to = kernels::bf16_nearest(v); }

// body(pointer) with the pointer's type by the tensor's.
template <class Body>
void typed(kernels::DType type, void* at, const Body& body) {
  if (type == kernels::DType::bf16)
    body(static_cast<std::uint16_t*>(at));
  else
    body(static_cast<float*>(at));
}

}  // namespace trellis::train
