#include "ccl/transports/libfabric/data/landings.h"

#include <fmt/format.h>

#include <stdexcept>

namespace trellis::ccl::libfabric {

std::uint32_t Landings::open(std::uint32_t pieces, Rank from) {
  if (free_.empty()) {
    if (all_.size() == 1U << place_bits)
      throw std::runtime_error(fmt::format("{} messages arrive at once: expected fewer", all_.size()));
    free_.push_back(static_cast<std::uint32_t>(all_.size()));
    all_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Landing& l = all_[place];
  l.generation = (l.generation + 1) % (1U << generation_bits);
  l.pieces = l.missing = pieces;
  l.from = from;
  l.there.assign(pieces, false);
  return place << (piece_bits + generation_bits) | l.generation << piece_bits;
}

void Landings::close(std::uint32_t first) {
  all_[place_of(first)].pieces = 0;
  free_.push_back(place_of(first));
}

bool Landings::lacks(std::uint32_t number) const {
  const std::uint32_t piece = number & (most_pieces - 1);
  if (place_of(number) >= all_.size()) return false;
  const Landing& l = at(number);
  return l.generation == generation_of(number) && piece < l.pieces && !l.there[piece];
}

Rank Landings::land(std::uint32_t number) {
  const std::uint32_t piece = number & (most_pieces - 1);
  if (place_of(number) >= all_.size()) return -1;
  Landing& l = all_[place_of(number)];
  if (l.generation != generation_of(number) || piece >= l.pieces || l.there[piece]) return -1;
  l.there[piece] = true;
  --l.missing;
  return l.from;
}

}  // namespace trellis::ccl::libfabric
