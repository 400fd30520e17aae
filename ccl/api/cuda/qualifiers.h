// CUDA's function qualifiers, which are empty for a host compiler, and grid sizes (dim3).
#pragma once

#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))

struct dim3 {
  unsigned int x, y, z;
#ifdef __cplusplus
  constexpr dim3(unsigned int of_x = 1, unsigned int of_y = 1, unsigned int of_z = 1) : x(of_x), y(of_y), z(of_z) {}
#endif
};
typedef struct dim3 dim3;
