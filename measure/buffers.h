// A rank's memory for operations up to some size, in place or out of place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ccl/communicator.h"
#include "kernels/dispatch/available_memory.h"

namespace trellis::measure {

class BenchBuffers {
 public:
  // `offset`: bytes past an aligned address at which both buffers begin. `of_device`: use the device's memory, which
  // peers can read directly. The device must outlive the buffers. All of the memory has been written once.
  BenchBuffers(device::Device&, bool of_device, std::size_t input, std::size_t output, std::size_t offset);
  ~BenchBuffers();
  BenchBuffers(const BenchBuffers&) = delete;
  BenchBuffers& operator=(const BenchBuffers&) = delete;

  // Sets the call's pointers.
  void place(ccl::Call&, ccl::Rank rank, ccl::Rank ranks, bool in_place) const;

 private:
  std::byte* allocate(std::size_t bytes);
  void release(std::byte*);

  device::Device& device_;
  const bool of_device_;
  const std::size_t offset_;
  std::byte* first_ = nullptr;  // as large as the larger of input and output
  std::byte* second_ = nullptr;
};

// Whether the collective has a form in which input and output share memory.
bool has_in_place(schedule::Collective);

// Throws invalid_argument when the buffers of all ranks and streams here need more than the `free` bytes of memory,
// before the system kills a process for lack of it. `flag`: the option that sets their size.
void refuse_too_large(std::uint64_t each, int ranks, int streams, const char* flag,
                      std::uint64_t free = kernels::available_memory());

}  // namespace trellis::measure
