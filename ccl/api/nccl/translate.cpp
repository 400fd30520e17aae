#include "ccl/api/nccl/translate.h"

#include <algorithm>
#include <cstring>

#include "ccl/api/nccl/default_stream_order.h"
#include "ccl/api/nccl/nccl_error.h"

namespace trellis::nccl {
namespace {

constexpr trellis_type types[] = {TRELLIS_I8,  TRELLIS_U8,   TRELLIS_I32,      TRELLIS_U32,
                                  TRELLIS_I64, TRELLIS_U64,  TRELLIS_F16,      TRELLIS_F32,
                                  TRELLIS_F64, TRELLIS_BF16, TRELLIS_F8E4M3FN, TRELLIS_F8E5M2};
static_assert(std::size(types) == ncclNumTypes);

constexpr trellis_reduction reductions[] = {TRELLIS_SUM, TRELLIS_PROD, TRELLIS_MAX, TRELLIS_MIN, TRELLIS_AVG};
static_assert(std::size(reductions) == ncclNumOps);

struct Range {
  const char* field;
  int ncclConfig_t::*value;
  int least, most;
  unsigned since = 0;  // version that introduced the field; older programs have padding there
};
constexpr Range ranges[] = {
    {"blocking", &ncclConfig_t::blocking, 0, 1},
    {"cgaClusterSize", &ncclConfig_t::cgaClusterSize, 0, 8, NCCL_VERSION(2, 17, 0)},
    {"minCTAs", &ncclConfig_t::minCTAs, 1, INT_MAX},
    {"maxCTAs", &ncclConfig_t::maxCTAs, 1, INT_MAX},
    {"splitShare", &ncclConfig_t::splitShare, 0, 1},
    {"trafficClass", &ncclConfig_t::trafficClass, 0, INT_MAX, NCCL_VERSION(2, 25, 0)},
    {"collnetEnable", &ncclConfig_t::collnetEnable, 0, 1},
    {"CTAPolicy", &ncclConfig_t::CTAPolicy, NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_ZERO},
    {"shrinkShare", &ncclConfig_t::shrinkShare, 0, 1},
    {"nvlsCTAs", &ncclConfig_t::nvlsCTAs, 1, INT_MAX},
    {"nChannelsPerNetPeer", &ncclConfig_t::nChannelsPerNetPeer, 1, INT_MAX},
    {"nvlinkCentricSched", &ncclConfig_t::nvlinkCentricSched, 0, 1},
    {"graphUsageMode", &ncclConfig_t::graphUsageMode, 0, 2},
    {"numRmaCtx", &ncclConfig_t::numRmaCtx, 1, INT_MAX},
    {"graphStreamOrdering", &ncclConfig_t::graphStreamOrdering, 0, 1},
};

// Fields that ask for features that are not provided.
struct Absent {
  const char* field;
  int ncclConfig_t::*value;
  const char* what;
};
constexpr Absent absent[] = {
    {"launchOrderImplicit", &ncclConfig_t::launchOrderImplicit, "launches of kernels"},
    {"numRmaSig", &ncclConfig_t::numRmaSig, "signals of one-sided operations"},
    {"rmaEagerInit", &ncclConfig_t::rmaEagerInit, "one-sided operations"},
    {"hostCftMode", &ncclConfig_t::hostCftMode, "CFT"},
    {"nvlsHostMode", &ncclConfig_t::nvlsHostMode, "NVLS"},
};

// The part of a newer program's struct that this library does not know: no field there may be set.
void check_unknown_part(const ncclConfig_t* given) {
  for (std::size_t at = sizeof(ncclConfig_t); at + sizeof(int) <= given->size; at += sizeof(int)) {
    int word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(given) + at, sizeof word);
    if (word == NCCL_CONFIG_UNDEF_INT || word == 0) continue;  // not set, as a number or as a pointer
    refuse_argument(
        "config.version is {}, of which a field at byte {} is set to {}: this library is of {} and does "
        "not know it",
        given->version, at, word, NCCL_VERSION_CODE);
  }
}

// The part that programs for NCCL 2.14 know.
constexpr std::size_t least_config_bytes = offsetof(ncclConfig_t, blocking) + sizeof(int);

ncclConfig_t known_part(const ncclConfig_t* given) {
  if (given->magic != NCCL_API_MAGIC)
    refuse_argument("config.magic is {:#x}: expected {:#x}, as NCCL_CONFIG_INITIALIZER has it", given->magic,
                    NCCL_API_MAGIC);
  if (given->size < least_config_bytes || given->size > 4096)
    refuse_argument("config.size is {}: expected {}, as NCCL_CONFIG_INITIALIZER has it", given->size,
                    sizeof(ncclConfig_t));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  std::memcpy(&config, given, std::min(given->size, sizeof config));
  check_unknown_part(given);
  for (const auto& [field, value, what] : absent)
    if (given->version >= NCCL_VERSION(2, 31, 0) && config.*value != NCCL_CONFIG_UNDEF_INT)
      refuse_argument("config.{} is {}, and there are no {} here: expected NCCL_CONFIG_UNDEF_INT", field, config.*value,
                      what);
  return config;
}

double read_scalar(ncclDataType_t type, const void* scalar) {
  double value = 0;
  checked(trellis_type_load(type_of(type), scalar, &value));
  return value;
}

}  // namespace

trellis_type type_of(ncclDataType_t type) {
  const auto number = static_cast<unsigned>(type);
  if (number >= ncclNumTypes)
    refuse_argument("datatype {}: expected 0 to {}", static_cast<int>(type), ncclNumTypes - 1);
  return types[number];
}

void set_reduction(trellis_call& call, ncclRedOp_t op, const NcclComm& nccl_comm, ncclDataType_t type,
                   cudaStream_t stream) {
  if (op >= 0 && op < ncclNumOps) {
    call.reduction = reductions[op];
    return;
  }
  const PreMulSumOp scaling = nccl_comm.scaling(op);
  if (scaling.type != type)
    refuse_argument("op {} is for datatype {}, and the call's is {}", static_cast<int>(op),
                    static_cast<int>(scaling.type), static_cast<int>(type));
  call.reduction = TRELLIS_SCALED_SUM;
  call.factor = scaling.factor;
  if (scaling.scalar == nullptr) return;
  finish(nccl_comm, stream);
  call.factor = read_scalar(type, scaling.scalar);
}

TranslatedConfig::TranslatedConfig(const ncclConfig_t* given) : given_(given != nullptr) {
  if (!given_) return;
  const ncclConfig_t config = known_part(given);
  for (const auto& [field, value, least, most, since] : ranges) {
    const int told = config.*value;
    if (told == NCCL_CONFIG_UNDEF_INT || config.version < since || (told >= least && told <= most)) continue;
    if (most == INT_MAX) refuse_argument("config.{} is {}: expected {} or more", field, told, least);
    refuse_argument("config.{} is {}: expected {} to {}", field, told, least, most);
  }
  if (config.minCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs != NCCL_CONFIG_UNDEF_INT &&
      config.minCTAs > config.maxCTAs)
    refuse_argument("config.minCTAs is {}, and maxCTAs {}", config.minCTAs, config.maxCTAs);
  if (config.graphStreamOrdering == 0 && config.graphUsageMode == 2)
    refuse_argument("config.graphStreamOrdering is 0, and graphUsageMode 2: expected 0 or 1 with it");
  config_.nonblocking = config.blocking == 0;
}

void check(const ncclSimInfo_t& info) {
  if (info.magic != NCCL_SIM_INFO_MAGIC)
    refuse_argument("simInfo.magic is {:#x}: expected {:#x}, as NCCL_SIM_INFO_INITIALIZER has it", info.magic,
                    NCCL_SIM_INFO_MAGIC);
  if (info.size < sizeof info || info.size > 4096)
    refuse_argument("simInfo.size is {}: expected {}, as NCCL_SIM_INFO_INITIALIZER has it", info.size, sizeof info);
}

}  // namespace trellis::nccl
