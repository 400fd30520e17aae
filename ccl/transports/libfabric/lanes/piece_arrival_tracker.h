// PieceArrivalTracker: which pieces of large messages have arrived. The pieces of one grant share a landing, the place
// where they arrive. A piece names its landing, and its number there, in four bytes. The numbers begin at random, so
// that a piece from a former process almost never names a landing of this one.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

class PieceArrivalTracker {
 public:
  static constexpr std::uint32_t piece_bits = 12, generation_bits = 8, place_bits = 12;
  static constexpr std::uint32_t most_pieces = 1U << piece_bits, most_places = 1U << place_bits;

  explicit PieceArrivalTracker(std::uint32_t places = most_places, std::uint64_t seed = 0);

  // Opens a landing, and returns the number of its first piece. None: all landings are in use, so try again when one is
  // closed. Half of them are reserved for messages whose sender is known to wait: those messages will end, whatever the
  // others wait for.
  std::optional<std::uint32_t> open(std::uint32_t pieces, Rank from, bool sender_waits);
  bool has_room(bool sender_waits) const { return used_ < (sender_waits ? places_ : places_ / 2); }
  void close(std::uint32_t first);
  // Counts a piece that has come, and returns its sender; -1: it has come before, or its landing is closed.
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
  std::uint32_t place_of(std::uint32_t number) const {
    return ((number >> (piece_bits + generation_bits)) - first_place_) % most_places;
  }
  static std::uint32_t generation_of(std::uint32_t number) {
    return number >> piece_bits & ((1U << generation_bits) - 1);
  }
  const Landing& at(std::uint32_t first) const { return all_[place_of(first)]; }

  std::uint32_t places_;
  std::mt19937_64 random_;
  std::uint32_t first_place_;  // the number of place 0 in messages; the others follow
  std::uint32_t used_ = 0;
  std::vector<Landing> all_;
  std::vector<std::uint32_t> free_;
};

}  // namespace trellis::ccl::libfabric
