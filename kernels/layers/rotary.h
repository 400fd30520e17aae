// Rotary position embedding: pairs of a head's elements, turned by an angle that grows with the position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/types/dtype.h"

namespace trellis::kernels {

// Which elements of a head make pair i, of the d that turn: 2i and 2i + 1 (the original RoFormer, GPT-J, Llama as
// published by its authors), or i and i + d/2 (GPT-NeoX, and Llama as converted for Hugging Face). Weights made for the
// one give nonsense with the other.
enum class Pairing : std::uint8_t { neighbours, halves };

struct RotaryShape {
  std::size_t rows;       // tokens
  std::size_t heads;      // one after the other in a row
  std::size_t head_size;  // elements of a head
  std::size_t turned;     // the first of them that turn: even, at most head_size; the rest are copied
  std::size_t stride;     // from a row to the next: at least heads * head_size, more where q, k and v lie together
};

// The cosine and sine of each pair's angle at each position: two tables of positions x turned/2 in f32.
struct RotaryTable {
  const float* cosines;
  const float* sines;
  std::size_t positions;
};

struct RotaryOptions {
  Pairing pairing = Pairing::halves;
  bool backward = false;                    // turn the other way: what the gradient needs, and the inverse
  const std::int32_t* positions = nullptr;  // the row of the table for each token; null: token r has row r
  int threads = 1;
};

// (a, b) becomes (a cos - b sin, b cos + a sin), in f32, rounded once; x and y are f32 or bf16, y may be x. Elements
// between the rows are left alone.
void rotary(DType, const void* x, void* y, const RotaryShape&, const RotaryTable&, const RotaryOptions& = {});

// Fills the tables for `count` positions from `first` on. The angle of pair i at position p is p frequencies[i]; it and
// its cosine and sine, by libm, are computed in double.
void rotary_table(float* cosines, float* sines, std::size_t first, std::size_t count,
                  std::span<const double> frequencies);
// The same with the frequencies base^(-2i/turned), by libm.
void rotary_table(float* cosines, float* sines, std::size_t first, std::size_t count, std::size_t turned,
                  double base = 10000);

}  // namespace trellis::kernels
