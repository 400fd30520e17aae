// Failures are reported by the call where possible, else by ncclCommGetAsyncError; and their messages stay.
#include <atomic>

#include "tests/nccl/cliques.h"

namespace trellis::nccl {
namespace {

constexpr auto bad = ncclInvalidArgument;

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclNumResults;
  EXPECT_TRUE(done(ncclCommGetAsyncError(comm, &state)));
  return state;
}

struct Stream {
  Stream() { EXPECT_EQ(cudaStreamCreate(&stream), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream = nullptr;
};

TEST(NcclFails, MessagesToOneselfThatDoNotFitAreRefusedByTheGroupsEnd) {
  const Cliques c(2);
  const Stream stream;
  float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {};
  for (cudaStream_t on : {stream.stream, cudaStream_t{nullptr}}) {
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclSend(in, 8, ncclFloat, 1, c[1], on)));
    EXPECT_TRUE(done(ncclRecv(out, 4, ncclFloat, 1, c[1], on)));
    EXPECT_TRUE(refused(ncclGroupEnd(), bad, "rank 1 sends itself 8 f32 where it receives 4"));
    ASSERT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclSend(in, 8, ncclFloat, 0, c[0], on)));
    EXPECT_TRUE(done(ncclRecv(out, 8, ncclFloat, 0, c[0], on)));
    EXPECT_TRUE(done(ncclRecv(out, 8, ncclFloat, 1, c[1], on)));
    EXPECT_TRUE(refused(ncclGroupEnd(), bad, "rank 1 sends to itself 0 times and receives 1 times"));
    EXPECT_TRUE(refused(ncclSend(in, 8, ncclFloat, 0, c[0], on), bad, "sends to itself 1 times"));
  }
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(out[0], 0);
  // Nothing was begun, so the communicators are well.
  EXPECT_EQ(state_of(c[0]), ncclSuccess);
  EXPECT_EQ(state_of(c[1]), ncclSuccess);
  ASSERT_TRUE(done(ncclGroupStart()));
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(done(ncclSend(in, 0, ncclFloat, rank, c[rank], stream)));
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(done(ncclSend(in, 8, ncclFloat, rank, c[rank], stream)));
  EXPECT_TRUE(done(ncclRecv(out, 8, ncclFloat, 0, c[0], stream)));
  EXPECT_TRUE(done(ncclRecv(out, 8, ncclFloat, 1, c[1], stream)));
  EXPECT_TRUE(done(ncclGroupEnd()));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(out[7], 8);
}

TEST(NcclFails, AFailedCommunicatorTakesNoMoreOperations) {
  const Cliques c(2);
  c.each([](int rank, ncclComm_t comm) {
    ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
    const Stream stream;
    float data[65] = {};
    EXPECT_TRUE(done(ncclAllReduce(data, data, rank == 0 ? 64 : 65, ncclFloat, ncclSum, comm, stream)));
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
    const ncclResult_t error = state_of(comm);
    EXPECT_EQ(error, ncclInvalidUsage);
    const std::string why = "all_reduce of 65 f32";
    for (cudaStream_t on : {stream.stream, cudaStream_t{nullptr}}) {
      EXPECT_TRUE(refused(ncclAllReduce(data, data, 64, ncclFloat, ncclSum, comm, on), error, why));
      EXPECT_TRUE(refused(ncclBroadcast(data, data, 64, ncclFloat, 0, comm, on), error, why));
      EXPECT_TRUE(refused(ncclSend(data, 64, ncclFloat, 1 - rank, comm, on), error, why));
      ASSERT_TRUE(done(ncclGroupStart()));
      EXPECT_TRUE(refused(ncclRecv(data, 64, ncclFloat, 1 - rank, comm, on), error, why));
      EXPECT_TRUE(refused(ncclGroupEnd(), error, why));
    }
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess) << "it was given nothing";
    cudaGetLastError();
  });
}

TEST(NcclFails, TwoRootsAreNamedToBoth) {
  for (const std::size_t count : {4, 1 << 20}) {
    const Cliques c(2);
    c.each([&](int rank, ncclComm_t comm) {
      ASSERT_EQ(cudaSetDevice(rank), cudaSuccess);
      const Stream stream;
      std::vector<float> data(count);
      EXPECT_TRUE(done(ncclBroadcast(data.data(), data.data(), count, ncclFloat, rank, comm, stream)));
      ncclAllReduce(data.data(), data.data(), 1, ncclFloat, ncclSum, comm, stream);  // if the broadcast saw no mismatch
      EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
      EXPECT_EQ(state_of(comm), ncclInvalidUsage);
      const std::string of = "broadcast of " + std::to_string(count) + " f32, root ";
      for (const char* root : {"0", "1"})
        EXPECT_TRUE(refused(ncclBroadcast(data.data(), data.data(), 1, ncclFloat, 0, comm, stream), ncclInvalidUsage,
                            of + root));
      cudaGetLastError();
    });
  }
}

TEST(NcclFails, WhoGoesOnIsToldThatAnotherHasFinalized) {
  const Cliques c(2);
  float data[4] = {};
  EXPECT_TRUE(done(ncclCommFinalize(c[1])));
  EXPECT_TRUE(refused(ncclAllReduce(data, data, 4, ncclFloat, ncclSum, c[0], nullptr), ncclRemoteError,
                      "rank 1 has finalized the communicator and makes no more calls"));
  EXPECT_EQ(state_of(c[0]), ncclRemoteError);
  EXPECT_EQ(state_of(c[1]), ncclSuccess);
}

// Empty messages to oneself do nothing, in whatever order they stand among the others.
TEST(NcclFails, NoEmptyMessageToOneself) {
  const Cliques c(1);
  const float in[4] = {1, 2, 3, 4};
  for (const std::vector<std::size_t>& counts :
       std::vector<std::vector<std::size_t>>{{0}, {2, 0}, {0, 2}, {2, 0, 2}, {0, 0}, {1, 0, 2, 0, 1}}) {
    float out[4] = {};
    std::size_t at = 0;
    ASSERT_TRUE(done(ncclGroupStart()));
    for (const std::size_t count : counts) {
      EXPECT_TRUE(done(ncclSend(in + at, count, ncclFloat, 0, c[0], nullptr)));
      EXPECT_TRUE(done(ncclRecv(out + at, count, ncclFloat, 0, c[0], nullptr)));
      at += count;
    }
    EXPECT_TRUE(done(ncclGroupEnd()));
    for (std::size_t i = 0; i < at; ++i) EXPECT_EQ(out[i], in[i]);
  }
  float out[2] = {};
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(done(ncclSend(in, 0, ncclFloat, 0, c[0], nullptr)));
  EXPECT_TRUE(done(ncclRecv(out, 2, ncclFloat, 0, c[0], nullptr)));
  EXPECT_TRUE(refused(ncclGroupEnd(), bad, "sends to itself 0 times and receives 1 times"));
}

TEST(NcclFails, WhatAStreamDropsEndsItsCommunicator) {
  const Cliques first(2), second(2);
  const Stream stream;
  int in = 1, out = 0;
  EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, first[0], stream)));   // the other never comes
  EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, second[0], stream)));  // waits for that on the stream
  EXPECT_TRUE(done(ncclCommRevoke(first[0], NCCL_REVOKE_DEFAULT)));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(state_of(first[0]), ncclSuccess);  // a revoked communicator reports no failure
  EXPECT_EQ(state_of(second[0]), ncclRemoteError);
  EXPECT_TRUE(refused(ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, second[0], nullptr), ncclRemoteError,
                      "what its stream held before has failed"));
  // Nor do the other ranks wait for the operation that was dropped.
  EXPECT_TRUE(refused(ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, second[1], nullptr), ncclRemoteError, "aborted"));
}

// A stream that has failed refuses collectives until the program has been told of the failure: otherwise the stream
// would drop them, which aborts their communicators.
TEST(NcclFails, AStreamThatHasFailedIsSynchronizedFirst) {
  const Cliques first(2), second(2);
  const Stream stream;
  cudaEvent_t failed = nullptr;
  ASSERT_EQ(cudaEventCreate(&failed), cudaSuccess);
  int in = 1, out[2] = {};
  EXPECT_TRUE(done(ncclAllReduce(&in, out, 1, ncclInt, ncclSum, first[0], stream)));  // the other never comes
  ASSERT_EQ(cudaEventRecord(failed, stream), cudaSuccess);
  EXPECT_TRUE(done(ncclCommRevoke(first[0], NCCL_REVOKE_DEFAULT)));
  ASSERT_EQ(cudaEventSynchronize(failed), cudaErrorLaunchFailure);
  EXPECT_TRUE(refused(ncclAllReduce(&in, out, 1, ncclInt, ncclSum, second[0], stream), bad, "synchronized"));
  EXPECT_EQ(state_of(second[0]), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  ASSERT_TRUE(done(ncclGroupStart()));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(done(ncclAllReduce(&in, &out[rank], 1, ncclInt, ncclSum, second[rank], stream)));
  EXPECT_TRUE(done(ncclGroupEnd()));
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(out[0], 2);
  EXPECT_EQ(out[1], 2);
  cudaEventDestroy(failed);
}

TEST(NcclFails, ARevokedOneIsInProgressUntilItsOperationsHaveEnded) {
  const Cliques c(2);
  const Stream stream;
  int in = 1, out = 0;
  std::atomic<bool> held = true;
  const auto wait = [](void* flag) {
    while (*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  ASSERT_EQ(cudaLaunchHostFunc(stream, wait, &held), cudaSuccess);
  EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclInt, ncclSum, c[0], stream)));
  EXPECT_TRUE(done(ncclCommRevoke(c[0], NCCL_REVOKE_DEFAULT)));
  EXPECT_EQ(state_of(c[0]), ncclInProgress);
  held = false;
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(wait_until_made(c[0]), ncclSuccess);
}

TEST(NcclFails, AllStreamsOfAGroupTellOfIt) {
  const Cliques c(2);
  const Stream first, second;
  float in[8] = {}, out[8] = {};
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(done(ncclSend(in, 4, ncclFloat, 1, c[0], first)));
  EXPECT_TRUE(done(ncclRecv(out, 8, ncclFloat, 0, c[1], second)));
  EXPECT_TRUE(done(ncclGroupEnd()));
  EXPECT_EQ(cudaStreamSynchronize(first), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaErrorLaunchFailure);
  EXPECT_EQ(state_of(c[1]), ncclInvalidUsage);
  EXPECT_EQ(cudaStreamSynchronize(second), cudaSuccess);  // the failure is reported once
}

TEST(NcclFails, AThreadThatEndsWithinAGroupLeavesNothingOpen) {
  const Cliques c(1);
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  ncclComm_t begun = nullptr;
  float in = 1, out = 0;
  std::jthread([&] {
    EXPECT_TRUE(done(ncclGroupStart()));
    EXPECT_TRUE(done(ncclAllReduce(&in, &out, 1, ncclFloat, ncclSum, c[0], nullptr)));
    EXPECT_TRUE(done(ncclCommInitRank(&begun, 1, id, 0)));
  }).join();
  EXPECT_EQ(out, 0);
  EXPECT_EQ(state_of(c[0]), ncclSuccess);
  EXPECT_EQ(state_of(begun), ncclInvalidUsage);
  EXPECT_TRUE(done(ncclCommDestroy(begun)));
}

TEST(NcclFails, AMessageHasOnePlaceInItsThread) {
  EXPECT_TRUE(refused(ncclGetUniqueId(nullptr), bad, "uniqueId is NULL"));
  const char* const kept = ncclGetLastError(nullptr);
  const std::string long_key(5000, 'k');
  ncclParamHandle_t handle = nullptr;
  EXPECT_TRUE(refused(ncclParamBind(&handle, long_key.c_str()), bad, "kkkk"));
  EXPECT_EQ(ncclGetLastError(nullptr), kept);
  EXPECT_EQ(std::string(kept).size(), 1023u);  // as much of it as there is room for
  EXPECT_TRUE(refused(ncclCommInitAll(nullptr, 1, nullptr), bad, "comm is NULL"));
  EXPECT_STREQ(kept, "comm is NULL");
  std::jthread([&] { EXPECT_STREQ(ncclGetLastError(nullptr), ""); }).join();
}

TEST(NcclFails, MessagesHaveTheWordsOfTheFunctionThatWasCalled) {
  const Cliques c(2);
  int in[8] = {}, out[8] = {};
  const auto i = ncclInt;
  EXPECT_TRUE(refused(ncclSend(in, 1, i, -1, c[0], nullptr), bad, "ncclSend: peer -1: expected 0 to 1"));
  EXPECT_TRUE(refused(ncclSend(nullptr, 1, i, 1, c[0], nullptr), bad, "ncclSend: sendbuff is NULL"));
  EXPECT_TRUE(refused(ncclRecv(nullptr, 1, i, 0, c[0], nullptr), bad, "ncclRecv: recvbuff is NULL"));
  EXPECT_TRUE(refused(ncclRecv(out, SIZE_MAX / 4, i, 1, c[0], nullptr), bad, "ncclRecv: count 4611686018427387903"));
  EXPECT_TRUE(refused(ncclBcast(nullptr, 1, i, 0, c[0], nullptr), bad, "ncclBcast: buff is NULL"));
  EXPECT_TRUE(refused(ncclBroadcast(in, nullptr, 1, i, 1, c[0], nullptr), bad, "ncclBroadcast: recvbuff is NULL"));
  EXPECT_TRUE(refused(ncclReduce(in, nullptr, 1, i, ncclSum, 0, c[0], nullptr), bad, "ncclReduce: recvbuff is NULL"));
  EXPECT_TRUE(refused(ncclGather(in, nullptr, 1, i, 0, c[0], nullptr), bad, "ncclGather: recvbuff is NULL"));
  EXPECT_TRUE(refused(ncclScatter(nullptr, out, 1, i, 0, c[0], nullptr), bad, "ncclScatter: sendbuff is NULL"));
  EXPECT_TRUE(refused(ncclScatter(in, out, 1, i, 2, c[0], nullptr), bad, "ncclScatter: root 2: expected 0 to 1"));
  EXPECT_TRUE(refused(ncclAlltoAll(in, nullptr, 1, i, c[0], nullptr), bad, "ncclAlltoAll: recvbuff is NULL"));
  EXPECT_TRUE(
      refused(ncclAllGather(in, out, SIZE_MAX / 8, i, c[0], nullptr), bad,
              "ncclAllGather: sendcount 2305843009213693951: this many elements of 4 bytes for each of 2 ranks"));
  EXPECT_TRUE(refused(ncclReduceScatter(in, out, SIZE_MAX / 8, i, ncclSum, c[0], nullptr), bad,
                      "ncclReduceScatter: recvcount 2305843009213693951"));
  EXPECT_TRUE(refused(ncclAllReduce(in, in + 1, 4, i, ncclSum, c[0], nullptr), bad, "ncclAllReduce: 16 bytes from"));
  EXPECT_TRUE(refused(ncclAllGather(in + 1, in, 2, i, c[0], nullptr), bad, "overlap 16 from recvbuff"));
  EXPECT_TRUE(refused(ncclReduceScatter(in, in, 2, i, ncclSum, c[1], nullptr), bad, "and not in place"));
  auto* const last = reinterpret_cast<void*>(UINTPTR_MAX - 7);
  EXPECT_TRUE(refused(ncclAllReduce(last, out, 4, i, ncclSum, c[0], nullptr), bad, "go past the last address"));
  void* handle = nullptr;
  EXPECT_TRUE(refused(ncclCommRegister(c[0], in, SIZE_MAX, &handle), bad, "size 18446744073709551615: from buff"));
  EXPECT_TRUE(done(ncclCommDeregister(c[0], nullptr)));
  EXPECT_TRUE(done(ncclCommWindowDeregister(c[0], nullptr)));
  EXPECT_TRUE(refused(ncclMemFree(in), bad, "was not given by ncclMemAlloc"));
  EXPECT_TRUE(refused(ncclRedOpDestroy(static_cast<ncclRedOp_t>(77), c[0]), bad,
                      "op 77: expected what ncclRedOpCreatePreMulSum gave"));
  EXPECT_TRUE(refused(ncclSignal(2, 0, 0, 0, c[0], nullptr), bad, "ncclSignal: peer 2: expected 0 to 1"));
  // In a group, ncclGroupEnd reports the same error again.
  ASSERT_TRUE(done(ncclGroupStart()));
  EXPECT_TRUE(refused(ncclSend(in, 1, i, 7, c[0], nullptr), bad, "ncclSend: peer 7"));
  EXPECT_TRUE(refused(ncclGroupEnd(), bad, "ncclSend: peer 7: expected 0 to 1"));
}

TEST(NcclFails, WhatCannotBeMadeOrDividedIsToldInTheArgumentsNames) {
  const Cliques c(2);
  ncclUniqueId id;
  ASSERT_TRUE(done(ncclGetUniqueId(&id)));
  ncclComm_t made = nullptr;
  int own[] = {1, 0}, far[] = {1, 5};
  EXPECT_TRUE(refused(ncclCommShrink(c[0], nullptr, 1, &made, nullptr, 0), bad, "excludeRanksList is NULL"));
  EXPECT_TRUE(refused(ncclCommShrink(c[0], own, -1, &made, nullptr, 0), bad, "excludeRanksCount -1"));
  EXPECT_TRUE(refused(ncclCommShrink(c[0], far, 2, &made, nullptr, NCCL_SHRINK_ABORT), bad,
                      "excludeRanksList[1] is 5: expected a rank, 0 to 1"));
  EXPECT_TRUE(refused(ncclCommShrink(c[0], own, 2, &made, nullptr, NCCL_SHRINK_ABORT), bad,
                      "excludeRanksList[1] is 0, which is the rank that calls"));
  EXPECT_EQ(state_of(c[0]), ncclSuccess);  // the refused shrinks have aborted nothing
  EXPECT_TRUE(refused(ncclCommInitRank(&made, -1, id, 0), bad, "nranks -1: expected at least 1"));
  EXPECT_TRUE(refused(ncclCommInitRankScalable(&made, 2, 3, 1, &id, nullptr), bad, "myrank 3 of nranks 2"));
  EXPECT_TRUE(refused(ncclCommInitRankScalable(nullptr, 2, 1, 1, &id, nullptr), bad, "newcomm is NULL"));
  EXPECT_TRUE(refused(ncclCommGrow(c[0], 3, &id, 2, &made, nullptr), bad, "rank 2: expected -1 with a comm"));
  EXPECT_TRUE(refused(ncclCommGrow(nullptr, 3, &id, 3, &made, nullptr), bad, "rank 3 of nRanks 3"));
  EXPECT_EQ(made, nullptr);
}

}  // namespace
}  // namespace trellis::nccl
