// The C part of cuda_runtime.h; the declarations are the same here.
#pragma once

#include "ccl/api/cuda/cuda_runtime.h"
