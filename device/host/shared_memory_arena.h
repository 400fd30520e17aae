// Page allocator over one large sparse memfd file that other processes can map. Unused pages take no memory. A forked
// process cannot change its parent's memory, and shows nothing to peers: a page that it writes becomes its own. Until
// then it sees what the parent writes there, and zeros or other data once the parent has released it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "device/device.h"

namespace trellis::device {

// The size of the window's address range, in whole pages, for a process that may have this much memory: four times as
// much, which leaves room for holes between allocations. As every process of a host maps its peers' windows, large
// machines would run short of addresses: there it is 4 TiB, or the memory if that is more.
std::size_t window_bytes(std::uint64_t memory);

class SharedMemoryArena {
 public:
  SharedMemoryArena();
  ~SharedMemoryArena();
  SharedMemoryArena(const SharedMemoryArena&) = delete;
  SharedMemoryArena& operator=(const SharedMemoryArena&) = delete;

  void* allocate(std::size_t bytes);
  void release(void*);  // returns the pages to the system
  Window window() const { return window_; }
  InWindow find(const void* data, std::size_t bytes) const;
  std::unique_ptr<Shared> share(void* data, std::size_t bytes);
  std::size_t allocated_bytes() const;

 private:
  // Pages of the process that were moved into the file.
  struct Moved {
    std::size_t bytes = 0;
    std::size_t offset = 0;
    int uses = 0;
  };
  class Sharing;
  friend class LiveArenas;
  void make_private();  // in a forked process
  using MovedPages = std::map<std::byte*, Moved>;
  MovedPages::iterator moved_with(std::byte* begin, std::size_t bytes);
  MovedPages::iterator moved_within(std::byte* begin, std::size_t bytes);
  void end_sharing(std::byte* begin);

  Window window_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset to bytes; adjacent holes are merged
  std::map<std::size_t, std::size_t> used_;
  std::mutex sharing_;  // held while pages move
  MovedPages moved_;
  std::atomic<bool> inherited_ = false;  // from the process that forked this one
  std::atomic<bool> any_moved_ = false;  // lets find() skip the lock while nothing is shared
};

}  // namespace trellis::device
