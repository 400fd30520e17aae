// CUDA's bfloat16 for host code. In C only the type is provided, as its bit pattern.
#pragma once

#include "ccl/api/cuda/narrow.h"

#define __CUDA_BF16_TYPES_EXIST__

#ifdef __cplusplus
struct __nv_bfloat16 : trellis_cuda::Narrow<__nv_bfloat16, trellis_cuda::Bfloat16, unsigned short> {
  __nv_bfloat16() = default;
  using Narrow::Narrow;
};
#else
struct __nv_bfloat16 {
  unsigned short pattern;
};
typedef struct __nv_bfloat16 __nv_bfloat16;
#endif

typedef __nv_bfloat16 nv_bfloat16;

#ifdef __cplusplus
TRELLIS_CUDA_ARITHMETIC(__nv_bfloat16)
inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
inline __nv_bfloat16 __double2bfloat16(double value) { return __nv_bfloat16(value); }
inline __nv_bfloat16 __int2bfloat16_rn(int value) { return __nv_bfloat16(value); }
inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.pattern; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short pattern) {
  __nv_bfloat16 value;
  value.pattern = pattern;
  return value;
}
#endif
