// RailLoadBalancer: chooses the rail (endpoint) that carries each piece of a large message, by how much each rail was
// given, how much is under way on it, and how fast it has been.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ccl/errors.h"
#include "ccl/store.h"
#include "ccl/transports/libfabric/rails/rail_set.h"

namespace trellis::ccl::libfabric {

class RailLoadBalancer {
 public:
  // Each rail takes at most this many pieces at a time; further ones wait.
  explicit RailLoadBalancer(int count, std::size_t most_pieces = SIZE_MAX)
      : rails_(static_cast<std::size_t>(count)), most_pieces_(most_pieces) {}

  // The rail that should take `bytes` more, among those that are open. Full rails are chosen after others, and rails
  // that failed a few times in a row last.
  int choose(std::size_t bytes) const;
  bool full(int rail) const { return at(rail).pieces >= most_pieces_; }
  void posted(int rail, std::size_t bytes, Deadline now);
  void done(int rail, std::size_t bytes, Deadline posted, bool well, Deadline now);

  void leave(int rail);
  void add() { rails_.emplace_back(); }
  RailSet left() const { return left_; }
  bool only_one() const { return open() == 1; }
  int all() const { return static_cast<int>(rails_.size()); }  // including those that were left
  int open() const { return all() - left_.count(); }
  int first() const { return left_.first_outside(); }  // it carries the packets

 private:
  struct Rail {
    double given = 0;           // bytes in all, times the rail's slowness
    std::size_t bytes = 0;      // under way
    std::size_t pieces = 0;     // under way
    Deadline since = {};        // when it last began or ended a piece
    int failures = 0;           // in a row
    double seconds_a_byte = 0;  // lately; 0: not known
  };
  double best_speed() const;
  double slowness(const Rail&) const;
  const Rail& at(int rail) const { return rails_[static_cast<std::size_t>(rail)]; }
  std::vector<Rail> rails_;
  std::size_t most_pieces_;
  RailSet left_;
};

}  // namespace trellis::ccl::libfabric
