#include <cstring>
#include <new>

#include "ccl/api/cuda/streams.h"

using namespace trellis::cuda;

namespace {

cudaError_t allocate(void** memory, size_t bytes) { return noted(error_of(trellis_alloc(memory, bytes))); }

cudaError_t release(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  const cudaError_t waited = streams().synchronize(false);
  const cudaError_t freed = error_of(trellis_free(memory));
  return noted(freed != cudaSuccess ? freed : waited);
}

// The default stream waits for the device's others; a stream that is no more is another error than a bad pointer.
cudaError_t enter(cudaStream_t stream) {
  if (stream_of(stream) == nullptr) return streams().synchronize(true);
  const trellis_result known = trellis_stream_query(stream_of(stream));
  return known == TRELLIS_INVALID_ARGUMENT ? cudaErrorInvalidResourceHandle : cudaSuccess;
}

struct Filling {
  void* memory;
  int value;
  size_t bytes;
};

}  // namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return allocate(memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int) { return allocate(memory, bytes); }
cudaError_t cudaFree(void* memory) { return release(memory); }
cudaError_t cudaFreeHost(void* memory) { return release(memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (static_cast<unsigned>(kind) > cudaMemcpyDefault) return noted(cudaErrorInvalidMemcpyDirection);
  if (const cudaError_t entered = enter(stream); entered != cudaSuccess) return noted(entered);
  return noted(error_of(trellis_copy(to, from, bytes, stream_of(stream))));
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (memory == nullptr && bytes != 0) return noted(cudaErrorInvalidValue);
  if (const cudaError_t entered = enter(stream); entered != cudaSuccess) return noted(entered);
  if (bytes == 0) return cudaSuccess;
  auto* filling = new (std::nothrow) Filling{memory, value, bytes};
  if (filling == nullptr) return noted(cudaErrorMemoryAllocation);
  const auto fill = [](void* argument) {
    auto* f = static_cast<Filling*>(argument);
    std::memset(f->memory, f->value, f->bytes);
    delete f;
  };
  const trellis_result called = trellis_stream_call(stream_of(stream), fill, filling);
  if (called != TRELLIS_OK) delete filling;
  return noted(error_of(called));
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) { return cudaMemsetAsync(memory, value, bytes, nullptr); }
