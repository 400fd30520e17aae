// NCCL's parameter API: reads the library's environment variables, with keys such as TRELLIS_TIMEOUT. The library owns
// the texts and tables; they are valid until the same function is called again in this thread.
#pragma once

#include "ccl/api/nccl/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclParamHandle* ncclParamHandle_t;

// ncclInvalidArgument: there is no such key, and *out is unchanged.
TRELLIS_NCCL(ncclResult_t, ncclParamBind, ncclParamHandle_t* out, const char* key);

// The current value. ncclInvalidArgument: it is not a number of that type.
TRELLIS_NCCL(ncclResult_t, ncclParamGetI8, ncclParamHandle_t h, int8_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI16, ncclParamHandle_t h, int16_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI32, ncclParamHandle_t h, int32_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI64, ncclParamHandle_t h, int64_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU8, ncclParamHandle_t h, uint8_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU16, ncclParamHandle_t h, uint16_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU32, ncclParamHandle_t h, uint32_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU64, ncclParamHandle_t h, uint64_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetStr, ncclParamHandle_t h, const char** out);

// The value's text as bytes; *len is their number, even if they do not fit maxLen.
TRELLIS_NCCL(ncclResult_t, ncclParamGet, ncclParamHandle_t h, void* out, int maxLen, int* len);

TRELLIS_NCCL(ncclResult_t, ncclParamGetParameter, const char* key, const char** value, int* valueLen);
TRELLIS_NCCL(ncclResult_t, ncclParamGetAllParameterKeys, const char*** table, int* tableLen);

// Writes every key and its value to standard error.
TRELLIS_NCCL(void, ncclParamDumpAll, void);

#ifdef __cplusplus
}
#endif
