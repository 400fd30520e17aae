// Device interface: memory, streams, events and arithmetic of one accelerator, real or not. Pass a device's pointers
// only to its own functions. The host's are ordinary pointers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/reduce/copy.h"
#include "kernels/reduce/divide.h"
#include "kernels/reduce/reduce.h"

namespace trellis::device {

// A queue of work that runs in order, concurrently with the caller. Where a function takes a Stream*, null means: run
// now, in the calling thread.
class Stream {
 public:
  virtual ~Stream() = default;  // waits for the submitted work
  virtual void submit(std::function<void()> work) = 0;
  virtual bool idle() const = 0;
  // Waits for all work submitted so far. Throws the exception of the first piece of work that failed, once; work
  // submitted after that piece has not been done.
  virtual void synchronize() = 0;
};

// A point in a stream's work that others can wait for.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream*) = 0;
  virtual bool ready() const = 0;  // also true before the first record
  virtual void synchronize() = 0;
  virtual void wait(Stream*) = 0;  // work submitted to the stream from now on waits for the last record
};

// The address range that allocate() serves, backed by a file that other processes can map; fd -1: they cannot map it.
struct Window {
  int fd = -1;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

// Where a range of bytes is in the window's file: the first `outside` bytes are not in it, the next `bytes` are at
// `offset`.
struct InWindow {
  std::size_t outside = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// The caller's own memory, which is in the window too until this object is destroyed.
class Shared {
 public:
  virtual ~Shared() = default;
  virtual std::size_t bytes() const = 0;  // bytes that peers can read there; 0: this kind of memory cannot be shared
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;

  virtual void* allocate(std::size_t bytes) = 0;  // aligned to a page; throws std::bad_alloc
  virtual void release(void*) = 0;
  virtual Window window() const = 0;
  virtual InWindow find(const void* data, std::size_t bytes) const = 0;
  // Moves the whole pages of memory from malloc or mmap into the window's file; addresses and contents stay. Nobody may
  // write to them during the move, there or back, and peers may not read them while the result is destroyed. Destroy
  // the result before the memory is freed and before the device. A process that is forked later shares the pages with
  // this one. Throws system_error, bad_alloc.
  virtual std::unique_ptr<Shared> share(void* data, std::size_t bytes) = 0;
  virtual std::size_t allocated_bytes() const = 0;  // bytes of the window that are allocated or shared

  // These are done when they return.
  virtual void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores = kernels::Stores::cached) = 0;
  virtual void reduce(kernels::Reduction, kernels::DType, std::span<const void* const> sources, void* dst,
                      std::size_t n, const kernels::ReduceOptions&) = 0;
  virtual void divide(kernels::DType, void* data, std::size_t n, std::uint32_t divisor) = 0;

  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event() = 0;
};

std::shared_ptr<Device> open(std::string_view name);  // "host"; throws invalid_argument that names the known devices
std::shared_ptr<Device> host_of_process();  // one per process, shared by all callers while any of them holds it

}  // namespace trellis::device
