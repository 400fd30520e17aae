// The host part of NCCL's device API. There is no device code: queries report that, and functions that need it return
// ncclInvalidUsage. Teams are reported: every rank is alone in its load-store team, as ranks read each other's memory
// only through the library. NCCL's declarations for kernels are not provided.
#pragma once

#include "ccl/api/nccl/device/calls.h"
#include "ccl/api/nccl/device/requirements.h"
#include "ccl/api/nccl/device/teams.h"
#include "ccl/api/nccl/device/types.h"
