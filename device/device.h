// Where memory lives and who works on it: one accelerator, real or not. Pointers that a device gives out are passed to
// its own functions only; on the host they are ordinary ones.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/copy.h"
#include "kernels/divide.h"
#include "kernels/reduce.h"

namespace trellis::device {

// Work done in the order in which it was handed in, beside the caller. Where a Stream* is asked for, null means: now,
// in the calling thread.
class Stream {
 public:
  virtual ~Stream() = default;  // waits for what was handed in
  virtual void submit(std::function<void()> work) = 0;
  virtual bool idle() const = 0;
  // Waits for all that was handed in so far. Throws what the first failed piece of work threw, once; what was handed in
  // after that piece has not been done.
  virtual void synchronize() = 0;
};

// A point in a stream's work that others can wait for.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream*) = 0;
  virtual bool ready() const = 0;  // also before the first record
  virtual void synchronize() = 0;
  virtual void wait(Stream*) = 0;  // what is handed to the stream from now on waits for the last record
};

// The part of the address space that allocate() serves, as a file that other processes can map; fd -1: they can't.
struct Window {
  int fd = -1;
  std::byte* base = nullptr;
  std::size_t bytes = 0;
};

// Of a run of bytes, where the window's file has them: the first `outside` nowhere, the next `bytes` at `offset`.
struct InWindow {
  std::size_t outside = 0;
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// Memory of the caller's own that is in the window too, until this goes.
class Shared {
 public:
  virtual ~Shared() = default;
  virtual std::size_t bytes() const = 0;  // that peers can read there; 0: it is memory that can't be
};

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string_view name() const = 0;

  virtual void* allocate(std::size_t bytes) = 0;  // aligned to a page; throws std::bad_alloc
  virtual void release(void*) = 0;
  virtual Window window() const = 0;
  virtual InWindow find(const void* data, std::size_t bytes) const = 0;
  // Moves the whole pages of what malloc or mmap gave into the window's file; addresses and contents stay. Nobody may
  // write to them meanwhile, nor peers read them when the result goes, which is before the memory is given back, and
  // before the device. A process forked later has them in common with this one. Throws system_error, bad_alloc.
  virtual std::unique_ptr<Shared> share(void* data, std::size_t bytes) = 0;
  virtual std::size_t allocated_bytes() const = 0;  // of the window: allocated, or shared

  // Done when they return.
  virtual void copy(void* dst, const void* src, std::size_t bytes, kernels::Stores = kernels::Stores::cached) = 0;
  virtual void reduce(kernels::Reduction, kernels::DType, std::span<const void* const> sources, void* dst,
                      std::size_t n, const kernels::ReduceOptions&) = 0;
  virtual void divide(kernels::DType, void* data, std::size_t n, std::uint32_t divisor) = 0;

  virtual std::unique_ptr<Stream> stream() = 0;
  virtual std::unique_ptr<Event> event() = 0;
};

std::shared_ptr<Device> open(std::string_view name);  // "host"; throws invalid_argument naming what is known
std::shared_ptr<Device> host_of_process();            // the same for all who ask for it while somebody has it

}  // namespace trellis::device
