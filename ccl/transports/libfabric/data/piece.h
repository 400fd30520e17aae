// Pieces of large messages on their way.
#pragma once

#include <memory>
#include <vector>

#include "ccl/store.h"
#include "ccl/transports/libfabric/data/packet.h"
#include "ccl/transports/libfabric/wire/wire.h"

namespace trellis::ccl::libfabric {

class LaneSender;

// A piece that is sent, with all that is needed to retransmit it.
struct PieceOut : WireOperation {
  LaneSender* sender = nullptr;
  Grant grant = {};
  std::uint32_t piece = 0;
  LocalBytes bytes = {};
  int rail = 0;
  Deadline posted = {};
  bool under_way = false;
};
struct PieceIn : WireOperation {
  std::uint32_t number = 0;
};

// A communicator's pieces; one that has completed is reused.
template <class Piece>
struct PiecePool {
  std::vector<std::unique_ptr<Piece>> all = {};
  std::vector<Piece*> free = {};

  Piece& next() {  // a free piece; a caller that uses it removes it from `free`
    if (free.empty()) {
      all.push_back(std::make_unique<Piece>());
      free.push_back(all.back().get());
    }
    return *free.back();
  }
};

}  // namespace trellis::ccl::libfabric
