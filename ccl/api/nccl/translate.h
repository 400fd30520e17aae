// Converts NCCL's numbers and structs to those of the C API, and rejects what NCCL rejects.
#pragma once

#include "ccl/api/nccl/nccl_comm.h"

namespace trellis::nccl {

trellis_type type_of(ncclDataType_t);

// Sets the call's reduction and factor. An operator created with ncclScalarDevice has its scalar read after the
// stream's work.
void set_reduction(trellis_call&, ncclRedOp_t, const NcclComm&, ncclDataType_t, cudaStream_t);

// The C API's form of a configuration; config() is null if none was given, so that the defaults hold.
class TranslatedConfig {
 public:
  explicit TranslatedConfig(const ncclConfig_t*);
  const trellis_config* config() const { return given_ ? &config_ : nullptr; }

 private:
  bool given_;
  trellis_config config_ = TRELLIS_CONFIG_INIT;
};

void check(const ncclSimInfo_t&);
void check(const ncclEncryptionConfig_t&);
void check(const char* function, const ncclCollConfig_t*);  // may be null

}  // namespace trellis::nccl
