// Transport interface: moves bytes between the ranks of a communicator, and lets each see how the others are. Its three
// parts can be taken from different transports.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ccl/transports/lane.h"
#include "ccl/transports/liveness.h"
#include "ccl/transports/notice_board.h"
#include "ccl/transports/rank_cores.h"
#include "ccl/transports/ranks_by_host.h"

namespace trellis::ccl {

class Transport : public Lanes, public Liveness, public NoticeBoard {
 public:
  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual std::string_view name() const = 0;
  virtual RanksByHost shape() const { return {{ranks()}}; }
  virtual RankCores places() const { return {}; }  // known where all ranks share one host's memory
  virtual SharedCaches caches_here() const = 0;
  virtual std::uint64_t identity() const = 0;    // the same on all ranks; unique to this communicator
  virtual std::size_t memory_bytes() const = 0;  // in use by this rank's part
};

}  // namespace trellis::ccl
