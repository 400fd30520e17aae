// NCCL's per-collective configuration, and its encryption configuration.
#pragma once

#include "ccl/api/nccl/config.h"

// A list of vendor-specific options; accepted and ignored, as in NCCL.
typedef struct ncclConfigExt {
  struct ncclConfigExt* next;
  struct {
    int vendorId;
    int optionId;
  } key;
  union {
    int i;
    const char* s;
    void* raw;
  } val;
} ncclConfigExt_t;

// Configuration of one collective. Initialize it with NCCL_COLLCONFIG_INITIALIZER. The numbers of thread blocks and the
// profiler's tag are checked and have no effect on a host. A forced algorithm and an event are rejected.
typedef struct ncclCollConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  ncclConfigExt_t* ext;
  int minCTAs;               // from 1
  int maxCTAs;               // from minCTAs
  int nvlsCTAs;              // from 1
  int cgaClusterSize;        // 0 to 8
  const char* algSelection;  // NULL or "": TRELLIS_ALGORITHM, else the table
  int forceAlgSelection;     // 0: algSelection is a hint, which is ignored
  int CTAPolicy;             // NCCL_CTA_POLICY_*
  uint64_t userProfilerTag;
  cudaEvent_t launchCompletionEvent;  // NULL
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                                            \
  {                                                                                                            \
    sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, \
        NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, 1,         \
        NCCL_CONFIG_UNDEF_INT, 0, NCCL_CONFIG_UNDEF_PTR                                                        \
  }

typedef enum { NCCL_ENCRYPTION_MODE_NONE = 0, NCCL_ENCRYPTION_MODE_PSK = 1 } ncclEncryptionMode_t;

typedef struct ncclEncryptionConfig_v23200 {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int mode;
  const char* psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                                        \
  {                                                                                               \
    sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_ENCRYPTION_MODE_NONE, \
        NCCL_CONFIG_UNDEF_PTR                                                                     \
  }
