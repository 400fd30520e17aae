#include "measure/buffers.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>

#include "ccl/plan/call_check.h"
#include "device/noexcept_release.h"
#include "measure/bench_names.h"
#include "schedule/collective_traits.h"
#include "text/refuse.h"

namespace trellis::measure {
namespace {

using schedule::Collective;

constexpr std::align_val_t alignment{4096};

// a * b, or the largest number where that overflows.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t exact = 0;
  return __builtin_mul_overflow(a, b, &exact) ? ~std::uint64_t{0} : exact;
}

}  // namespace

bool has_in_place(Collective c) { return schedule::traits(c).may_alias && schedule::carries_data(c); }

void refuse_too_large(std::uint64_t each, int ranks, int streams, const char* flag, std::uint64_t free) {
  const std::uint64_t all = product(each, static_cast<std::uint64_t>(ranks) * static_cast<std::uint64_t>(streams));
  if (all > free)
    text::refuse("{} ranks of {} each need {} of memory, and {} are free: a smaller {} may do", ranks, bytes_text(each),
                 bytes_text(all), bytes_text(free), flag);
}

BenchBuffers::BenchBuffers(device::Device& device, bool of_device, std::size_t input, std::size_t output,
                           std::size_t offset)
    : device_(device), of_device_(of_device), offset_(offset) {
  first_ = allocate(std::max(input, output));
  try {
    second_ = allocate(output);
  } catch (...) {
    release(first_);
    throw;
  }
}

BenchBuffers::~BenchBuffers() {
  release(first_);
  release(second_);
}

std::byte* BenchBuffers::allocate(std::size_t bytes) {
  const std::size_t all = bytes + offset_ + 1;
  void* const memory = of_device_ ? device_.allocate(all) : ::operator new(all, alignment);
  std::memset(memory, 0, all);
  return static_cast<std::byte*>(memory);
}

void BenchBuffers::release(std::byte* memory) {
  if (of_device_)
    device::give_back(device_, memory);
  else
    ::operator delete(memory, alignment);
}

void BenchBuffers::place(ccl::Call& call, ccl::Rank rank, ccl::Rank ranks, bool in_place) const {
  const ccl::BufferBytes e = ccl::extents_of(call, rank, ranks);
  std::byte *in = first_ + offset_, *out = second_ + offset_;
  if (in_place && e.input != 0 && e.output != 0) {
    std::size_t own = std::min(e.input, e.output) * static_cast<std::size_t>(rank);
    if (schedule::uneven(call.operation.collective))
      own = size_of(call.type) * std::accumulate(call.counts.begin(), call.counts.begin() + rank, std::size_t{0});
    out = in;
    if (e.input < e.output) in += own;
    if (e.output < e.input) out += own;
  }
  call.input = in;
  call.output = out;
}

}  // namespace trellis::measure
