#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "ccl/api/cuda/cuda_error_boundary.h"

using namespace trellis::cuda;

namespace {

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

cudaError_t invalid() { return noted(cudaErrorInvalidValue); }

struct Text {
  cudaError_t error;
  const char *name, *text;
};
constexpr Text texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "an argument has a value that the function does not take"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError",
     "TRELLIS_DEVICES: expected an integer from 1 to 4096"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "no such direction of a copy"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "there is no device of that number"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "no such stream or event, or it was destroyed"},
    {cudaErrorNotReady, "cudaErrorNotReady", "not ready yet"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "an operation on a stream failed or was aborted"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "a function that a stream runs cannot wait for streams"},
    {cudaErrorUnknown, "cudaErrorUnknown", "an error that has no name here"},
};

const Text& text_of(cudaError_t error) {
  for (const Text& t : texts)
    if (t.error == error) return t;
  return texts[std::size(texts) - 1];
}

}  // namespace

namespace trellis::cuda {
cudaError_t noted(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error() = error;
  return error;
}
}  // namespace trellis::cuda

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return invalid();
  *count = device_count();
  return *count == 0 ? noted(cudaErrorInitializationError) : cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= device_count()) return noted(cudaErrorInvalidDevice);
  current_device() = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  if (device == nullptr) return invalid();
  *device = current_device();
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  if (prop == nullptr) return invalid();
  if (device < 0 || device >= device_count()) return noted(cudaErrorInvalidDevice);
  *prop = {};
  std::snprintf(prop->name, sizeof prop->name, "host %d", device);
  trellis_host_memory(nullptr, &prop->totalGlobalMem);
  prop->multiProcessorCount = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  prop->integrated = prop->canMapHostMemory = prop->unifiedAddressing = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (value == nullptr) return invalid();
  cudaDeviceProp prop;
  if (const cudaError_t asked = cudaGetDeviceProperties(&prop, device); asked != cudaSuccess) return asked;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = prop.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = prop.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = prop.minor;
      return cudaSuccess;
  }
  return invalid();
}
cudaError_t cudaDeviceReset(void) { return cudaDeviceSynchronize(); }
cudaError_t cudaDeviceSynchronize(void) {
  return guarded_wait([] { return streams().synchronize(false); });
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return invalid();
  return noted(error_of(trellis_host_memory(free, total)));
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return invalid();
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

const char* cudaGetErrorName(cudaError_t error) { return text_of(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return text_of(error).text; }
cudaError_t cudaGetLastError(void) {
  const cudaError_t last = last_error();
  last_error() = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError(void) { return last_error(); }
