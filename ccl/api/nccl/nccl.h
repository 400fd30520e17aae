// NCCL's host API, over Trellis: a program written to it compiles with this header and runs with our libnccl.so.2.
//
// Names, numbers and layouts are those that NCCL documents for 2.30. Memory, streams and events are the host's: see
// ccl/api/cuda/cuda_runtime.h for the calls of CUDA's runtime that go with them. A NULL stream means: in the calling
// thread, and done when the call returns. What means nothing on a host is taken and has no effect where that is
// harmless (numbers of thread blocks, traffic classes), and is refused with ncclInvalidUsage where it is not (one-sided
// operations). Each function has a twin whose name begins with p, by which a tool that replaces the function calls it.
#pragma once

#include "ccl/api/nccl/communicator.h"
#include "ccl/api/nccl/operations.h"
#include "ccl/api/nccl/parameters.h"
#include "ccl/api/nccl/types.h"
