// Gossip: which news of third ranks a rank has yet to relay to which neighbours. Each item is relayed once, and not to
// the neighbour that it came from.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "ccl/errors.h"

namespace trellis::ccl::libfabric {

constexpr int most_wires = 2;               // for control: endpoints on the interfaces of the first rails
constexpr int most_paths = most_wires + 1;  // the wires, and datagrams

// The control paths to a peer: wires that connect, and datagrams.
struct ControlPaths {
  int all = 1;
  int datagrams = -1;  // the number of that path, the last; -1: there is none
};

class Gossip {
 public:
  Gossip(Rank, Rank ranks);  // in a small communicator, nothing is passed on

  const std::vector<Rank>& neighbours() const { return neighbours_; }
  // Takes in edition `edition` of the news of rank `of`, which came from rank `by`. True: it is new here.
  bool came(Rank by, Rank of, std::uint32_t edition);
  bool owes(Rank to) const;
  // next(): the rank whose state is relayed to `to` next; none: there is nothing to relay. goes(): that state was sent
  // over a path. ended(): what was sent over a path arrived, or was lost and is relayed again.
  std::optional<Rank> next(Rank to);
  void goes(Rank to, int path);
  void ended(Rank to, int path, bool well);

 private:
  struct Neighbour {
    std::vector<std::uint32_t> has;  // by rank, the edition that the neighbour has
    std::deque<Rank> queue;
    std::array<std::vector<Rank>, most_paths> under_way;
  };
  Neighbour* find(Rank);
  const Neighbour* find(Rank r) const { return const_cast<Gossip*>(this)->find(r); }
  const Rank rank_;
  std::vector<Rank> neighbours_;
  std::vector<Neighbour> all_;  // one for each of neighbours_
  std::vector<std::uint32_t> editions_;
};

}  // namespace trellis::ccl::libfabric
