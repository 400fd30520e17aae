// How data is cut so that all links of a torus are busy: each lane takes the dimensions in turn from another first one
// on, and turns the other way than the lane before. One channel is two lanes for each dimension that has links.
#pragma once
#include "schedule/algorithm.h"

namespace trellis::schedule {

struct TorusLane {
  std::size_t first_axis = 0;  // among the linked dimensions
  bool backward = false;
  bool blocks = false;     // blocks belong to ranks; otherwise the lane numbers its chunks as suits it
  std::int32_t index = 0;  // among the lanes
  std::int32_t lanes = 1;
  std::int32_t segments = 1;
  Rank ranks = 1;

  // The chunk of a block, or the place-th of the lane's own.
  std::int64_t chunk(std::int64_t place, std::int32_t segment) const {
    return blocks ? (place * lanes + index) * segments + segment
                  : (std::int64_t{index} * segments + segment) * ranks + place;
  }
};

std::vector<Rank> linked(const std::vector<Rank>& dims);  // without dimensions of one rank; at least one
std::vector<TorusLane> torus_lanes(const Request&);
std::string refuses_other_sides(const std::vector<Rank>& dims);  // empty when all are powers of two
std::string refuses_torus_lanes(const Request&);                 // empty when there are not too many
std::int64_t torus_pieces(const Request&);  // chunks in a block: one for each rank where blocks are not ranks'
Symmetry even_shifts(const std::vector<Rank>& dims);  // even places differ from odd ones: only they may be shifted

}  // namespace trellis::schedule
