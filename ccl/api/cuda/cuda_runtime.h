// The part of CUDA's runtime API that programs for NCCL's host API use, over the host's memory and threads. Opt in
// through the include path. It cannot be mixed with CUDA itself: streams and memory of one mean nothing to the other.
//
// Device numbers are labels, and all share one memory. There are TRELLIS_DEVICES of them. If that is not set: the
// number of CPUs that this process may use, or of ranks started on this host if that is more, and at least 2. A stream
// is a thread. Each device's default stream (NULL) is one too. It is ordered as CUDA's legacy default stream, also for
// collectives of nccl.h: it waits for the device's other streams and they for it, except for those created with
// cudaStreamNonBlocking. Every thread has its own stream for each device, cudaStreamPerThread, which is one of those
// other streams. There are no kernels; cudaLaunchHostFunc runs a host function in stream order.
#pragma once

#include <stdlib.h>  // programs expect to get it with this header
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
TRELLIS_CUDA cudaError_t cudaSetDevice(int device);  // for this thread
TRELLIS_CUDA cudaError_t cudaGetDevice(int* device);
TRELLIS_CUDA cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* prop, int device);
TRELLIS_CUDA cudaError_t cudaDeviceSynchronize(void);  // waits for all streams of the device
TRELLIS_CUDA cudaError_t cudaMemGetInfo(size_t* free, size_t* total);
TRELLIS_CUDA cudaError_t cudaRuntimeGetVersion(int* version);
TRELLIS_CUDA cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device);
TRELLIS_CUDA cudaError_t cudaDeviceReset(void);  // as cudaDeviceSynchronize; there is nothing else to reset
TRELLIS_CUDA cudaError_t cudaDriverGetVersion(int* version);

// Memory as from ncclMemAlloc, which the host can read and write. The flags have no effect.
TRELLIS_CUDA cudaError_t cudaMalloc(void** memory, size_t bytes);
TRELLIS_CUDA cudaError_t cudaMallocHost(void** memory, size_t bytes);
TRELLIS_CUDA cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned int flags);

// Both wait for the device, as in CUDA. NULL is ignored. cudaErrorInvalidValue: the memory is not from cudaMalloc, or,
// for cudaFreeHost, from cudaMallocHost or cudaHostAlloc; or it has been freed.
TRELLIS_CUDA cudaError_t cudaFree(void* memory);
TRELLIS_CUDA cudaError_t cudaFreeHost(void* memory);

// Functions without Async, and all functions on the default stream, are done when they return. For the others, as in
// CUDA: cudaMemcpyHostToDevice from memory that was not allocated above has read it when it returns;
// cudaMemcpyDeviceToHost into such memory has written it.
TRELLIS_CUDA cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind);
TRELLIS_CUDA cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                                         cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));
TRELLIS_CUDA cudaError_t cudaMemset(void* memory, int value, size_t bytes);
TRELLIS_CUDA cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes,
                                         cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));

TRELLIS_CUDA cudaError_t cudaStreamCreate(cudaStream_t* stream);
TRELLIS_CUDA cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
TRELLIS_CUDA cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
TRELLIS_CUDA cudaError_t cudaStreamDestroy(cudaStream_t stream);  // waits for the submitted work
TRELLIS_CUDA cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags);

// Synchronize and Query report a failed or aborted operation once, as cudaErrorLaunchFailure; so do cudaMemcpy,
// cudaMemset and cudaDeviceSynchronize. ncclCommGetAsyncError reports the error itself, until the communicator is
// destroyed.
TRELLIS_CUDA cudaError_t cudaStreamSynchronize(cudaStream_t stream);
TRELLIS_CUDA cudaError_t cudaStreamQuery(cudaStream_t stream);
TRELLIS_CUDA cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                             unsigned int flags TRELLIS_CUDA_DEFAULT(0));

// Run the program's functions in stream order. A host function is not called when earlier work failed; a callback is,
// and gets the error. They must not call CUDA or NCCL functions: there, those that would wait for streams or for other
// ranks return cudaErrorNotPermitted and ncclInvalidUsage.
TRELLIS_CUDA cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* userData);
TRELLIS_CUDA cudaError_t cudaLaunchHostFunc_v2(cudaStream_t stream, cudaHostFn_t function, void* userData,
                                               unsigned int syncMode);
TRELLIS_CUDA cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* userData,
                                               unsigned int flags);

TRELLIS_CUDA cudaError_t cudaEventCreate(cudaEvent_t* event);
TRELLIS_CUDA cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
TRELLIS_CUDA cudaError_t cudaEventDestroy(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream TRELLIS_CUDA_DEFAULT(NULL));
TRELLIS_CUDA cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags);

// cudaErrorLaunchFailure: a failure stopped the stream before it reached the event.
TRELLIS_CUDA cudaError_t cudaEventSynchronize(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventQuery(cudaEvent_t event);
TRELLIS_CUDA cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

TRELLIS_CUDA const char* cudaGetErrorName(cudaError_t error);
TRELLIS_CUDA const char* cudaGetErrorString(cudaError_t error);
TRELLIS_CUDA cudaError_t cudaGetLastError(void);  // of this thread; clears it
TRELLIS_CUDA cudaError_t cudaPeekAtLastError(void);

#ifdef __cplusplus
}
// Typed pointers, for C++ programs.
template <class T>
cudaError_t cudaMalloc(T** memory, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(memory), bytes);
}
template <class T>
cudaError_t cudaMallocHost(T** memory, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(memory), bytes);
}
#endif
