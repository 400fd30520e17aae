// The part of CUDA's driver API that goes with cuda_runtime.h: its types, and functions that the runtime has too.
// Contexts, modules and the driver's own memory functions are not provided.
#pragma once

#include <stdint.h>

#include "ccl/api/cuda/cuda_runtime.h"

#define CUDA_VERSION CUDART_VERSION

// The numbers equal those of cudaError_t.
typedef enum cudaError_enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_UNKNOWN = 999
} CUresult;

typedef enum CUmemLocationType_enum {
  CU_MEM_LOCATION_TYPE_INVALID = 0,
  CU_MEM_LOCATION_TYPE_DEVICE = 1,
  CU_MEM_LOCATION_TYPE_HOST = 2,
  CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
  CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4
} CUmemLocationType;

typedef int CUdevice;
typedef uintptr_t CUdeviceptr;
typedef cudaStream_t CUstream;
typedef cudaEvent_t CUevent;
typedef cudaHostFn_t CUhostFn;
typedef struct CUctx_st* CUcontext;
typedef struct CUmod_st* CUmodule;
typedef struct CUfunc_st* CUfunction;
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void* userData);

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)
#define CU_STREAM_DEFAULT 0x0
#define CU_STREAM_NON_BLOCKING 0x1

static inline CUresult cuInit(unsigned int flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }
static inline CUresult cuDriverGetVersion(int* version) { return (CUresult)cudaDriverGetVersion(version); }
static inline CUresult cuDeviceGetCount(int* count) { return (CUresult)cudaGetDeviceCount(count); }
static inline CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  int count = 0;
  const CUresult counted = cuDeviceGetCount(&count);
  if (device == NULL) return CUDA_ERROR_INVALID_VALUE;
  *device = ordinal;
  if (counted != CUDA_SUCCESS) return counted;
  return ordinal >= 0 && ordinal < count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
static inline CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == NULL) return CUDA_ERROR_INVALID_VALUE;
  *name = cudaGetErrorName((cudaError_t)error);
  return CUDA_SUCCESS;
}
static inline CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == NULL) return CUDA_ERROR_INVALID_VALUE;
  *text = cudaGetErrorString((cudaError_t)error);
  return CUDA_SUCCESS;
}
static inline CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return (CUresult)cudaStreamCreateWithFlags(stream, flags);
}
static inline CUresult cuStreamDestroy(CUstream stream) { return (CUresult)cudaStreamDestroy(stream); }
static inline CUresult cuStreamSynchronize(CUstream stream) { return (CUresult)cudaStreamSynchronize(stream); }
static inline CUresult cuStreamQuery(CUstream stream) { return (CUresult)cudaStreamQuery(stream); }
static inline CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* userData) {
  return (CUresult)cudaLaunchHostFunc(stream, function, userData);
}
static inline CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* userData,
                                           unsigned int flags) {
  return (CUresult)cudaStreamAddCallback(stream, (cudaStreamCallback_t)callback, userData, flags);
}
