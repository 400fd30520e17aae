// An abort waits for nobody, whatever is in progress; and a destroy within a group is done at the group's end.
#include <atomic>
#include <cstdio>
#include <future>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

using namespace std::chrono_literals;

// Runs the body in a thread. If it waits for ever, the program is ended, since a thread can't be.
void expect_end(const std::function<void()>& body) {
  std::promise<void> ended;
  std::jthread thread([&] {
    body();
    ended.set_value();
  });
  if (ended.get_future().wait_for(100s) == std::future_status::ready) return;
  std::puts("it waits for ever");
  std::_Exit(1);
}

ncclComm_t alone() {
  ncclComm_t comm = nullptr;
  EXPECT_TRUE(done(ncclCommInitAll(&comm, 1, nullptr)));
  return comm;
}

ncclUniqueId fresh_id() {
  ncclUniqueId id = {};
  EXPECT_TRUE(done(ncclGetUniqueId(&id)));
  return id;
}

ncclComm_t split_of(ncclComm_t comm) {
  ncclComm_t part = nullptr;
  EXPECT_TRUE(done(ncclCommSplit(comm, 0, 0, &part, nullptr)));
  return part;
}

void aborted_at_the_end(ncclResult_t end) { EXPECT_TRUE(refused(end, ncclRemoteError, "aborted")); }

TEST(NcclAbort, InAGroupItEndsWhatTheGroupHoldsOfTheCommunicator) {
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    const ncclComm_t part = split_of(comm);
    EXPECT_TRUE(done(ncclCommAbort(comm)));
    aborted_at_the_end(ncclGroupEnd());
    EXPECT_TRUE(refused(ncclCommAbort(comm), ncclInvalidArgument, "destroyed"));
    ncclResult_t state = ncclSuccess;
    EXPECT_TRUE(done(ncclCommGetAsyncError(part, &state)));
    EXPECT_EQ(state, ncclRemoteError);
    EXPECT_TRUE(done(ncclCommDestroy(part)));
  });
}

TEST(NcclAbort, InAGroupItEndsTheChildThatTheGroupWouldMake) {
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclCommAbort(split_of(comm))));
    aborted_at_the_end(ncclGroupEnd());
    // The parent can still be used.
    int a = 4, b = 0;
    EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comm, nullptr)));
    EXPECT_EQ(b, 4);
    EXPECT_TRUE(done(ncclCommDestroy(comm)));
  });
}

TEST(NcclAbort, InAGroupItEndsAMakingThatNobodyElseJoins) {
  expect_end([] {
    ncclComm_t made = nullptr;
    ASSERT_TRUE(done(ncclGroupStart()));
    ASSERT_TRUE(done(ncclCommInitRank(&made, 2, fresh_id(), 0)));
    EXPECT_TRUE(done(ncclCommAbort(made)));
    aborted_at_the_end(ncclGroupEnd());
  });
}

TEST(NcclAbort, AWatchdogEndsAGroupThatWaitsForOthers) {
  expect_end([] {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t made = nullptr;
    ASSERT_TRUE(done(ncclGroupStart()));
    ASSERT_TRUE(done(ncclCommInitRankConfig(&made, 2, fresh_id(), 0, &config)));
    std::atomic<bool> ending = false;
    std::jthread watchdog([&] {
      while (!ending) std::this_thread::yield();
      EXPECT_TRUE(done(ncclCommAbort(made)));
    });
    ending = true;
    aborted_at_the_end(ncclGroupEnd());
  });
}

TEST(NcclAbort, AWatchdogAbortsWhatAnotherThreadsGroupHolds) {
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    const ncclComm_t part = split_of(comm);
    std::jthread([&] { EXPECT_TRUE(done(ncclCommAbort(comm))); }).join();
    std::jthread([&] { EXPECT_TRUE(done(ncclCommDestroy(part))); }).join();
    aborted_at_the_end(ncclGroupEnd());
  });
}

TEST(NcclAbort, AfterAFinalizeInTheGroup) {
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclCommFinalize(comm)));
    EXPECT_TRUE(done(ncclCommAbort(comm)));
    aborted_at_the_end(ncclGroupEnd());
  });
}

// A revoked communicator can be split, and the split is not aborted.
TEST(NcclAbort, ARevocationBeforeASplitDoesNotEndIt) {
  expect_end([] {
    const ncclComm_t comm = alone();
    EXPECT_TRUE(done(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT)));
    ASSERT_TRUE(done(ncclGroupStart()));
    const ncclComm_t part = split_of(comm);
    EXPECT_TRUE(done(ncclCommDestroy(comm)));
    EXPECT_TRUE(done(ncclGroupEnd()));
    EXPECT_TRUE(done(ncclCommDestroy(part)));
  });
}

TEST(NcclAbort, WhatIsDestroyedInAGroupIsDestroyedAfterTheGroupsCalls) {
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclCommFinalize(comm)));
    EXPECT_TRUE(done(ncclCommDestroy(comm)));
    EXPECT_TRUE(done(ncclGroupEnd()));
  });
  expect_end([] {
    const ncclComm_t comm = alone();
    ASSERT_TRUE(done(ncclGroupStart()));
    const ncclComm_t part = split_of(comm);
    int a = 3, b = 0;
    EXPECT_TRUE(done(ncclCommDestroy(comm)));
    EXPECT_TRUE(done(ncclGroupEnd()));
    EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, part, nullptr)));
    EXPECT_EQ(b, 3);
    EXPECT_TRUE(done(ncclCommDestroy(part)));
  });
  expect_end([] {
    const ncclComm_t comm = alone();
    int a = 5, b = 0;
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comm, nullptr)));
    EXPECT_TRUE(done(ncclCommDestroy(comm)));
    EXPECT_TRUE(done(ncclGroupEnd()));
    EXPECT_EQ(b, 5);
  });
  // A communicator that is destroyed in the group that makes it is never made, as nobody could use it.
  expect_end([] {
    ncclComm_t made = nullptr;
    ASSERT_TRUE(done(ncclGroupStart()));
    ASSERT_TRUE(done(ncclCommInitRank(&made, 2, fresh_id(), 0)));
    EXPECT_TRUE(done(ncclCommDestroy(made)));
    aborted_at_the_end(ncclGroupEnd());
  });
}

TEST(NcclAbort, AGroupThatFailsOrIsForgottenDestroysAllTheSame) {
  for (const bool forgotten : {true, false})
    expect_end([&] {
      const ncclComm_t comm = alone();
      ASSERT_TRUE(done(ncclGroupStart()));
      EXPECT_TRUE(done(ncclCommFinalize(comm)));
      EXPECT_TRUE(done(ncclCommDestroy(comm)));
      if (forgotten) {
        EXPECT_TRUE(done(ncclGroupSimulateEnd(nullptr)));
      } else {
        EXPECT_TRUE(refused(ncclCommFinalize(comm), ncclInvalidArgument, "destroyed"));
        EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidArgument, "destroyed"));
      }
    });
}

// The program's work on the stream ends only after the abort has returned.
TEST(NcclAbort, DoesNotWaitForTheProgramsOwnWorkOnAStream) {
  expect_end([] {
    const ncclComm_t comm = alone();
    cudaStream_t stream = nullptr;
    std::atomic<bool> open = false;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream,
                  [](void* gate) {
                    while (!*static_cast<std::atomic<bool>*>(gate)) std::this_thread::yield();
                  },
                  &open),
              cudaSuccess);
    int a = 1, b = 0;
    EXPECT_TRUE(done(ncclAllReduce(&a, &b, 1, ncclInt, ncclSum, comm, stream)));
    EXPECT_TRUE(done(ncclCommAbort(comm)));
    open = true;
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
    EXPECT_EQ(b, 0);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  });
}

}  // namespace
}  // namespace trellis::nccl
