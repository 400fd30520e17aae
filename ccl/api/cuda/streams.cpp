#include "ccl/api/cuda/streams.h"

#include "device/fork_safe_singleton.h"

// Makes operations of nccl.h on a default stream use the default streams of this library.
[[gnu::constructor]] static void use_default_streams() { trellis_default_streams_use(); }

namespace trellis::cuda {

int& current_device() {
  thread_local int device = 0;
  return device;
}

int device_count() {
  static const int count = [] {
    int devices = 0;
    return trellis_devices(&devices) == TRELLIS_OK ? devices : 0;
  }();
  return count;
}

void CudaStreams::add(trellis_stream stream, unsigned flags) {
  const std::lock_guard lock(mutex_);
  known_.insert_or_assign(stream, Kind{.device = current_device(), .flags = flags});
}

trellis_result CudaStreams::destroy(trellis_stream stream) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = known_.find(stream); found != known_.end()) found->second.ending = true;
  }
  const trellis_result destroyed = trellis_stream_destroy(stream);
  {
    const std::lock_guard lock(mutex_);
    known_.erase(stream);
  }
  destroyed_.notify_all();
  return destroyed;
}

// Waits until no thread is in destroy() for the stream, and so for the stream's work, which may still run after the
// handle has become invalid.
void CudaStreams::await_destroyed(trellis_stream stream) {
  std::unique_lock lock(mutex_);
  destroyed_.wait(lock, [&] {
    const auto found = known_.find(stream);
    return found == known_.end() || !found->second.ending;
  });
}

unsigned CudaStreams::flags(trellis_stream stream) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(stream);
  return found == known_.end() ? cudaStreamDefault : found->second.flags;
}

cudaError_t CudaStreams::synchronize(bool blocking_only) {
  std::vector<trellis_stream> ours;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [stream, kind] : known_)
      if (kind.device == current_device() && (!blocking_only || kind.flags == cudaStreamDefault))
        ours.push_back(stream);
  }
  ours.push_back(stream_of(nullptr));
  cudaError_t first = cudaSuccess;
  for (trellis_stream stream : ours) {
    const trellis_result ended = trellis_stream_synchronize(stream);
    if (ended == TRELLIS_INVALID_ARGUMENT && trellis_stream_query(stream) == TRELLIS_INVALID_ARGUMENT)
      await_destroyed(stream);  // by another thread
    else if (ended != TRELLIS_OK && first == cudaSuccess)
      first = cudaErrorLaunchFailure;
  }
  return first;
}

// Never destroyed, like the streams.
CudaStreams& streams() {
  return device::of_this_process([] { return new CudaStreams; });
}

bool is_default(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

trellis_stream stream_of(cudaStream_t stream) {
  trellis_stream own = nullptr;
  if (is_default(stream)) {
    trellis_default_stream(current_device(), &own);
    return own;
  }
  if (stream != cudaStreamPerThread) return reinterpret_cast<trellis_stream>(stream);
  if (trellis_thread_stream(current_device(), &own) == TRELLIS_OK) streams().add(own, cudaStreamDefault);
  return own;
}

bool in_stream_work() {
  int inside = 0;
  trellis_stream_work(&inside);
  return inside != 0;
}

cudaError_t finish(trellis_stream stream) {
  return trellis_stream_synchronize(stream) == TRELLIS_OK ? cudaSuccess : cudaErrorLaunchFailure;
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

cudaError_t error_of_stream(trellis_result result) {
  return result == TRELLIS_INVALID_ARGUMENT ? cudaErrorInvalidResourceHandle : error_of(result);
}

}  // namespace trellis::cuda
