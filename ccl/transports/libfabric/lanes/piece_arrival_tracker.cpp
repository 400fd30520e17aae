#include "ccl/transports/libfabric/lanes/piece_arrival_tracker.h"

#include <algorithm>

namespace trellis::ccl::libfabric {

PieceArrivalTracker::PieceArrivalTracker(std::uint32_t places, std::uint64_t seed)
    : places_(std::clamp(places, 1U, most_places)),
      random_(seed),
      first_place_(static_cast<std::uint32_t>(random_()) % most_places) {}

std::optional<std::uint32_t> PieceArrivalTracker::open(std::uint32_t pieces, Rank from, bool sender_waits) {
  if (!has_room(sender_waits)) return std::nullopt;
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(all_.size()));
    all_.emplace_back().generation = static_cast<std::uint32_t>(random_());
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  ++used_;
  Landing& l = all_[place];
  l.generation = (l.generation + 1) % (1U << generation_bits);
  l.pieces = l.missing = pieces;
  l.from = from;
  l.there.assign(pieces, false);
  const std::uint32_t called = (place + first_place_) % most_places;
  return called << (piece_bits + generation_bits) | l.generation << piece_bits;
}

void PieceArrivalTracker::close(std::uint32_t first) {
  all_[place_of(first)].pieces = 0;
  free_.push_back(place_of(first));
  --used_;
}

bool PieceArrivalTracker::lacks(std::uint32_t number) const {
  const std::uint32_t piece = number & (most_pieces - 1);
  if (place_of(number) >= all_.size()) return false;
  const Landing& l = at(number);
  return l.generation == generation_of(number) && piece < l.pieces && !l.there[piece];
}

Rank PieceArrivalTracker::land(std::uint32_t number) {
  const std::uint32_t piece = number & (most_pieces - 1);
  if (place_of(number) >= all_.size()) return -1;
  Landing& l = all_[place_of(number)];
  if (l.generation != generation_of(number) || piece >= l.pieces || l.there[piece]) return -1;
  l.there[piece] = true;
  --l.missing;
  return l.from;
}

}  // namespace trellis::ccl::libfabric
