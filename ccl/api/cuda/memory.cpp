#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "ccl/api/cuda/allocations.h"
#include "ccl/api/cuda/cuda_error_boundary.h"
#include "device/fork_safe_singleton.h"

using namespace trellis::cuda;

namespace trellis::cuda {
Allocations& allocations() {
  return device::of_this_process([] { return new Allocations; });
}
}  // namespace trellis::cuda

namespace {

// Different names, so that cudaFreeHost refuses memory from cudaMalloc, and cudaFree refuses memory from
// cudaMallocHost.
constexpr const char *of_device = "cudaMalloc", *of_host = "cudaMallocHost";

cudaError_t allocate(const char* function, void** memory, size_t bytes) {
  return guarded([&] {
    const trellis_result allocated = trellis_alloc_by(function, memory, bytes);
    if (allocated != TRELLIS_OK) return error_of(allocated);
    try {
      allocations().add(*memory, bytes);
    } catch (...) {
      trellis_free_by(function, std::exchange(*memory, nullptr));
      throw;
    }
    return cudaSuccess;
  });
}

cudaError_t release(const char* function, void* memory) {
  if (memory == nullptr) return cudaSuccess;
  return guarded_wait([&] {
    const cudaError_t waited = streams().synchronize(false);
    const auto bytes = allocations().remove(memory);  // first: another thread may get the same address
    const trellis_result freed = trellis_free_by(function, memory);
    if (freed == TRELLIS_OK) return waited;
    if (bytes) allocations().add(memory, *bytes);
    return error_of(freed);
  });
}

// The error of a call on a stream: cudaErrorInvalidResourceHandle if the stream does not exist (any more), and
// cudaErrorInvalidValue for other invalid arguments.
cudaError_t ended(trellis_result result, trellis_stream stream) {
  if (result != TRELLIS_INVALID_ARGUMENT) return error_of(result);
  return trellis_stream_query(stream) == TRELLIS_INVALID_ARGUMENT ? cudaErrorInvalidResourceHandle
                                                                  : cudaErrorInvalidValue;
}

struct Filling {
  void* memory;
  int value;
  size_t bytes;

  static void fill(void* argument) {
    const auto* f = static_cast<Filling*>(argument);
    std::memset(f->memory, f->value, f->bytes);
    drop(argument);
  }
  static void drop(void* argument) { delete static_cast<Filling*>(argument); }
};

cudaError_t fill(void* memory, int value, size_t bytes, trellis_stream stream) {
  if (memory == nullptr && bytes != 0) return cudaErrorInvalidValue;
  auto* filling = new (std::nothrow) Filling{memory, value, bytes};
  if (filling == nullptr) return cudaErrorMemoryAllocation;
  const trellis_result called = trellis_stream_call_or(stream, Filling::fill, Filling::drop, filling);
  if (called != TRELLIS_OK) delete filling;
  return error_of_stream(called);
}

// A copy from a buffer of its own, which holds the source's bytes, so that the caller may change the source at once.
struct Staged {
  void* to;
  size_t bytes;
  std::unique_ptr<char[]> from;

  static void copy(void* argument) {
    const auto* s = static_cast<Staged*>(argument);
    std::memcpy(s->to, s->from.get(), s->bytes);
    drop(argument);
  }
  static void drop(void* argument) { delete static_cast<Staged*>(argument); }
};

cudaError_t copy_staged(void* to, const void* from, size_t bytes, trellis_stream stream) {
  std::unique_ptr<char[]> room(new (std::nothrow) char[bytes]);
  if (room == nullptr) return cudaErrorMemoryAllocation;
  std::memcpy(room.get(), from, bytes);
  auto* const staged = new (std::nothrow) Staged{to, bytes, std::move(room)};
  if (staged == nullptr) return cudaErrorMemoryAllocation;
  const trellis_result called = trellis_stream_call_or(stream, Staged::copy, Staged::drop, staged);
  if (called != TRELLIS_OK) Staged::drop(staged);
  return error_of_stream(called);
}

cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, trellis_stream stream) {
  if (static_cast<unsigned>(kind) > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  const bool possible = bytes != 0 && to != nullptr && from != nullptr;
  if (possible && kind == cudaMemcpyHostToDevice && !allocations().have(from))
    return copy_staged(to, from, bytes, stream);
  const bool waits = possible && kind == cudaMemcpyDeviceToHost && !allocations().have(to);
  if (waits && in_stream_work()) return cudaErrorNotPermitted;
  const cudaError_t begun = ended(trellis_copy(to, from, bytes, stream), stream);
  return begun == cudaSuccess && waits ? finish(stream) : begun;
}

// Runs on the default stream and waits; if the stream is empty, runs in the calling thread.
template <class Body>
cudaError_t now(Body&& body) {
  return guarded_wait([&] {
    const trellis_stream all = stream_of(nullptr);
    const trellis_result before = trellis_stream_query(all);
    if (before != TRELLIS_OK && before != TRELLIS_IN_PROGRESS) return cudaErrorLaunchFailure;
    if (before == TRELLIS_OK) return body(nullptr);
    const cudaError_t begun = body(all);
    return begun == cudaSuccess ? finish(all) : begun;
  });
}

}  // namespace

cudaError_t cudaMalloc(void** memory, size_t bytes) { return allocate(of_device, memory, bytes); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return allocate(of_host, memory, bytes); }
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int) { return allocate(of_host, memory, bytes); }
cudaError_t cudaFree(void* memory) { return release(of_device, memory); }
cudaError_t cudaFreeHost(void* memory) { return release(of_host, memory); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (is_default(stream)) return cudaMemcpy(to, from, bytes, kind);
  return guarded([&] { return copy(to, from, bytes, kind, stream_of(stream)); });
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (static_cast<unsigned>(kind) > cudaMemcpyDefault) return noted(cudaErrorInvalidMemcpyDirection);
  return now([&](trellis_stream on) { return ended(trellis_copy(to, from, bytes, on), on); });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  if (is_default(stream)) return cudaMemset(memory, value, bytes);
  return guarded([&] { return fill(memory, value, bytes, stream_of(stream)); });
}
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return now([&](trellis_stream on) { return fill(memory, value, bytes, on); });
}
