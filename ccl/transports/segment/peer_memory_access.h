// How a receiver accesses data in a sender's own memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "ccl/transports/segment/cells.h"
#include "ccl/transports/transport.h"

namespace trellis::ccl {

class PeerMemoryAccess {
 public:
  struct Place {
    PayloadLocation carried;
    std::uint64_t where;
  };
  virtual ~PeerMemoryAccess() = default;
  // How many of the given bytes, from the first on, are offered, and the place where a peer can read them; without a
  // place, these bytes are to be copied.
  struct Offer {
    std::optional<Place> place = {};
    std::size_t bytes = 0;
  };
  virtual Offer offer(Rank to, const std::byte* data, std::size_t bytes) = 0;
  virtual std::size_t readable(Rank by, const std::byte* data, std::size_t bytes, std::size_t message) = 0;
  virtual std::unique_ptr<Exposed> expose(void* data, std::size_t bytes) = 0;
  virtual const std::byte* see(Rank from, const Place&, std::size_t bytes) = 0;  // null: not mapped, use fetch()
  virtual void fetch(Rank from, const Place&, std::size_t offset, std::byte* into, std::size_t bytes) = 0;
  // True if the ranks are of one process: memory that one of them unmaps is gone for all.
  virtual bool shares_mappings() const { return false; }
  virtual bool alive(Rank) = 0;
  virtual std::size_t memory_bytes() const = 0;  // this rank's share of the segment, as far as it is in use
};

}  // namespace trellis::ccl
