// Embedding: rows of a table by number, and the gradient that adds rows up by number.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

struct EmbeddingTable {
  DType type;           // f32 or bf16
  std::size_t entries;  // rows
  std::size_t width;    // elements of a row
  // The table has `entries` of `total` entries, from entry `first` on; other shards have the rest. total 0: it has all.
  std::int64_t first = 0;
  std::int64_t total = 0;
};

// out[r] = table[ids[r] - first], bit for bit; zeros if another shard has that entry. An id that no shard has throws.
void embedding(const EmbeddingTable&, const void* table, const std::int32_t* ids, void* out, std::size_t rows,
               int threads = 1);

struct EmbeddingGradientOptions {
  DType dy = DType::f32;     // f32 or bf16
  bool accumulate = false;   // each sum begins with what dtable holds; else entries without a row become 0
  std::int32_t ignore = -1;  // rows with this id (padding) add nothing
  int threads = 1;
};

// dtable[e] = sum of dy[r] over the rows whose id is entry e, r rising, in f32, rounded once to the table's type. One
// thread works on an entry, so the order, and with it the result, does not depend on their number.
void embedding_gradient(const EmbeddingTable&, const void* dy, const std::int32_t* ids, void* dtable, std::size_t rows,
                        const EmbeddingGradientOptions& = {});

}  // namespace trellis::kernels
