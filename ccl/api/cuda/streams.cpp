#include "ccl/api/cuda/streams.h"

#include <sched.h>

#include <algorithm>

#include "device/of_this_process.h"

namespace trellis::cuda {

int& current_device() {
  thread_local int device = 0;
  return device;
}

int device_count() {
  static const int count = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    const int cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    int local_ranks = 1;
    trellis_launched(nullptr, nullptr, nullptr, &local_ranks);  // when that fails: as if nobody had launched us
    return std::max({cpus, local_ranks, 2});
  }();
  return count;
}

void Streams::add(trellis_stream stream, bool blocking) {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(stream, Kind{current_device(), blocking});
}

void Streams::remove(trellis_stream stream) {
  const std::lock_guard lock(mutex_);
  known_.erase(stream);
}

cudaError_t Streams::synchronize(bool blocking_only) {
  std::vector<trellis_stream> ours;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [stream, kind] : known_)
      if (kind.device == current_device() && (kind.blocking || !blocking_only)) ours.push_back(stream);
  }
  cudaError_t first = cudaSuccess;
  for (trellis_stream stream : ours)
    if (const trellis_result r = trellis_stream_synchronize(stream); r != TRELLIS_OK && first == cudaSuccess)
      first = cudaErrorLaunchFailure;
  return first;
}

// Left to the end of the process, like the streams.
Streams& streams() {
  return device::of_this_process([] { return new Streams; });
}

cudaError_t error_of(trellis_result result) {
  switch (result) {
    case TRELLIS_OK:
      return cudaSuccess;
    case TRELLIS_IN_PROGRESS:
      return cudaErrorNotReady;
    case TRELLIS_INVALID_ARGUMENT:
      return cudaErrorInvalidValue;
    case TRELLIS_OUT_OF_MEMORY:
      return cudaErrorMemoryAllocation;
    default:
      return cudaErrorUnknown;
  }
}

}  // namespace trellis::cuda
