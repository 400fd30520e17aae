// The numbers and layouts of NCCL's host API, which programs carry in their binaries, as NCCL documents them.
#include <cstddef>

#include "ccl/api/nccl/nccl_device.h"
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

static_assert(ncclSuccess == 0 && ncclUnhandledCudaError == 1 && ncclSystemError == 2 && ncclInternalError == 3 &&
              ncclInvalidArgument == 4 && ncclInvalidUsage == 5 && ncclRemoteError == 6 && ncclInProgress == 7 &&
              ncclTimeout == 8 && ncclNumResults == 9);
static_assert(ncclInt8 == 0 && ncclChar == 0 && ncclUint8 == 1 && ncclInt32 == 2 && ncclInt == 2 && ncclUint32 == 3 &&
              ncclInt64 == 4 && ncclUint64 == 5 && ncclFloat16 == 6 && ncclHalf == 6 && ncclFloat32 == 7 &&
              ncclFloat == 7 && ncclFloat64 == 8 && ncclDouble == 8 && ncclBfloat16 == 9 && ncclFloat8e4m3 == 10 &&
              ncclFloat8e5m2 == 11 && ncclNumTypes == 12);
static_assert(ncclSum == 0 && ncclProd == 1 && ncclMax == 2 && ncclMin == 3 && ncclAvg == 4 && ncclNumOps == 5 &&
              ncclMaxRedOp == 0x7fffffff && sizeof(ncclRedOp_t) == 4);
static_assert(ncclScalarDevice == 0 && ncclScalarHostImmediate == 1);
static_assert(ncclStatGpuMemSuspend == 0 && ncclStatGpuMemSuspended == 1 && ncclStatGpuMemPersist == 2 &&
              ncclStatGpuMemTotal == 3);
static_assert(NCCL_UNIQUE_ID_BYTES == 128 && sizeof(ncclUniqueId) == 128);
static_assert(NCCL_SPLIT_NOCOLOR == -1 && NCCL_SHRINK_DEFAULT == 0 && NCCL_SHRINK_ABORT == 1 &&
              NCCL_REVOKE_DEFAULT == 0 && NCCL_SUSPEND_MEM == 1);
static_assert(NCCL_WIN_DEFAULT == 0 && NCCL_WIN_COLL_SYMMETRIC == 1 && NCCL_WIN_STRICT_ORDERING == 2 &&
              NCCL_WIN_GIN_ONLY == 4 && NCCL_WIN_CFT_COUNTED == 8 && NCCL_WIN_REQUIRED_ALIGNMENT == 4096);
static_assert(NCCL_CTA_POLICY_DEFAULT == 0 && NCCL_CTA_POLICY_EFFICIENCY == 1 && NCCL_CTA_POLICY_ZERO == 2);
static_assert(NCCL_CONFIG_UNDEF_INT == INT_MIN && NCCL_UNDEF_FLOAT == -1.0f);
static_assert(NCCL_VERSION(2, 8, 3) == 2803 && NCCL_VERSION(2, 32, 3) == 23203 && NCCL_VERSION_CODE == 23203);
static_assert(offsetof(ncclConfig_t, size) == 0 && offsetof(ncclConfig_t, magic) == 8 &&
              offsetof(ncclConfig_t, version) == 12 && offsetof(ncclConfig_t, blocking) == 16 &&
              offsetof(ncclConfig_t, netName) == 32 && offsetof(ncclConfig_t, commName) == 48 &&
              offsetof(ncclConfig_t, CTAPolicy) == 60 && offsetof(ncclConfig_t, graphStreamOrdering) == 92 &&
              offsetof(ncclConfig_t, numRmaSig) == 100 && offsetof(ncclConfig_t, nvlsHostMode) == 112 &&
              sizeof(ncclConfig_t) == 120);
static_assert(offsetof(ncclCollConfig_t, ext) == 16 && offsetof(ncclCollConfig_t, minCTAs) == 24 &&
              offsetof(ncclCollConfig_t, algSelection) == 40 && offsetof(ncclCollConfig_t, CTAPolicy) == 52 &&
              offsetof(ncclCollConfig_t, userProfilerTag) == 56 && sizeof(ncclCollConfig_t) == 72);
static_assert(offsetof(ncclConfigExt_t, val) == 16 && sizeof(ncclConfigExt_t) == 24);
static_assert(offsetof(ncclEncryptionConfig_t, psk) == 24 && sizeof(ncclEncryptionConfig_t) == 32);
static_assert(ncclHostCftDefault == INT_MIN && ncclHostCftFallback == 3 && ncclNvlsHostModeEnable == 0 &&
              ncclNvlsHostModeDisableSymmetricMultimem == 2 && ncclNvlsHostModeDisable == INT_MAX);
static_assert(sizeof(ncclDevComm_t) == 248 && sizeof(ncclDevCommRequirements_t) == 120 &&
              sizeof(ncclCommProperties_t) == 152 && sizeof(ncclTeam_t) == 12);
static_assert(offsetof(ncclSimInfo_t, estimatedTime) == 16 && sizeof(ncclSimInfo_t) == 24);

TEST(Numbers, TheInitializersSetEveryField) {
  const ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  EXPECT_EQ(config.size, sizeof config);
  EXPECT_EQ(config.magic, 0xcafebeefU);
  EXPECT_EQ(config.version, 23203U);
  for (int field : {config.blocking,
                    config.cgaClusterSize,
                    config.minCTAs,
                    config.maxCTAs,
                    config.splitShare,
                    config.trafficClass,
                    config.collnetEnable,
                    config.CTAPolicy,
                    config.shrinkShare,
                    config.nvlsCTAs,
                    config.nChannelsPerNetPeer,
                    config.nvlinkCentricSched,
                    config.graphUsageMode,
                    config.numRmaCtx,
                    config.maxP2pPeers,
                    config.graphStreamOrdering,
                    config.launchOrderImplicit,
                    config.numRmaSig,
                    config.rmaEagerInit,
                    config.hostCftMode,
                    config.nvlsHostMode})
    EXPECT_EQ(field, NCCL_CONFIG_UNDEF_INT);
  EXPECT_EQ(config.netName, nullptr);
  EXPECT_EQ(config.commName, nullptr);
  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(info.magic, 0x74685283U);
  EXPECT_EQ(info.estimatedTime, NCCL_UNDEF_FLOAT);
}

TEST(Numbers, VersionAndErrorStrings) {
  int version = 0;
  EXPECT_TRUE(done(ncclGetVersion(&version)));
  EXPECT_EQ(version, NCCL_VERSION_CODE);
  EXPECT_TRUE(refused(ncclGetVersion(nullptr), ncclInvalidArgument, "version is NULL"));
  for (int r = 0; r < ncclNumResults; ++r)
    EXPECT_STRNE(ncclGetErrorString(static_cast<ncclResult_t>(r)), "no result of this library");
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidArgument), "invalid argument");
  EXPECT_STREQ(ncclGetErrorString(ncclNumResults), "no result of this library");
}

}  // namespace
}  // namespace trellis::nccl
