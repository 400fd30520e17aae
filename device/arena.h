// Memory in one large sparse file that other processes can map. Pages that are not in use cost nothing.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "device/device.h"

namespace trellis::device {

class Arena {
 public:
  Arena();
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t bytes);
  void release(void*);  // gives the pages back
  Window window() const { return window_; }
  std::size_t allocated_bytes() const;

 private:
  Window window_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // offset to bytes, merged with their neighbours
  std::map<std::size_t, std::size_t> used_;
};

}  // namespace trellis::device
