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

// Calls body with `at` as a pointer to the type's elements: bf16 as std::uint16_t, else float.
template <class Body>
void typed(kernels::DType type, void* at, const Body& body) {
  if (type == kernels::DType::bf16)
    body(static_cast<std::uint16_t*>(at));
  else
    body(static_cast<float*>(at));
}

}  // namespace trellis::train
