// CUDA's half for host code. In C only the type is provided, as its bit pattern.
#pragma once

#include "ccl/api/cuda/narrow.h"

#define __CUDA_FP16_TYPES_EXIST__

#ifdef __cplusplus
struct __half : trellis_cuda::Narrow<__half, trellis_cuda::Half, unsigned short> {
  __half() = default;
  using Narrow::Narrow;
};
#else
struct __half {
  unsigned short pattern;
};
typedef struct __half __half;
#endif

typedef __half half;

#ifdef __cplusplus
TRELLIS_CUDA_ARITHMETIC(__half)
inline __half __float2half(float value) { return __half(value); }
inline __half __float2half_rn(float value) { return __half(value); }
inline __half __double2half(double value) { return __half(value); }
inline __half __int2half_rn(int value) { return __half(value); }
inline __half __uint2half_rn(unsigned value) { return __half(value); }
inline __half __ll2half_rn(long long value) { return __half(value); }
inline __half __ull2half_rn(unsigned long long value) { return __half(value); }
inline float __half2float(__half value) { return float(value); }
inline unsigned short __half_as_ushort(__half value) { return value.pattern; }
inline __half __ushort_as_half(unsigned short pattern) {
  __half value;
  value.pattern = pattern;
  return value;
}
#endif
