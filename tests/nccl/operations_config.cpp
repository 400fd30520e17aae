// Collectives with a configuration of their own, and encryption.
#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

TEST(NcclConfigs, EveryCollectiveTakesOne) {
  const Cliques c(2);
  c.each([](int rank, ncclComm_t comm) {
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    config.minCTAs = 1;
    config.maxCTAs = 8;
    config.userProfilerTag = 42;
    config.algSelection = "ring";
    config.forceAlgSelection = 0;  // algSelection is only a wish
    const auto f = ncclFloat;
    const float in[2] = {1, 2};
    float out[2] = {};
    for (const ncclCollConfig_t* told : {static_cast<const ncclCollConfig_t*>(&config), {}}) {
      EXPECT_TRUE(done(ncclAllReduceConfig(in, out, 1, f, ncclSum, comm, nullptr, told)));
      EXPECT_EQ(out[0], 2);
      EXPECT_TRUE(done(ncclReduceConfig(in, out, 1, f, ncclProd, 0, comm, nullptr, told)));
      EXPECT_TRUE(done(ncclBroadcastConfig(in, out, 1, f, 1, comm, nullptr, told)));
      EXPECT_EQ(out[0], 1);
      EXPECT_TRUE(done(ncclReduceScatterConfig(in, out, 1, f, ncclSum, comm, nullptr, told)));
      EXPECT_EQ(out[0], rank == 0 ? 2 : 4);
      EXPECT_TRUE(done(ncclAllGatherConfig(&in[1], out, 1, f, comm, nullptr, told)));
      EXPECT_EQ(out[0] + out[1], 4);
      EXPECT_TRUE(done(ncclAlltoAllConfig(in, out, 1, f, comm, nullptr, told)));
      EXPECT_EQ(out[1], rank == 0 ? 1 : 2);
      EXPECT_TRUE(done(ncclGatherConfig(in, out, 1, f, 0, comm, nullptr, told)));
      EXPECT_TRUE(done(pncclScatterConfig(in, out, 1, f, 0, comm, nullptr, told)));
      EXPECT_EQ(out[0], rank == 0 ? 1 : 2);
    }
  });
}

TEST(NcclConfigs, WhatCannotBeIsNamed) {
  const Cliques c(1);
  const auto with = [&](auto&& change) {
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    change(config);
    float in = 1, out = 0;
    const ncclResult_t result = ncclAllReduceConfig(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr, &config);
    EXPECT_EQ(out, result == ncclSuccess ? 1 : 0);
    return result;
  };
  EXPECT_TRUE(done(with([](auto& k) { k.algSelection = ""; })));
  EXPECT_TRUE(refused(with([](auto& k) { k.magic = 3; }), bad, "config.magic is 0x3"));
  EXPECT_TRUE(refused(with([](auto& k) { k.size = 20; }), bad, "config.size is 20"));
  EXPECT_TRUE(refused(with([](auto& k) { k.minCTAs = 0; }), bad, "ncclAllReduceConfig: config.minCTAs is 0"));
  EXPECT_TRUE(refused(with([](auto& k) { k.minCTAs = 4, k.maxCTAs = 2; }), bad, "config.minCTAs is 4, and maxCTAs 2"));
  EXPECT_TRUE(refused(with([](auto& k) { k.nvlsCTAs = -1; }), bad, "config.nvlsCTAs is -1"));
  EXPECT_TRUE(refused(with([](auto& k) { k.cgaClusterSize = 9; }), bad, "config.cgaClusterSize is 9"));
  EXPECT_TRUE(refused(with([](auto& k) { k.CTAPolicy = 3; }), bad, "config.CTAPolicy is 3"));
  EXPECT_TRUE(refused(with([](auto& k) { k.forceAlgSelection = 2; }), bad, "config.forceAlgSelection is 2"));
  EXPECT_TRUE(
      refused(with([](auto& k) { k.algSelection = "tree"; }), ncclInvalidUsage, "config.algSelection is 'tree'"));
  EXPECT_TRUE(refused(with([](auto& k) { k.launchCompletionEvent = reinterpret_cast<cudaEvent_t>(1); }),
                      ncclInvalidUsage, "config.launchCompletionEvent"));
  // In a group, both the call and ncclGroupEnd fail.
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.maxCTAs = 0;
  float in = 1, out = 0;
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(refused(ncclAllReduceConfig(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr, &config), bad, "maxCTAs"));
  EXPECT_TRUE(refused(ncclGroupEnd(), bad, "config.maxCTAs is 0"));
}

TEST(NcclConfigs, ThereIsNothingToEncrypt) {
  ncclEncryptionConfig_t config = NCCL_ENCRYPTION_CONFIG_INITIALIZER;
  EXPECT_TRUE(done(ncclSetEncryption(&config)));
  config.mode = NCCL_ENCRYPTION_MODE_PSK;
  config.psk = "secret";
  EXPECT_TRUE(refused(ncclSetEncryption(&config), ncclInvalidUsage, "NCCL_ENCRYPTION_MODE_PSK"));
  config.mode = 2;
  EXPECT_TRUE(refused(ncclSetEncryption(&config), bad, "config.mode is 2"));
  config.size = 3;
  EXPECT_TRUE(refused(ncclSetEncryption(&config), bad, "config.size is 3"));
  EXPECT_TRUE(refused(ncclSetEncryption(nullptr), bad, "config is NULL"));
  ncclResetDebugInit();
}

}  // namespace
}  // namespace trellis::nccl
