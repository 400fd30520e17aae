// Communicators of NCCL's API: made, divided, revoked, suspended, ended.
#include <chrono>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

using namespace std::chrono_literals;

int sum(ncclComm_t comm, int mine) {
  int out = 0;
  EXPECT_TRUE(done(ncclAllReduce(&mine, &out, 1, ncclInt, ncclSum, comm, nullptr)));
  return out;
}

TEST(NcclLife, InitAllTellsRanksAndDevices) {
  const int devices[] = {4, 1, 7};
  ncclComm_t comms[3];
  ASSERT_TRUE(done(ncclCommInitAll(comms, 3, devices)));
  for (int i = 0; i < 3; ++i) {
    int rank = -1, count = -1, device = -1;
    EXPECT_TRUE(done(ncclCommUserRank(comms[i], &rank)));
    EXPECT_TRUE(done(ncclCommCount(comms[i], &count)));
    EXPECT_TRUE(done(ncclCommCuDevice(comms[i], &device)));
    EXPECT_EQ(rank, i);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(device, devices[i]);
    EXPECT_TRUE(done(ncclCommDestroy(comms[i])));
  }
}

// NCCL's second example: ranks that meet by an id, here in one thread and one group.
TEST(NcclLife, RanksMeetByIdWithinAGroup) {
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  ncclComm_t comms[2] = {};
  ASSERT_TRUE(done(ncclGroupStart()));
  for (int rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
    ASSERT_TRUE(done(ncclCommInitRank(&comms[rank], 2, id, rank)));
  }
  ASSERT_TRUE(done(ncclGroupEnd()));
  for (int rank = 0; rank < 2; ++rank) {
    int device = -1;
    EXPECT_TRUE(done(ncclCommCuDevice(comms[rank], &device)));
    EXPECT_EQ(device, rank);
    EXPECT_TRUE(done(ncclCommFinalize(comms[rank])));
    EXPECT_TRUE(done(ncclCommDestroy(comms[rank])));
  }
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(NcclLife, SeveralIdsMeetByTheFirst) {
  ncclUniqueId ids[2];
  for (ncclUniqueId& id : ids) ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  ncclComm_t comms[2] = {};
  ASSERT_TRUE(done(ncclGroupStart()));
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_TRUE(done(ncclCommInitRankScalable(&comms[rank], 2, rank, 2, ids, nullptr)));
  ASSERT_TRUE(done(ncclGroupEnd()));
  for (ncclComm_t comm : comms) EXPECT_TRUE(done(ncclCommDestroy(comm)));
  EXPECT_TRUE(refused(ncclCommInitRankScalable(comms, 2, 0, 0, ids, nullptr), ncclInvalidArgument, "nId 0"));
  EXPECT_TRUE(refused(ncclCommInitRankScalable(comms, 2, 0, 3, ids, nullptr), ncclInvalidArgument, "nId 3"));
  EXPECT_TRUE(
      refused(ncclCommInitRankScalable(comms, 2, 0, 1, nullptr, nullptr), ncclInvalidArgument, "commIds is NULL"));
}

TEST(NcclLife, NonblockingCommunicatorsAreMadeInTheBackground) {
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comms[2] = {};
  for (int rank = 0; rank < 2; ++rank)
    ASSERT_EQ(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config), ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(wait_until_made(comm), ncclSuccess);
  std::jthread other([&] { EXPECT_EQ(sum(comms[1], 5), 8); });
  EXPECT_EQ(sum(comms[0], 3), 8);
  other.join();
  // A child can be told to block.
  config.blocking = 1;
  ncclComm_t children[2] = {};
  std::jthread split([&] { EXPECT_TRUE(done(ncclCommSplit(comms[1], 0, 0, &children[1], &config))); });
  EXPECT_TRUE(done(ncclCommSplit(comms[0], 0, 0, &children[0], &config)));
  split.join();
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommFinalize(comm), ncclInProgress);
  for (ncclComm_t comm : comms) EXPECT_EQ(wait_until_made(comm), ncclSuccess);
  for (ncclComm_t comm : {comms[0], comms[1], children[0], children[1]}) EXPECT_TRUE(done(ncclCommDestroy(comm)));
}

TEST(NcclLife, SplitShrinkAndGrow) {
  const Cliques c(3);
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclCommGetUniqueId(c[0], &id)));
  std::jthread fresh([&] {
    ncclComm_t grown = nullptr;
    ASSERT_TRUE(done(ncclCommGrow(nullptr, 4, &id, 3, &grown, nullptr)));
    EXPECT_EQ(sum(grown, 3), 6);
    EXPECT_TRUE(done(ncclCommDestroy(grown)));
  });
  c.each([&](int rank, ncclComm_t comm) {
    ncclComm_t grown = nullptr;
    ASSERT_TRUE(done(ncclCommGrow(comm, 4, rank == 0 ? &id : nullptr, -1, &grown, nullptr)));
    EXPECT_EQ(sum(grown, rank), 6);
    EXPECT_TRUE(done(ncclCommDestroy(grown)));

    ncclComm_t child = nullptr;
    ASSERT_TRUE(done(ncclCommSplit(comm, rank == 1 ? NCCL_SPLIT_NOCOLOR : 0, -rank, &child, nullptr)));
    EXPECT_EQ(child == nullptr, rank == 1);
    if (child != nullptr) {
      EXPECT_EQ(sum(child, rank), 2);
    }
    EXPECT_TRUE(done(ncclCommDestroy(child)));

    if (rank == 0) return;
    int excluded[] = {0};
    ncclComm_t left = nullptr;
    ASSERT_TRUE(done(ncclCommShrink(comm, excluded, 1, &left, nullptr, NCCL_SHRINK_ABORT)));
    EXPECT_EQ(sum(left, rank), 3);
    EXPECT_TRUE(done(ncclCommDestroy(left)));
  });
}

TEST(NcclLife, RevokedOnesCanBeDividedAndNoMore) {
  const Cliques c(2);
  c.each([](int, ncclComm_t comm) {
    EXPECT_TRUE(refused(ncclCommRevoke(comm, 3), ncclInvalidArgument, "revokeFlags 3"));
    EXPECT_TRUE(done(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)));
    EXPECT_TRUE(refused(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclInvalidArgument, "revoked already"));
    EXPECT_EQ(wait_until_made(comm), ncclSuccess);
    int a = 1, b = 0;
    EXPECT_TRUE(refused(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidUsage, "revoked"));
    EXPECT_TRUE(refused(ncclCommFinalize(comm), ncclInvalidUsage, "revoked"));
  });
  c.each([](int rank, ncclComm_t comm) {
    ncclComm_t child = nullptr;
    ASSERT_TRUE(done(ncclCommSplit(comm, 0, 0, &child, nullptr)));
    EXPECT_EQ(sum(child, rank + 1), 3);
    EXPECT_TRUE(done(ncclCommDestroy(child)));
  });
}

TEST(NcclLife, SuspendedOnesDoNothingUntilTheyAreResumed) {
  const Cliques c(1);
  std::uint64_t suspended = 9, total = 0, persisting = 0, giving_back = 9;
  EXPECT_TRUE(refused(ncclCommResume(c[0]), ncclInvalidUsage, "not suspended"));
  EXPECT_TRUE(refused(ncclCommSuspend(c[0], 2), ncclInvalidArgument, "flags 0x2"));
  EXPECT_TRUE(done(ncclCommSuspend(c[0], NCCL_SUSPEND_MEM)));
  EXPECT_TRUE(refused(ncclCommSuspend(c[0], NCCL_SUSPEND_MEM), ncclInvalidUsage, "already"));
  EXPECT_TRUE(done(ncclCommMemStats(c[0], ncclStatGpuMemSuspended, &suspended)));
  EXPECT_EQ(suspended, 1u);
  int a = 1, b = 0;
  EXPECT_TRUE(refused(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, c[0], nullptr), ncclInvalidUsage, "suspended"));
  EXPECT_TRUE(done(ncclCommResume(c[0])));
  EXPECT_EQ(sum(c[0], 4), 4);
  EXPECT_TRUE(done(ncclCommMemStats(c[0], ncclStatGpuMemTotal, &total)));
  EXPECT_TRUE(done(ncclCommMemStats(c[0], ncclStatGpuMemPersist, &persisting)));
  EXPECT_TRUE(done(ncclCommMemStats(c[0], ncclStatGpuMemSuspend, &giving_back)));
  EXPECT_EQ(total, persisting + giving_back);
  EXPECT_TRUE(refused(ncclCommMemStats(c[0], ncclStatGpuMemTotal, nullptr), ncclInvalidArgument, "value is NULL"));
}

TEST(NcclLife, AbortEndsWhatRunsAndFreesTheHandle) {
  ncclComm_t comms[2];
  ASSERT_TRUE(done(ncclCommInitAll(comms, 2, nullptr)));
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  int a = 1, b = 0;
  EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comms[0], stream)));  // the other never comes
  EXPECT_TRUE(done(ncclCommAbort(comms[0])));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_TRUE(refused(ncclCommAbort(comms[0]), ncclInvalidArgument, "destroyed"));
  EXPECT_TRUE(refused(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comms[1], nullptr), ncclRemoteError, "aborted"));
  ncclResult_t state = ncclSuccess;
  EXPECT_TRUE(done(ncclCommGetAsyncError(comms[1], &state)));
  EXPECT_EQ(state, ncclRemoteError);
  EXPECT_TRUE(done(ncclCommAbort(comms[1])));
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(NcclLife, NullIsLetBeAtTheEnd) {
  EXPECT_TRUE(done(ncclCommDestroy(nullptr)));
  EXPECT_TRUE(done(ncclCommAbort(nullptr)));
  EXPECT_TRUE(done(ncclCommFinalize(nullptr)));
  EXPECT_TRUE(done(ncclCommRevoke(nullptr, NCCL_REVOKE_DEFAULT)));
}

TEST(NcclLife, FinalizedOnesCannotBeRevoked) {
  const Cliques c(1);
  EXPECT_TRUE(done(ncclCommFinalize(c[0])));
  EXPECT_TRUE(refused(ncclCommRevoke(c[0], NCCL_REVOKE_DEFAULT), ncclInvalidArgument, "finalized"));
}

}  // namespace
}  // namespace trellis::nccl
