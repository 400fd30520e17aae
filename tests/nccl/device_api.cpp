// The host part of NCCL's device API: it reports that there are no kernels, and refuses calls that need them.
#include "ccl/api/nccl/nccl_device.h"

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

bool same(ncclTeam_t a, ncclTeam_t b) { return a.nRanks == b.nRanks && a.rank == b.rank && a.stride == b.stride; }

TEST(NcclDeviceApi, PropertiesTellThatThereIsNone) {
  const Cliques c(3);
  ncclCommProperties_t told = NCCL_COMM_PROPERTIES_INITIALIZER;
  told.deviceApiSupport = told.multimemSupport = true;
  ASSERT_TRUE(done(ncclCommQueryProperties(c[1], &told)));
  EXPECT_EQ(told.rank, 1);
  EXPECT_EQ(told.nRanks, 3);
  EXPECT_EQ(told.cudaDev, 1);
  EXPECT_EQ(told.nLsaTeams, 3);
  EXPECT_FALSE(told.deviceApiSupport || told.multimemSupport || told.hostRmaSupport || told.cftSupport);
  EXPECT_EQ(told.ginType, NCCL_GIN_TYPE_NONE);
  // A program of an earlier NCCL has a shorter struct.
  told.size = offsetof(ncclCommProperties_t, nvmlDev);
  told.rank = told.nvmlDev = 77;
  ASSERT_TRUE(done(ncclCommQueryProperties(c[2], &told)));
  EXPECT_EQ(told.rank, 2);
  EXPECT_EQ(told.nvmlDev, 77);
  EXPECT_TRUE(refused(ncclCommQueryProperties(nullptr, &told), bad, "ncclComm_t is NULL"));
  EXPECT_TRUE(refused(ncclCommQueryProperties(c[0], nullptr), bad, "props is NULL"));
  told.size = 8;
  EXPECT_TRUE(refused(ncclCommQueryProperties(c[0], &told), bad, "props.size is 8"));
  told.magic = 5;
  EXPECT_TRUE(refused(ncclCommQueryProperties(c[0], &told), bad, "props.magic is 0x5"));
}

TEST(NcclDeviceApi, EveryRankIsAloneInItsTeam) {
  const Cliques c(3);
  EXPECT_TRUE(same(ncclTeamWorld(c[2]), {3, 2, 1}));
  EXPECT_TRUE(same(ncclTeamLsa(c[2]), {1, 0, 1}));
  EXPECT_TRUE(same(ncclTeamRail(c[2]), {3, 2, 1}));
  EXPECT_TRUE(same(ncclTeamCft(c[2]), {1, 0, 1}));
  EXPECT_TRUE(same(ncclTeamCftMultimem(c[2]), {1, 0, 1}));
  EXPECT_EQ(ncclTeamRankToWorld(c[2], ncclTeamLsa(c[2]), 0), 2);
  EXPECT_EQ(ncclTeamRankToLsa(c[2], ncclTeamWorld(c[2]), 2), 0);
  EXPECT_TRUE(same(ncclTeamWorld(nullptr), {0, 0, 0}));
  EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("ncclComm_t is NULL"), std::string::npos);
}

TEST(NcclDeviceApi, TeamsAreCutAndCompared) {
  const ncclTeam_t world = {12, 5, 1}, inner = ncclTeamInnerFactor(world, 4), outer = ncclTeamOuterFactor(world, 4);
  EXPECT_TRUE(same(inner, {4, 1, 1}));
  EXPECT_TRUE(same(outer, {3, 1, 4}));
  std::vector<int> in_inner, in_outer;
  for (int rank = 0; rank < world.nRanks; ++rank) {
    if (ncclTeamRankIsMember(inner, world, rank)) in_inner.push_back(rank);
    if (ncclTeamRankIsMember(outer, world, rank)) in_outer.push_back(rank);
  }
  EXPECT_EQ(in_inner, (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(in_outer, (std::vector<int>{1, 5, 9}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ncclTeamRankToTeam(world, outer, i), in_outer[static_cast<std::size_t>(i)]);
  std::vector<int> others;
  for (int i = 0; i < 9; ++i) others.push_back(ncclTeamRankInDifference(world, outer, i));
  EXPECT_EQ(others, (std::vector<int>{0, 2, 3, 4, 6, 7, 8, 10, 11}));
  EXPECT_EQ(ncclGetResourceBufferOffset(3), 384u);
  EXPECT_EQ(ncclLLA2ACalcSlots(5, 9), 10);
}

TEST(NcclDeviceApi, WhatNeedsKernelsIsRefused) {
  const Cliques c(1);
  const ncclDevCommRequirements_t needed = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
  ncclDevComm_t device = {};
  ncclDevResourceRequirements_t resources = {};
  ncclLsaBarrierHandle_t lsa;
  ncclGinBarrierHandle_t gin;
  ncclGinOutboxHandle outbox;
  ncclGinInboxA2AHandle inbox;
  ncclCftBarrierHandle_t cft;
  ncclLLA2AHandle_t all;
  ncclCftLeId id;
  std::size_t offset;
  void* pointer = nullptr;
  const ncclTeam_t team = ncclTeamLsa(c[0]);
  const std::string why = "there is no device API here";
  for (const ncclResult_t result :
       {ncclGetLsaMultimemDevicePointer(nullptr, 0, &pointer), ncclGetMultimemDevicePointer(nullptr, 0, {}, &pointer),
        ncclGetLsaDevicePointer(nullptr, 0, 0, &pointer), ncclGetPeerDevicePointer(nullptr, 0, 0, &pointer),
        ncclGetMultimemDeviceLeInfo(nullptr, 0, &id, &offset),
        ncclGetCftDeviceLeInfo(nullptr, 0, 0, team, &id, &offset), ncclGetPeerDeviceLeInfo(nullptr, 0, 0, &id, &offset),
        ncclLsaBarrierCreateRequirement(team, 1, &lsa, &resources),
        ncclGinBarrierCreateRequirement(c[0], team, 1, &gin, &resources),
        ncclGinOutboxCreateRequirement(1, 7, &outbox, &resources),
        ncclGinInboxA2ACreateRequirement(team, 1, 7, &inbox, &resources),
        ncclCftBarrierCreateRequirement(team, 1, &cft, &resources), ncclLLA2ACreateRequirement(1, 1, &all, &resources),
        ncclDevCommDestroy(c[0], &device), ncclDevCommCreate(c[0], &needed, &device)})
    EXPECT_TRUE(refused(result, ncclInvalidUsage, why));
  EXPECT_TRUE(refused(ncclDevCommCreate(nullptr, &needed, &device), bad, "ncclComm_t is NULL"));
  EXPECT_TRUE(refused(ncclDevCommCreate(c[0], nullptr, &device), bad, "reqs is NULL"));
}

}  // namespace
}  // namespace trellis::nccl
