// Transport interface: moves bytes between the ranks of a communicator, and lets each see how the others are. Its three
// parts can be taken from different transports.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ccl/transports/host_shape.h"
#include "ccl/transports/lane.h"
#include "ccl/transports/liveness.h"
#include "ccl/transports/published_notices.h"
#include "ccl/transports/rank_cores.h"

namespace trellis::ccl {

class Transport : public Lanes, public Liveness, public PublishedNotices {
 public:
  virtual Rank rank() const = 0;
  virtual Rank ranks() const = 0;
  virtual std::string_view name() const = 0;
  virtual HostShape shape() const { return {{ranks()}}; }
  virtual RankCores places() const { return {}; }  // known where all ranks share one host's memory
  virtual SharedCaches caches_here() const = 0;
  virtual std::uint64_t identity() const = 0;    // the same on all ranks; unique to this communicator
  virtual std::size_t memory_bytes() const = 0;  // in use by this rank's part
};

}  // namespace trellis::ccl
