// Enough of CUDA's runtime API, over the host's memory and threads, for programs written to NCCL's host API. Opt in by
// the include path; where CUDA itself is at hand, its own header is the one to use.
//
// Device numbers are labels, all with one memory: as many as CPUs that this process may use, or ranks that were started
// on this host if those are more, and at least 2. A stream is a thread. The default stream (NULL) is the calling
// thread: what runs on it is done when the call returns, and, as CUDA has it, first waits for the current device's
// streams but for those made with cudaStreamNonBlocking; collectives of nccl.h on it do not wait for them. There are no
// kernels; cudaLaunchHostFunc runs a function in turn.
#pragma once

#include <stdlib.h>  // which programs expect to come with this header
#include <string.h>

#include "ccl/api/cuda/types.h"

#ifdef __cplusplus
#define TRELLIS_CUDA_DEFAULT(value) = value
extern "C" {
#else
#define TRELLIS_CUDA_DEFAULT(value)
#endif

#define TRELLIS_CUDA __attribute__((visibility("default")))

TRELLIS_CUDA cudaError_t cudaGetDeviceCount(int* count);
TRELLIS_CUDA cudaError_t cudaSetDevice(int device);  // of this thread
TRELLIS_CUDA cudaError_t cudaGetDevice(int* device);
TRELLIS_CUDA cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device);
TRELLIS_CUDA cudaError_t cudaDeviceSynchronize(void);  // waits for all streams of the device
TRELLIS_CUDA cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
TRELLIS_CUDA cudaError_t cudaRuntimeGetVersion(int* version);
TRELLIS_CUDA cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device);
TRELLIS_CUDA cudaError_t cudaDeviceReset(void);  // as cudaDeviceSynchronize: there is nothing else to undo
TRELLIS_CUDA cudaError_t cudaDriverGetVersion(int* version);

// Memory that ncclMemAlloc would give as well. The flags have no effect.
TRELLIS_CUDA cudaError_t cudaMalloc(void** memory, size_t bytes);
TRELLIS_CUDA cudaError_t cudaMallocHost(void** memory, size_t bytes);
TRELLIS_CUDA cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int flags);
TRELLIS_CUDA cudaError_t cudaFree(void* memory);  // waits for the device, as CUDA does; NULL is let be
TRELLIS_CUDA cudaError_t cudaFreeHost(void* memory);

TRELLIS_CUDA cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind);
TRELLIS_CUDA cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                         cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));
TRELLIS_CUDA cudaError_t cudaMemset(void* memory, int value, size_t bytes);
TRELLIS_CUDA cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes,
                                         cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));

TRELLIS_CUDA cudaError_t cudaStreamCreate(cudaStream_t* stream);
TRELLIS_CUDA cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
TRELLIS_CUDA cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
TRELLIS_CUDA cudaError_t cudaStreamDestroy(cudaStream_t stream);  // waits for what it was handed
TRELLIS_CUDA cudaError_t cudaStreamSynchronize(cudaStream_t stream);
TRELLIS_CUDA cudaError_t cudaStreamQuery(cudaStream_t stream);
TRELLIS_CUDA cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                             unsigned int flags TRELLIS_CUDA_DEFAULT(0));
TRELLIS_CUDA cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData);

TRELLIS_CUDA cudaError_t cudaEventCreate(cudaEvent_t* event);
TRELLIS_CUDA cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
TRELLIS_CUDA cudaError_t cudaEventDestroy(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));
TRELLIS_CUDA cudaError_t cudaEventSynchronize(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventQuery(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

TRELLIS_CUDA const char* cudaGetErrorName(cudaError_t error);
TRELLIS_CUDA const char* cudaGetErrorString(cudaError_t error);
TRELLIS_CUDA cudaError_t cudaGetLastError(void);  // of this thread, and clears it
TRELLIS_CUDA cudaError_t cudaPeekAtLastError(void);

#ifdef __cplusplus
}
// C++ programs allocate typed pointers.
template <class T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** memory, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}
#endif
