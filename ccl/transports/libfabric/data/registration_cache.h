// RegistrationCache: memory that is registered with the wires of all rails. A registration is kept for later use if
// this process is told when the memory ends; if there are too many, the least recently used idle one ends. Any other
// registration ends with its use.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "ccl/transports/libfabric/wire/wire.h"
#include "device/memory_release_notifier.h"

namespace trellis::ccl::libfabric {

class RegisteredMemory {
 public:
  using Range = device::MemoryReleaseNotifier::Range;
  RegisteredMemory(const Range& of, bool for_peers, std::vector<std::unique_ptr<MemoryRegion>> regions)
      : of_(of), for_peers_(for_peers), regions_(std::move(regions)) {}
  const Range& of() const { return of_; }
  bool for_peers() const { return for_peers_; }
  void add_rail(std::unique_ptr<MemoryRegion> region) { regions_.push_back(std::move(region)); }
  bool has(int rail) const { return at(rail) != nullptr; }
  void* descriptor(int rail) const { return has(rail) ? at(rail)->descriptor() : nullptr; }
  std::uint64_t key(int rail) const { return at(rail)->key(); }
  std::uint64_t address(int rail, const std::byte* of) const {
    return at(rail)->address() + static_cast<std::uint64_t>(of - of_.begin);
  }
  void drop_rail(int rail) { regions_[static_cast<std::size_t>(rail)].reset(); }

 private:
  const std::unique_ptr<MemoryRegion>& at(int rail) const { return regions_[static_cast<std::size_t>(rail)]; }
  Range of_;
  bool for_peers_;
  std::vector<std::unique_ptr<MemoryRegion>> regions_;  // by rail; null: the rail was left
};

class RegistrationCache {
 public:
  using Use = std::shared_ptr<RegisteredMemory>;
  using Range = RegisteredMemory::Range;
  using Make = std::function<RegisteredMemory(const Range&, bool for_peers)>;
  RegistrationCache(std::size_t most, Make make) : most_(most), make_(std::move(make)) {}

  Use of(const void* data, std::size_t bytes, bool for_peers);     // kept, if it can be
  Use alone(const void* data, std::size_t bytes, bool for_peers);  // of just these bytes, and not kept

  // Allows registrations of this memory to be kept: the caller promises to report by end_exposed() when it goes away.
  void expose(const Range& r) { exposed_.push_back(r); }
  void end_exposed(const Range&);
  void end(const std::byte* begin, std::size_t bytes);  // called when the pages are given back or moved
  void drop_rail(int);
  // Registers all registered memory with one more rail, too. If that fails, which throws, none of it has the rail.
  void add_rail(const std::function<std::unique_ptr<MemoryRegion>(const Range&, bool for_peers)>&);
  void drop() { kept_.clear(); }
  std::size_t kept() const { return kept_.size(); }

 private:
  struct Kept {
    Range range;
    bool for_peers = false;
    Use registered;  // null: it can't be registered whole
  };
  bool make_room();
  Use made(const Range&, bool for_peers);

  const std::size_t most_;
  const Make make_;
  std::vector<Range> exposed_;
  std::list<Kept> kept_;  // the last used first
  std::vector<std::weak_ptr<RegisteredMemory>> all_;
};

}  // namespace trellis::ccl::libfabric
