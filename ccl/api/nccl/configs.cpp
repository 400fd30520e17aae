// Checks of collective and encryption configurations.
#include "ccl/api/nccl/nccl_error.h"
#include "ccl/api/nccl/translate.h"

namespace trellis::nccl {
namespace {

template <class Config>
void check_head(const char* name, const Config& config, const char* initializer) {
  if (config.magic != NCCL_API_MAGIC)
    refuse_argument("{}.magic is {:#x}: expected {:#x}, as {} has it", name, config.magic, NCCL_API_MAGIC, initializer);
  if (config.size < sizeof config || config.size > 4096)
    refuse_argument("{}.size is {}: expected {}, as {} has it", name, config.size, sizeof config, initializer);
}

struct Range {
  const char* field;
  int ncclCollConfig_t::*value;
  int least, most;
};
constexpr Range ranges[] = {
    {"minCTAs", &ncclCollConfig_t::minCTAs, 1, INT_MAX},
    {"maxCTAs", &ncclCollConfig_t::maxCTAs, 1, INT_MAX},
    {"nvlsCTAs", &ncclCollConfig_t::nvlsCTAs, 1, INT_MAX},
    {"cgaClusterSize", &ncclCollConfig_t::cgaClusterSize, 0, 8},
    {"forceAlgSelection", &ncclCollConfig_t::forceAlgSelection, 0, 1},
    {"CTAPolicy", &ncclCollConfig_t::CTAPolicy, NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_ZERO},
};

}  // namespace

void check(const char* function, const ncclCollConfig_t* given) {
  if (given == nullptr) return;
  const ncclCollConfig_t& config = *given;
  check_head("config", config, "NCCL_COLLCONFIG_INITIALIZER");
  for (const auto& [field, value, least, most] : ranges) {
    const int told = config.*value;
    if (told == NCCL_CONFIG_UNDEF_INT || (told >= least && told <= most)) continue;
    if (most == INT_MAX) refuse_argument("{}: config.{} is {}: expected {} or more", function, field, told, least);
    refuse_argument("{}: config.{} is {}: expected {} to {}", function, field, told, least, most);
  }
  const bool both = config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT;
  if (both && config.minCTAs > config.maxCTAs)
    refuse_argument("{}: config.minCTAs is {}, and maxCTAs {}", function, config.minCTAs, config.maxCTAs);
  const bool selects = config.algSelection != nullptr && *config.algSelection != '\0';
  if (selects && config.forceAlgSelection != 0)
    refuse_usage(
        "{}: config.algSelection is '{}': a single call can't select here, only TRELLIS_ALGORITHM "
        "for all; expected NULL, or forceAlgSelection 0",
        function, config.algSelection);
  if (config.launchCompletionEvent != nullptr)
    refuse_usage("{}: config.launchCompletionEvent is set, and no kernel is launched here: expected NULL", function);
}

void check(const ncclEncryptionConfig_t& config) {
  check_head("config", config, "NCCL_ENCRYPTION_CONFIG_INITIALIZER");
  if (config.mode == NCCL_ENCRYPTION_MODE_PSK)
    refuse_usage(
        "config.mode is NCCL_ENCRYPTION_MODE_PSK: ranks of one host have no socket between them to encrypt; "
        "TRELLIS_SECRET keeps strangers out");
  if (config.mode != NCCL_ENCRYPTION_MODE_NONE) refuse_argument("config.mode is {}: expected 0 or 1", config.mode);
}

}  // namespace trellis::nccl
