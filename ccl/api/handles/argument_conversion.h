// Converts the C API's numbers and structs to C++ types, and rejects invalid values.
#pragma once

#include "ccl/api/c/config.h"
#include "ccl/api/c/operations.h"
#include "ccl/communicator.h"

namespace trellis::ccl::api {

kernels::DType type_of(trellis_type);
kernels::Reduction reduction_of(trellis_reduction);
ReduceOp plain_reduction_of(trellis_reduction);  // without a factor
Collective collective_of(trellis_collective);

struct CommSettings {
  Config config;
  bool nonblocking = false;
};
CommSettings settings_of(const trellis_config*);  // null: as the environment says

// Whether a child communicator is nonblocking. Null: as its parent.
bool nonblocking_child(const trellis_config*, bool parent);

Call call_of(const trellis_call*, Rank ranks);

}  // namespace trellis::ccl::api
