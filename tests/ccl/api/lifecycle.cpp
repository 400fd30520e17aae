// How communicators of the C API are made, divided and ended.
#include <chrono>

#include "tests/ccl/api/ranks.h"

namespace trellis::ccl {
namespace {

using namespace std::chrono_literals;

constexpr auto unusable = TRELLIS_INVALID_USAGE;

trellis_config patient(int nonblocking = 0) {
  trellis_config config = TRELLIS_CONFIG_INIT;
  config.timeout_s = 20;
  config.nonblocking = nonblocking;
  return config;
}

// Sums a number of each rank, as proof that a communicator works.
int sum(trellis_comm comm, int mine) {
  int out = 0;
  EXPECT_TRUE(done(trellis_all_reduce(comm, &mine, &out, 1, TRELLIS_I32, TRELLIS_SUM, nullptr)));
  return out;
}

int rank_of(trellis_comm comm) {
  int rank = -1;
  EXPECT_TRUE(done(trellis_comm_rank(comm, &rank)));
  return rank;
}
int ranks_of(trellis_comm comm) {
  int ranks = -1;
  EXPECT_TRUE(done(trellis_comm_ranks(comm, &ranks)));
  return ranks;
}

trellis_result wait_until_made(trellis_comm comm) {
  trellis_result state = TRELLIS_IN_PROGRESS;
  for (const auto end = std::chrono::steady_clock::now() + 60s;
       state == TRELLIS_IN_PROGRESS && std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(1ms))
    EXPECT_TRUE(done(trellis_comm_async_error(comm, &state)));
  return state;
}

TEST(ApiLife, RanksMeetById) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  const trellis_config config = patient();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      trellis_comm comm = nullptr;
      ASSERT_TRUE(done(trellis_comm_create(&comm, 3, &id, rank, &config)));
      EXPECT_EQ(rank_of(comm), rank);
      EXPECT_EQ(ranks_of(comm), 3);
      EXPECT_EQ(sum(comm, rank + 1), 6);
      const char* transport = nullptr;
      EXPECT_TRUE(done(trellis_comm_transport(comm, &transport)));
      EXPECT_TRUE(transport == std::string("loopback") || transport == std::string("shared_memory")) << transport;
      std::size_t bytes = 0;
      EXPECT_TRUE(done(trellis_comm_memory_bytes(comm, &bytes)));
      EXPECT_GT(bytes, 0u);
      EXPECT_TRUE(done(trellis_comm_destroy(comm)));
    });
}

TEST(ApiLife, OneThreadMakesAllRanksWithinAGroup) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  const trellis_config config = patient();
  trellis_comm comms[3] = {};
  ASSERT_TRUE(done(trellis_group_start()));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(done(trellis_comm_create(&comms[rank], 3, &id, rank, &config)));
  int rank = 0;
  EXPECT_TRUE(refused(trellis_comm_rank(comms[0], &rank), unusable, "in progress"));  // recorded until the group's end
  ASSERT_TRUE(done(trellis_group_end()));
  for (int r = 0; r < 3; ++r) EXPECT_EQ(rank_of(comms[r]), r);
  for (trellis_comm comm : comms) EXPECT_TRUE(done(trellis_comm_destroy(comm)));
}

TEST(ApiLife, AForgottenGroupMakesNothing) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  trellis_comm comm = nullptr;
  ASSERT_TRUE(done(trellis_group_start()));
  ASSERT_TRUE(done(trellis_comm_create(&comm, 2, &id, 0, nullptr)));
  ASSERT_TRUE(done(trellis_group_forget()));
  int rank = 0;
  EXPECT_TRUE(refused(trellis_comm_rank(comm, &rank), unusable, "forgotten"));
  EXPECT_TRUE(done(trellis_comm_destroy(comm)));
}

TEST(ApiLife, NobodyToldThisProcessAnythingSoItIsAlone) {
  for (const char* name : {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"})
    if (std::getenv(name) != nullptr) GTEST_SKIP() << name << " is set: something started this test as a rank";
  trellis_comm comm = nullptr;
  ASSERT_TRUE(done(trellis_comm_create_from_environment(&comm, nullptr)));
  EXPECT_EQ(ranks_of(comm), 1);
  EXPECT_EQ(sum(comm, 7), 7);
  int rank = 9, ranks = 9, local_rank = 9, local_ranks = 9;
  EXPECT_TRUE(done(trellis_launched(&rank, &ranks, &local_rank, &local_ranks)));
  EXPECT_EQ((std::vector{rank, ranks, local_rank, local_ranks}), (std::vector{0, 1, 0, 1}));
  EXPECT_TRUE(done(trellis_launched(nullptr, nullptr, nullptr, nullptr)));
  EXPECT_TRUE(done(trellis_comm_destroy(comm)));
}

TEST(ApiLife, NonblockingCommunicatorsAreMadeInTheBackground) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  const trellis_config config = patient(1);
  trellis_comm comms[2] = {};
  ASSERT_EQ(trellis_comm_create(&comms[0], 2, &id, 0, &config), TRELLIS_IN_PROGRESS);
  trellis_result state = TRELLIS_OK;
  EXPECT_TRUE(done(trellis_comm_async_error(comms[0], &state)));
  EXPECT_EQ(state, TRELLIS_IN_PROGRESS);  // rank 1 has not come
  EXPECT_TRUE(refused(trellis_barrier(comms[0], nullptr), unusable, "in progress"));
  ASSERT_EQ(trellis_comm_create(&comms[1], 2, &id, 1, &config), TRELLIS_IN_PROGRESS);
  for (trellis_comm comm : comms) EXPECT_EQ(wait_until_made(comm), TRELLIS_OK) << trellis_last_error();

  // Splitting and finalizing do not block either.
  trellis_comm halves[2] = {};
  for (int r = 0; r < 2; ++r) EXPECT_EQ(trellis_comm_split(comms[r], r, 0, nullptr, &halves[r]), TRELLIS_IN_PROGRESS);
  for (trellis_comm half : halves) {
    EXPECT_EQ(wait_until_made(half), TRELLIS_OK) << trellis_last_error();
    EXPECT_EQ(ranks_of(half), 1);
  }
  for (trellis_comm comm : comms) EXPECT_EQ(wait_until_made(comm), TRELLIS_OK);
  for (trellis_comm comm : comms) EXPECT_EQ(trellis_comm_finalize(comm), TRELLIS_IN_PROGRESS);
  for (trellis_comm comm : comms) EXPECT_EQ(wait_until_made(comm), TRELLIS_OK);
  for (trellis_comm each : {comms[0], comms[1], halves[0], halves[1]}) EXPECT_TRUE(done(trellis_comm_destroy(each)));
}

TEST(ApiLife, WhatNobodyJoinsIsGivenUpAtOnce) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  trellis_config config = patient(1);
  config.timeout_s = 100;
  trellis_comm comm = nullptr;
  ASSERT_EQ(trellis_comm_create(&comm, 2, &id, 0, &config), TRELLIS_IN_PROGRESS);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(done(trellis_comm_abort(comm)));
  EXPECT_EQ(wait_until_made(comm), TRELLIS_ABORTED);
  EXPECT_TRUE(done(trellis_comm_destroy(comm)));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

TEST(ApiLife, WhatNobodyJoinsEndsWhenItsTimeIsOver) {
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  trellis_config config = patient();
  config.timeout_s = 0.3;
  trellis_comm comm = nullptr;
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 2, &id, 0, &config), TRELLIS_PEER_LOST, "rank 1 did not join"));
  EXPECT_EQ(trellis_last_error_rank(), 1);
  EXPECT_EQ(comm, nullptr);
}

TEST(ApiLife, Split) {
  const Ranks r(4);
  r.each([](int rank, trellis_comm comm) {
    trellis_comm half = nullptr;
    ASSERT_TRUE(done(trellis_comm_split(comm, rank % 2, -rank, nullptr, &half)));
    EXPECT_EQ(ranks_of(half), 2);
    EXPECT_EQ(rank_of(half), rank < 2 ? 1 : 0);  // by key: the larger rank is first
    EXPECT_EQ(sum(half, rank), rank % 2 == 0 ? 2 : 4);
    EXPECT_TRUE(done(trellis_comm_destroy(half)));
    trellis_comm one = nullptr;
    ASSERT_TRUE(done(trellis_comm_split(comm, rank == 2 ? 5 : TRELLIS_NO_COLOR, 0, nullptr, &one)));
    EXPECT_EQ(one != nullptr, rank == 2);
    EXPECT_TRUE(done(trellis_comm_destroy(one)));
  });
}

TEST(ApiLife, OneThreadSplitsAllRanksWithinAGroup) {
  const Ranks r(3);
  trellis_comm children[3] = {};
  ASSERT_TRUE(done(trellis_group_start()));
  for (int rank = 0; rank < 3; ++rank)
    ASSERT_TRUE(done(trellis_comm_split(r[rank], rank == 1 ? TRELLIS_NO_COLOR : 0, 0, nullptr, &children[rank])));
  ASSERT_TRUE(done(trellis_group_end()));
  EXPECT_EQ(children[1], nullptr);
  EXPECT_EQ(rank_of(children[0]), 0);
  EXPECT_EQ(rank_of(children[2]), 1);
  for (trellis_comm child : children) EXPECT_TRUE(done(trellis_comm_destroy(child)));
}

TEST(ApiLife, Shrink) {
  const Ranks r(3);
  r.each([](int rank, trellis_comm comm) {
    if (rank == 1) return;
    const int excluded[] = {1};
    trellis_comm left = nullptr;
    ASSERT_TRUE(done(trellis_comm_shrink(comm, excluded, 1, nullptr, &left)));
    EXPECT_EQ(ranks_of(left), 2);
    EXPECT_EQ(sum(left, rank), 2);
    EXPECT_TRUE(done(trellis_comm_destroy(left)));
  });
}

TEST(ApiLife, Grow) {
  const Ranks r(2);
  trellis_unique_id id;
  ASSERT_TRUE(done(trellis_unique_id_create(&id)));
  const auto check = [](trellis_comm comm, int rank) {
    EXPECT_EQ(rank_of(comm), rank);
    EXPECT_EQ(sum(comm, rank + 1), 6);
    EXPECT_TRUE(done(trellis_comm_destroy(comm)));
  };
  std::jthread fresh([&] {
    trellis_comm comm = nullptr;
    ASSERT_TRUE(done(trellis_comm_grow(nullptr, 3, &id, 2, nullptr, &comm)));
    check(comm, 2);
  });
  r.each([&](int rank, trellis_comm comm) {
    trellis_comm larger = nullptr;
    ASSERT_TRUE(done(trellis_comm_grow(comm, 3, rank == 1 ? &id : nullptr, -1, nullptr, &larger)));
    check(larger, rank);
  });
}

TEST(ApiLife, GrowNeedsTheIdOfOneRank) {
  const Ranks r(2);
  r.each([&](int, trellis_comm comm) {
    trellis_comm larger = nullptr;
    EXPECT_TRUE(refused(trellis_comm_grow(comm, 3, nullptr, -1, nullptr, &larger), TRELLIS_INVALID_ARGUMENT,
                        "0 of the ranks gave an id"));
    EXPECT_EQ(larger, nullptr);
  });
}

TEST(ApiLife, AfterFinalizeThereAreNoOperations) {
  const Ranks r(2);
  r.each([](int, trellis_comm comm) {
    EXPECT_TRUE(done(trellis_comm_finalize(comm)));
    EXPECT_TRUE(refused(trellis_barrier(comm, nullptr), unusable, "finalized"));
    EXPECT_TRUE(refused(trellis_comm_finalize(comm), unusable, "finalized"));
    trellis_result state = TRELLIS_INTERNAL_ERROR;
    EXPECT_TRUE(done(trellis_comm_async_error(comm, &state)));
    EXPECT_EQ(state, TRELLIS_OK);
  });
}

TEST(ApiLife, AbortEndsWhatRunsHereAndElsewhere) {
  const Ranks r(3);
  r.each([](int rank, trellis_comm comm) {
    if (rank == 2) {
      std::this_thread::sleep_for(50ms);
      EXPECT_TRUE(done(trellis_comm_abort(comm)));
    } else {
      EXPECT_TRUE(refused(trellis_barrier(comm, nullptr), TRELLIS_ABORTED, "aborted"));
    }
    EXPECT_TRUE(refused(trellis_barrier(comm, nullptr), TRELLIS_ABORTED, "aborted"));
    trellis_result state = TRELLIS_OK;
    EXPECT_TRUE(done(trellis_comm_async_error(comm, &state)));
    EXPECT_EQ(state, TRELLIS_ABORTED);
  });
}

TEST(ApiLife, AfterAnAbortEverywhereRanksDivideAnew) {
  const Ranks r(3);
  r.each([](int, trellis_comm comm) { EXPECT_TRUE(done(trellis_comm_abort(comm))); });
  r.each([](int rank, trellis_comm comm) {
    trellis_comm child = nullptr;
    ASSERT_TRUE(done(trellis_comm_split(comm, 0, 0, nullptr, &child)));
    EXPECT_EQ(sum(child, rank), 3);
    EXPECT_TRUE(done(trellis_comm_destroy(child)));
  });
}

TEST(ApiLife, RanksThatCallDifferentThingsAreNamed) {
  const Ranks r(2);
  r.each([](int rank, trellis_comm comm) {
    std::vector<float> in(8), out(8);
    const std::size_t count = rank == 0 ? 8 : 4;
    const trellis_result result =
        trellis_all_reduce(comm, in.data(), out.data(), count, TRELLIS_F32, TRELLIS_SUM, nullptr);
    // The rank that finds the mismatch first aborts the other, which gets that error unless it has found the mismatch
    // as well.
    EXPECT_TRUE(result == TRELLIS_MISMATCH || result == TRELLIS_ABORTED) << trellis_last_error();
    if (result == TRELLIS_MISMATCH) {
      EXPECT_EQ(trellis_last_error_rank(), 1 - rank);
    }
  });
}

TEST(ApiLife, WhoNeverComesIsNamed) {
  const Ranks r(2, 6);  // seconds: also the time in which both have to join
  r.each([](int rank, trellis_comm comm) {
    if (rank == 1) return;
    EXPECT_TRUE(refused(trellis_barrier(comm, nullptr), TRELLIS_PEER_LOST, "rank 1"));
    EXPECT_EQ(trellis_last_error_rank(), 1);
  });
}

TEST(ApiLife, AFailureOnAStreamIsToldByTheStreamAndTheCommunicator) {
  const Ranks r(2, 6);  // seconds: also the time in which both have to join
  r.each([](int rank, trellis_comm comm) {
    if (rank == 1) return;
    trellis_stream stream = nullptr;
    ASSERT_TRUE(done(trellis_stream_create(&stream)));
    EXPECT_TRUE(done(trellis_barrier(comm, stream)));
    EXPECT_TRUE(refused(trellis_stream_synchronize(stream), TRELLIS_PEER_LOST, "rank 1"));
    trellis_result state = TRELLIS_OK;
    EXPECT_TRUE(done(trellis_comm_async_error(comm, &state)));
    EXPECT_EQ(state, TRELLIS_PEER_LOST);
    EXPECT_TRUE(done(trellis_stream_destroy(stream)));
  });
}

}  // namespace
}  // namespace trellis::ccl
