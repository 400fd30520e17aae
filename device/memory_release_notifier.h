// Announces that memory is about to be released, so that what is cached about its pages, such as their registration
// with a fabric, can be used until then.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace trellis::device {

class Device;

class MemoryReleaseNotifier {
 public:
  struct Range {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    Device* exporter = nullptr;  // the device whose DMA-BUF a fabric registers; null: host memory
  };
  using Told = std::function<void(const std::byte* begin, std::size_t bytes)>;
  class Watch;

  // `told` is called before any page of a range is given back or moved elsewhere, until the result is destroyed.
  std::unique_ptr<Watch> watch(Told told);
  // The range that contains all of this; none: its end is not announced.
  std::optional<Range> find(const void* data, std::size_t bytes) const;

  // Called by whoever allocates memory, or moves it. Nobody may use the memory meanwhile.
  void begins(std::byte* begin, std::size_t bytes, Device* exporter = nullptr);
  void ends(std::byte* begin, std::size_t bytes);  // all ranges that begin there
  void moves(const std::byte* begin, std::size_t bytes);

 private:
  mutable std::mutex ranges_mutex_, told_mutex_;
  std::map<const std::byte*, Range> ranges_;
  std::list<Told> told_;
};

class MemoryReleaseNotifier::Watch {
 public:
  Watch(MemoryReleaseNotifier& memory, std::list<Told>::iterator at) : memory_(memory), at_(at) {}
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  MemoryReleaseNotifier& memory_;
  const std::list<Told>::iterator at_;
};

MemoryReleaseNotifier& watched_memory();  // of this process

}  // namespace trellis::device
