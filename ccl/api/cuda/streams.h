// The streams of this process by device, so that a device's default stream waits for that device's streams.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <vector>

#include "ccl/api/cuda/cuda_runtime.h"
#include "ccl/api/trellis.h"

namespace trellis::cuda {

int& current_device();  // of this thread
int device_count();     // 0: TRELLIS_DEVICES is invalid

class CudaStreams {
 public:
  void add(trellis_stream, unsigned flags);     // to the current device
  trellis_result destroy(trellis_stream);       // waits for its work
  cudaError_t synchronize(bool blocking_only);  // the current device's, and its default one; returns the first failure
  unsigned flags(trellis_stream) const;

 private:
  struct Kind {
    int device;
    unsigned flags;
    bool ending = false;  // a thread is in destroy()
  };
  void await_destroyed(trellis_stream);
  mutable std::mutex mutex_;
  std::condition_variable destroyed_;
  std::map<trellis_stream, Kind> known_;
};
CudaStreams& streams();

// The stream of a handle. The handle may be one of CUDA's names for the default stream or the thread's own; these
// belong to the current device. NULL: no stream could be created.
trellis_stream stream_of(cudaStream_t);
bool is_default(cudaStream_t);

cudaError_t error_of(trellis_result);
cudaError_t error_of_stream(trellis_result);  // error of a call on a stream: an invalid argument is an invalid handle
cudaError_t noted(cudaError_t);               // records it as this thread's last error, if it is one

bool in_stream_work();  // whether a stream runs the calling function

// Waits for the stream and returns the error of its work.
cudaError_t finish(trellis_stream);

}  // namespace trellis::cuda
