// The streams of this process by device, so that the default stream can wait for those of its own.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "ccl/api/cuda/cuda_runtime.h"
#include "ccl/api/trellis.h"

namespace trellis::cuda {

int& current_device();  // of this thread
int device_count();

class Streams {
 public:
  void add(trellis_stream, bool blocking);  // of the current device
  void remove(trellis_stream);
  cudaError_t synchronize(bool blocking_only);  // the current device's; returns the first failure

 private:
  struct Kind {
    int device;
    bool blocking;
  };
  std::mutex mutex_;
  std::map<trellis_stream, Kind> known_;
};
Streams& streams();

// 1 and 2 are CUDA's names for the default stream, NULL.
inline trellis_stream stream_of(cudaStream_t stream) {
  return reinterpret_cast<size_t>(stream) <= 2 ? nullptr : reinterpret_cast<trellis_stream>(stream);
}

cudaError_t error_of(trellis_result);
cudaError_t noted(cudaError_t);  // as this thread's last error, when it is one

}  // namespace trellis::cuda
