// Boundary between C++ and CUDA's runtime API: no exception leaves a function, and none waits when a stream's work
// calls it.
#pragma once

#include <new>
#include <stdexcept>

#include "ccl/api/cuda/streams.h"

namespace trellis::cuda {

// Runs the body of a function, which returns its error.
template <class Body>
cudaError_t guarded(Body&& body) noexcept {
  try {
    return noted(body());
  } catch (const std::invalid_argument&) {
    return noted(cudaErrorInvalidResourceHandle);
  } catch (const std::bad_alloc&) {
    return noted(cudaErrorMemoryAllocation);
  } catch (...) {
    return noted(cudaErrorUnknown);
  }
}

// The same for a function that waits for streams. Called from a stream's work, it returns an error, since it could wait
// for that very work.
template <class Body>
cudaError_t guarded_wait(Body&& body) noexcept {
  if (in_stream_work()) return noted(cudaErrorNotPermitted);
  return guarded(static_cast<Body&&>(body));
}

}  // namespace trellis::cuda
