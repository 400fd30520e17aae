// A rank's memory for operations of up to some size, out of place and in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "ccl/communicator.h"

namespace trellis::tools {

class BenchBuffers {
 public:
  // `offset`: bytes past an aligned address at which both begin. From the device: memory that peers can read directly.
  // The device must outlive it. All of it has been written.
  BenchBuffers(device::Device&, bool of_device, std::size_t input, std::size_t output, std::size_t offset);
  ~BenchBuffers();
  BenchBuffers(const BenchBuffers&) = delete;
  BenchBuffers& operator=(const BenchBuffers&) = delete;

  // Gives the call its pointers.
  void place(ccl::Call&, ccl::Rank rank, ccl::Rank ranks, bool in_place) const;

 private:
  std::byte* allocate(std::size_t bytes);
  void release(std::byte*);

  device::Device& device_;
  const bool of_device_;
  const std::size_t offset_;
  std::byte* first_ = nullptr;  // as large as the larger one
  std::byte* second_ = nullptr;
};

// Whether the collective knows a form where input and output share memory.
bool has_in_place(schedule::Collective);

// Throws invalid_argument where the buffers of all ranks here and all streams are more than the memory that is free,
// before the system has to end somebody for it. `flag`: what sets their size.
void refuse_too_large(std::uint64_t each, int ranks, int streams, const char* flag);

}  // namespace trellis::tools
