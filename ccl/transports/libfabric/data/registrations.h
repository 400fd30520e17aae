// Memory that is registered with the wires of all rails. The registration of memory whose end this process is told of
// is kept, in the order of its last use; that of other memory ends with its use.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "ccl/transports/libfabric/wire/wire.h"
#include "device/watched_memory.h"

namespace trellis::ccl::libfabric {

class Registered {
 public:
  Registered(const std::byte* begin, std::vector<std::unique_ptr<Region>> regions)
      : begin_(begin), regions_(std::move(regions)) {}
  bool has(int rail) const { return at(rail) != nullptr; }
  void* descriptor(int rail) const { return has(rail) ? at(rail)->descriptor() : nullptr; }
  std::uint64_t key(int rail) const { return at(rail)->key(); }
  std::uint64_t address(int rail, const std::byte* of) const {
    return at(rail)->address() + static_cast<std::uint64_t>(of - begin_);
  }
  void drop_rail(int rail) { regions_[static_cast<std::size_t>(rail)].reset(); }

 private:
  const std::unique_ptr<Region>& at(int rail) const { return regions_[static_cast<std::size_t>(rail)]; }
  const std::byte* begin_;
  std::vector<std::unique_ptr<Region>> regions_;  // by rail; null: it was left
};

class Registrations {
 public:
  using Use = std::shared_ptr<Registered>;
  using Range = device::WatchedMemory::Range;
  using Make = std::function<Registered(const Range&, bool for_peers)>;
  Registrations(std::size_t most, Make make) : most_(most), make_(std::move(make)) {}

  Use of(const void* data, std::size_t bytes, bool for_peers);           // kept, if it can be
  Use alone(const void* data, std::size_t bytes, bool for_peers) const;  // of just these bytes, and not kept

  // The caller tells when this memory ends.
  void expose(const Range& r) { exposed_.push_back(r); }
  void end_exposed(const Range&);
  void end(const std::byte* begin, std::size_t bytes);  // its pages are given back or moved
  void drop_rail(int);
  void drop() { kept_.clear(); }
  std::size_t kept() const { return kept_.size(); }

 private:
  struct Kept {
    Range range;
    bool for_peers = false;
    Use registered;  // null: it can't be registered whole
  };
  bool make_room();

  const std::size_t most_;
  const Make make_;
  std::vector<Range> exposed_;
  std::list<Kept> kept_;  // the last used first
};

}  // namespace trellis::ccl::libfabric
