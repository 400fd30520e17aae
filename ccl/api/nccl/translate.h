// NCCL's numbers and structs as those of the C API, refusing what NCCL refuses.
#pragma once

#include "ccl/api/nccl/clique.h"

namespace trellis::nccl {

trellis_type type_of(ncclDataType_t);

// The call's reduction and factor; for an operator of the program's, the scalar is read after the stream's work.
void set_reduction(trellis_call&, ncclRedOp_t, const Clique&, ncclDataType_t, cudaStream_t);

// Null: nothing was given, so as usual.
class Told {
 public:
  explicit Told(const ncclConfig_t*);
  const trellis_config* config() const { return given_ ? &config_ : nullptr; }

 private:
  bool given_;
  trellis_config config_ = TRELLIS_CONFIG_INIT;
};

void check(const ncclSimInfo_t&);

}  // namespace trellis::nccl
