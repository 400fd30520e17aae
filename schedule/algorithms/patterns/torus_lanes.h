// Splits data into lanes so that all links of a torus are busy. Each lane starts with another dimension, and
// neighbouring lanes run in opposite directions. One channel is two lanes per dimension that has links.
#pragma once
#include "schedule/algorithms/algorithm.h"

namespace trellis::schedule {

struct TorusLane {
  std::size_t first_axis = 0;  // index among the linked dimensions
  bool backward = false;
  bool blocks = false;     // blocks belong to ranks; otherwise the lane numbers its chunks freely
  std::int32_t index = 0;  // among the lanes
  std::int32_t lanes = 1;
  std::int32_t segments = 1;
  Rank ranks = 1;

  // The lane's chunk of block `place`, or, if the lane numbers its chunks freely, its chunk number `place`.
  std::int64_t chunk(std::int64_t place, std::int32_t segment) const {
    return blocks ? (place * lanes + index) * segments + segment
                  : (std::int64_t{index} * segments + segment) * ranks + place;
  }
};

std::vector<Rank> linked(const std::vector<Rank>& dims);  // the dimensions of more than one rank; {1} if there are none
std::vector<TorusLane> torus_lanes(const Request&);
std::string refuses_other_sides(const std::vector<Rank>& dims);  // empty if all are powers of two
std::string refuses_torus_lanes(const Request&);                 // empty if there are not too many
std::int64_t torus_pieces(const Request&);  // chunks per block; one per rank where blocks don't belong to ranks
Symmetry even_shifts(const std::vector<Rank>& dims);  // even and odd places differ, so only even shifts are symmetric

}  // namespace trellis::schedule
