// Copies bytes, through the caches or past them.
#pragma once

#include <cstddef>

namespace trellis::kernels {

// How a kernel's stores reach memory: through the caches, or past them, for what nobody reads soon or another core
// reads next. Only speed depends on it.
enum class Stores : unsigned char { cached, streaming };

void copy(void* dst, const void* src, std::size_t bytes, Stores = Stores::cached);  // no overlap

}  // namespace trellis::kernels
