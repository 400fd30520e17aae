// Numbers of element types, reductions and collectives. The numbers never change; new ones are added at the end.
#pragma once

#include "ccl/api/c/result.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int trellis_type;

enum {
  TRELLIS_F64 = 0,
  TRELLIS_F32 = 1,
  TRELLIS_TF32 = 2,  // stored in four bytes: an f32 whose last 13 bits are zero
  TRELLIS_F16 = 3,
  TRELLIS_BF16 = 4,
  TRELLIS_F8E3M4 = 5,    // with infinities, largest 15.5
  TRELLIS_F8E4M3 = 6,    // with infinities, largest 240
  TRELLIS_F8E4M3FN = 7,  // no infinities, largest 448: OCP's type, which CUDA has
  TRELLIS_F8E5M2 = 8,
  TRELLIS_I8 = 9,
  TRELLIS_U8 = 10,
  TRELLIS_I16 = 11,
  TRELLIS_U16 = 12,
  TRELLIS_I32 = 13,
  TRELLIS_U32 = 14,
  TRELLIS_I64 = 15,
  TRELLIS_U64 = 16,
  TRELLIS_TYPES = 17
};

typedef int trellis_reduction;

enum {
  TRELLIS_SUM = 0,
  TRELLIS_PROD = 1,
  TRELLIS_MIN = 2,
  TRELLIS_MAX = 3,
  TRELLIS_AVG = 4,         // the sum divided by the number of ranks
  TRELLIS_SCALED_SUM = 5,  // each rank's contribution is multiplied by its factor first; for trellis_run
  TRELLIS_REDUCTIONS = 6
};

typedef int trellis_collective;

enum {
  TRELLIS_ALL_REDUCE = 0,
  TRELLIS_REDUCE_SCATTER = 1,
  TRELLIS_ALL_GATHER = 2,
  TRELLIS_BROADCAST = 3,
  TRELLIS_REDUCE = 4,
  TRELLIS_GATHER = 5,
  TRELLIS_SCATTER = 6,
  TRELLIS_ALL_TO_ALL = 7,
  TRELLIS_ALL_TO_ALL_V = 8,
  TRELLIS_ALL_GATHER_V = 9,
  TRELLIS_REDUCE_SCATTER_V = 10,
  TRELLIS_PERMUTE = 11,
  TRELLIS_SEND_RECV = 12,
  TRELLIS_BARRIER = 13,
  TRELLIS_COLLECTIVES = 14
};

// Bytes of one element; 0 for a number that is not a type.
TRELLIS_API size_t trellis_type_size(trellis_type type);

// The name in messages and TRELLIS_ALGORITHM: "bf16", "max", "all_reduce". NULL for an unknown number.
TRELLIS_API const char* trellis_type_name(trellis_type type);
TRELLIS_API const char* trellis_reduction_name(trellis_reduction reduction);
TRELLIS_API const char* trellis_collective_name(trellis_collective collective);

// Reads one element as a double, and writes it (rounded to nearest even; integers saturate).
TRELLIS_API trellis_result trellis_type_load(trellis_type type, const void* element, double* value);
TRELLIS_API trellis_result trellis_type_store(trellis_type type, void* element, double value);

#ifdef __cplusplus
}
#endif
