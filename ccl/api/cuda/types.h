// Types and numbers of the supported part of CUDA's runtime API.
#pragma once

#include <stddef.h>

#include "ccl/api/cuda/qualifiers.h"
#include "ccl/api/cuda/vectors.h"

// The first version of CUDA that has everything provided here. Programs that test the version before they use a later
// feature, such as graphs, then do without it.
#define CUDART_VERSION 10000

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,  // TRELLIS_DEVICES is not a valid number of devices
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719,  // an operation on a stream failed or was aborted; it and later work were not done
  cudaErrorNotPermitted = 800,   // a host function or callback called a function that waits for streams
  cudaErrorUnknown = 999
} cudaError_t;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};

#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventRecordDefault 0x00
#define cudaEventRecordExternal 0x01
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76
};

enum cudaHostTaskSyncMode { cudaHostTaskBlocking = 0, cudaHostTaskSpinWait = 1 };

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef void (*cudaHostFn_t)(void* userData);
typedef void (*cudaStreamCallback_t)(cudaStream_t stream, cudaError_t status, void* userData);

#define cudaStreamLegacy ((cudaStream_t)0x1)     // the default stream, as NULL
#define cudaStreamPerThread ((cudaStream_t)0x2)  // the calling thread's own stream for the current device

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  int multiProcessorCount;  // number of CPUs
  int major, minor;         // 0.0: none of CUDA's compute capabilities
  int pciDomainID, pciBusID, pciDeviceID;
  int integrated, canMapHostMemory, unifiedAddressing;
};
