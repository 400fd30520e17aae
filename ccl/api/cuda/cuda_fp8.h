// CUDA's 8-bit floats for host code in C++. Conversion saturates: a value that is too large becomes the largest.
#pragma once

#include "ccl/api/cuda/cuda_bf16.h"
#include "ccl/api/cuda/cuda_fp16.h"

#ifdef __cplusplus

#define __CUDA_FP8_TYPES_EXIST__

struct __nv_fp8_e4m3 : trellis_cuda::Narrow<__nv_fp8_e4m3, trellis_cuda::E4M3, unsigned char> {
  __nv_fp8_e4m3() = default;
  using Narrow::Narrow;
  explicit __nv_fp8_e4m3(__half value) : Narrow(float(value)) {}
  explicit __nv_fp8_e4m3(__nv_bfloat16 value) : Narrow(float(value)) {}
};

struct __nv_fp8_e5m2 : trellis_cuda::Narrow<__nv_fp8_e5m2, trellis_cuda::E5M2, unsigned char> {
  __nv_fp8_e5m2() = default;
  using Narrow::Narrow;
  explicit __nv_fp8_e5m2(__half value) : Narrow(float(value)) {}
  explicit __nv_fp8_e5m2(__nv_bfloat16 value) : Narrow(float(value)) {}
};

#endif
