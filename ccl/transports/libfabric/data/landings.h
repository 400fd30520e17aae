// Landings: where pieces of messages come down. A piece tells its landing, and its number there, in four bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

class Landings {
 public:
  static constexpr std::uint32_t piece_bits = 12, generation_bits = 8, place_bits = 12;
  static constexpr std::uint32_t most_pieces = 1U << piece_bits;

  // The number of its first piece. Throws runtime_error when there are too many.
  std::uint32_t open(std::uint32_t pieces, Rank from);
  void close(std::uint32_t first);
  // Counts a piece once, however often it comes, and returns whose it is; -1: its landing is closed.
  Rank land(std::uint32_t piece);
  bool complete(std::uint32_t first) const { return at(first).missing == 0; }
  bool there(std::uint32_t piece) const { return at(piece).there[piece & (most_pieces - 1)]; }
  bool lacks(std::uint32_t piece) const;  // its landing is open, and it has not come
  std::uint32_t landed(std::uint32_t first) const { return at(first).pieces - at(first).missing; }

 private:
  struct Landing {
    std::uint32_t generation = 0;
    std::uint32_t pieces = 0;  // 0: closed
    std::uint32_t missing = 0;
    Rank from = -1;
    std::vector<bool> there;
  };
  static std::uint32_t place_of(std::uint32_t number) { return number >> (piece_bits + generation_bits); }
  static std::uint32_t generation_of(std::uint32_t number) {
    return number >> piece_bits & ((1U << generation_bits) - 1);
  }
  const Landing& at(std::uint32_t first) const { return all_[place_of(first)]; }
  std::vector<Landing> all_;
  std::vector<std::uint32_t> free_;
};

}  // namespace trellis::ccl::libfabric
