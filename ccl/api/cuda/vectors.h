// CUDA's short vectors: int4, float2 and the like.
#pragma once

#define TRELLIS_CUDA_VECTORS(name, type, align2, align4)                 \
  struct name##1 {                                                       \
    type x;                                                              \
  };                                                                     \
  struct __attribute__((aligned(align2))) name##2 {                      \
    type x, y;                                                           \
  };                                                                     \
  struct name##3 {                                                       \
    type x, y, z;                                                        \
  };                                                                     \
  struct __attribute__((aligned(align4))) name##4 {                      \
    type x, y, z, w;                                                     \
  };                                                                     \
  typedef struct name##1 name##1;                                        \
  typedef struct name##2 name##2;                                        \
  typedef struct name##3 name##3;                                        \
  typedef struct name##4 name##4;                                        \
  static inline name##1 make_##name##1(type x) {                         \
    const name##1 v = {x};                                               \
    return v;                                                            \
  }                                                                      \
  static inline name##2 make_##name##2(type x, type y) {                 \
    const name##2 v = {x, y};                                            \
    return v;                                                            \
  }                                                                      \
  static inline name##3 make_##name##3(type x, type y, type z) {         \
    const name##3 v = {x, y, z};                                         \
    return v;                                                            \
  }                                                                      \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { \
    const name##4 v = {x, y, z, w};                                      \
    return v;                                                            \
  }

TRELLIS_CUDA_VECTORS(char, signed char, 2, 4)
TRELLIS_CUDA_VECTORS(uchar, unsigned char, 2, 4)
TRELLIS_CUDA_VECTORS(short, short, 4, 8)
TRELLIS_CUDA_VECTORS(ushort, unsigned short, 4, 8)
TRELLIS_CUDA_VECTORS(int, int, 8, 16)
TRELLIS_CUDA_VECTORS(uint, unsigned int, 8, 16)
TRELLIS_CUDA_VECTORS(long, long, 16, 16)
TRELLIS_CUDA_VECTORS(ulong, unsigned long, 16, 16)
TRELLIS_CUDA_VECTORS(longlong, long long, 16, 16)
TRELLIS_CUDA_VECTORS(ulonglong, unsigned long long, 16, 16)
TRELLIS_CUDA_VECTORS(float, float, 8, 16)
TRELLIS_CUDA_VECTORS(double, double, 16, 16)
