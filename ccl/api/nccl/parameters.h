// What the library can be told by environment variables, as NCCL's parameter API reads it: keys are TRELLIS_TIMEOUT and
// its like. Texts and tables are the library's, and valid until the same function is called again in this thread.
#pragma once

#include "ccl/api/nccl/communicator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclParamHandle* ncclParamHandle_t;

// ncclInvalidArgument: there is no such key, and *out is left as it is.
TRELLIS_NCCL(ncclResult_t, ncclParamBind, ncclParamHandle_t* out, const char* key);

// The value now. ncclInvalidArgument: it is no such number.
TRELLIS_NCCL(ncclResult_t, ncclParamGetI8, ncclParamHandle_t h, int8_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI16, ncclParamHandle_t h, int16_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI32, ncclParamHandle_t h, int32_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetI64, ncclParamHandle_t h, int64_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU8, ncclParamHandle_t h, uint8_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU16, ncclParamHandle_t h, uint16_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU32, ncclParamHandle_t h, uint32_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetU64, ncclParamHandle_t h, uint64_t* out);
TRELLIS_NCCL(ncclResult_t, ncclParamGetStr, ncclParamHandle_t h, const char** out);

// The value as bytes, which are those of its text; *len is how many there are, also when they don't fit into maxLen.
TRELLIS_NCCL(ncclResult_t, ncclParamGet, ncclParamHandle_t h, void* out, int maxLen, int* len);

TRELLIS_NCCL(ncclResult_t, ncclParamGetParameter, const char* key, const char** value, int* valueLen);
TRELLIS_NCCL(ncclResult_t, ncclParamGetAllParameterKeys, const char*** table, int* tableLen);

// Writes every key and its value to standard error.
TRELLIS_NCCL(void, ncclParamDumpAll, void);

#ifdef __cplusplus
}
#endif
