// NCCL's host API, on top of Trellis. Programs written for NCCL compile with this header and run with our libnccl.so.2.
//
// Names, numbers and layouts are those that NCCL documents for 2.32. Memory, streams and events are the host's;
// ccl/api/cuda/cuda_runtime.h has the matching functions of CUDA's runtime. A NULL stream means: run in the calling
// thread, after the work that the device's other streams hold (as on CUDA's default stream), and return when done.
// Settings that mean nothing on a host (numbers of thread blocks, traffic classes) are accepted without effect.
// Functions that cannot work (one-sided operations) return ncclInvalidUsage. Each function has a twin with the prefix
// p: a profiling tool that replaces the function calls its twin.
#pragma once

#define NCCL_H_  // tells programs that it was included

#include "ccl/api/nccl/communicator.h"
#include "ccl/api/nccl/operations.h"
#include "ccl/api/nccl/parameters.h"
#include "ccl/api/nccl/types.h"
