// Memory, streams, events, types and numbers of the C API.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/reduce/reduce.h"
#include "kernels/types/dtype.h"
#include "schedule/collective.h"
#include "tests/ccl/api/ranks.h"

namespace trellis::ccl {
namespace {

TEST(ApiDevice, MemoryIsAlignedCountedAndGivenBackOnce) {
  std::size_t before = 0, during = 0, after = 0;
  ASSERT_TRUE(done(trellis_allocated_bytes(&before)));
  void* memory = nullptr;
  ASSERT_TRUE(done(trellis_alloc(&memory, 5000)));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
  std::memset(memory, 7, 5000);
  ASSERT_TRUE(done(trellis_allocated_bytes(&during)));
  EXPECT_GE(during, before + 5000);
  EXPECT_TRUE(refused(trellis_free(static_cast<char*>(memory) + 1), TRELLIS_INVALID_ARGUMENT, "was not allocated"));
  EXPECT_TRUE(done(trellis_free(memory)));
  EXPECT_TRUE(refused(trellis_free(memory), TRELLIS_INVALID_ARGUMENT, "was not allocated"));
  ASSERT_TRUE(done(trellis_allocated_bytes(&after)));
  EXPECT_EQ(after, before);
  EXPECT_TRUE(done(trellis_free(nullptr)));
  EXPECT_TRUE(refused(trellis_alloc(&memory, SIZE_MAX), TRELLIS_OUT_OF_MEMORY, "out of memory"));
  EXPECT_EQ(memory, nullptr);
  ASSERT_TRUE(done(trellis_alloc(&memory, 0)));
  EXPECT_TRUE(done(trellis_free(memory)));
}

TEST(ApiDevice, MemoryOfAFunctionIsFreedInItsNameOnly) {
  void *mine = nullptr, *others = nullptr;
  ASSERT_TRUE(done(trellis_alloc(&mine, 1)));
  ASSERT_TRUE(done(trellis_alloc_by("another", &others, 1)));
  EXPECT_TRUE(refused(trellis_free(others), TRELLIS_INVALID_ARGUMENT, "was not allocated by trellis_alloc"));
  EXPECT_TRUE(refused(trellis_free_by("another", mine), TRELLIS_INVALID_ARGUMENT, "was not allocated by another"));
  EXPECT_TRUE(done(trellis_free_by("another", others)));
  EXPECT_TRUE(done(trellis_free(mine)));
  EXPECT_TRUE(refused(trellis_alloc_by("", &mine, 1), TRELLIS_INVALID_ARGUMENT, "function is empty"));
  EXPECT_TRUE(refused(trellis_free_by(nullptr, nullptr), TRELLIS_INVALID_ARGUMENT, "function is NULL"));
}

TEST(ApiDevice, OneThatIsNotHereIsAnArgumentThatIsNotAccepted) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, in which no device is open
  EXPECT_EXIT(
      {
        setenv("TRELLIS_DEVICE", "neuron", 1);              // NOLINT(concurrency-mt-unsafe): before any other thread
        setenv("TRELLIS_LIBNRT", "/nowhere/libnrt.so", 1);  // NOLINT(concurrency-mt-unsafe)
        const char* name = nullptr;
        const trellis_result result = trellis_device_name(&name);
        std::fputs(trellis_last_error(), stderr);
        _exit(result);
      },
      testing::ExitedWithCode(TRELLIS_INVALID_ARGUMENT), "library cannot be opened .*/nowhere/libnrt.so");
}

TEST(ApiDevice, AStreamsOwnWorkCannotWaitForIt) {
  struct Asked {
    trellis_stream stream = nullptr;
    trellis_result waited = TRELLIS_OK, destroyed = TRELLIS_OK;
    int inside = -1;
  } asked;
  ASSERT_TRUE(done(trellis_stream_create(&asked.stream)));
  ASSERT_TRUE(done(trellis_stream_call(
      asked.stream,
      [](void* a) {
        auto& here = *static_cast<Asked*>(a);
        here.waited = trellis_stream_synchronize(here.stream);
        here.destroyed = trellis_stream_destroy(here.stream);
        trellis_stream_work(&here.inside);
      },
      &asked)));
  EXPECT_TRUE(done(trellis_stream_synchronize(asked.stream)));
  EXPECT_EQ(asked.waited, TRELLIS_INVALID_USAGE);
  EXPECT_EQ(asked.destroyed, TRELLIS_INVALID_USAGE);
  EXPECT_EQ(asked.inside, 1);
  EXPECT_TRUE(done(trellis_stream_work(&asked.inside)));
  EXPECT_EQ(asked.inside, 0);
  EXPECT_TRUE(done(trellis_stream_destroy(asked.stream)));
}

TEST(ApiDevice, RegistrationsAreCountedAndEndOnce) {
  const Ranks r(2);
  std::vector<float> data(10'000);
  std::size_t bytes = 1, readable = 1;
  ASSERT_TRUE(done(trellis_comm_registered_bytes(r[0], &bytes, &readable)));
  EXPECT_EQ(bytes + readable, 0u);
  trellis_registration one = nullptr, two = nullptr;
  ASSERT_TRUE(done(trellis_comm_register(r[0], data.data(), 40'000, &one)));
  ASSERT_TRUE(done(trellis_comm_register(r[0], data.data(), 400, &two)));
  ASSERT_TRUE(done(trellis_comm_registered_bytes(r[0], &bytes, &readable)));
  EXPECT_EQ(bytes, 40'400u);
  EXPECT_GE(readable, 8 * 4096u) << "its whole pages";
  EXPECT_LE(readable, 40'000u);
  EXPECT_TRUE(done(trellis_comm_deregister(r[0], one)));
  EXPECT_TRUE(refused(trellis_comm_deregister(r[0], one), TRELLIS_INVALID_ARGUMENT, "deregistered"));
  EXPECT_TRUE(refused(trellis_comm_deregister(r[1], two), TRELLIS_INVALID_ARGUMENT, "of this communicator"));
  ASSERT_TRUE(done(trellis_comm_registered_bytes(r[0], &bytes, nullptr)));
  EXPECT_EQ(bytes, 400u);
  EXPECT_TRUE(refused(trellis_comm_register(r[0], nullptr, 8, &one), TRELLIS_INVALID_ARGUMENT, "data is NULL"));
  EXPECT_TRUE(refused(trellis_comm_register(r[0], data.data(), 0, &one), TRELLIS_INVALID_ARGUMENT, "0 bytes"));
  EXPECT_TRUE(
      refused(trellis_comm_register(r[0], data.data(), 8, nullptr), TRELLIS_INVALID_ARGUMENT, "registration is NULL"));
  EXPECT_TRUE(refused(trellis_comm_register(nullptr, data.data(), 8, &one), TRELLIS_INVALID_ARGUMENT, "is NULL"));
  EXPECT_EQ(one, nullptr);
}

TEST(ApiDevice, AStreamDoesItsWorkInOrder) {
  trellis_stream stream = nullptr;
  ASSERT_TRUE(done(trellis_stream_create(&stream)));
  std::atomic<bool> open = false;
  const auto wait = [](void* flag) {
    while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
  };
  int a = 1, b = 0, c = 0;
  EXPECT_TRUE(done(trellis_stream_call(stream, wait, &open)));
  EXPECT_TRUE(done(trellis_copy(&b, &a, sizeof a, stream)));
  EXPECT_TRUE(done(trellis_copy(&c, &b, sizeof b, stream)));
  EXPECT_EQ(trellis_stream_query(stream), TRELLIS_IN_PROGRESS);
  open = true;
  EXPECT_TRUE(done(trellis_stream_synchronize(stream)));
  EXPECT_EQ(trellis_stream_query(stream), TRELLIS_OK);
  EXPECT_EQ(c, 1);
  EXPECT_TRUE(done(trellis_copy(&a, nullptr, 0, stream)));
  EXPECT_TRUE(refused(trellis_copy(&a, nullptr, 4, stream), TRELLIS_INVALID_ARGUMENT, "from is NULL"));
  EXPECT_TRUE(refused(trellis_copy(nullptr, &a, 4, nullptr), TRELLIS_INVALID_ARGUMENT, "to is NULL"));
  EXPECT_TRUE(done(trellis_stream_destroy(stream)));
}

TEST(ApiDevice, WithoutAStreamWorkIsDoneAtOnce) {
  int a = 4, b = 0;
  EXPECT_TRUE(done(trellis_copy(&b, &a, sizeof a, nullptr)));
  EXPECT_EQ(b, 4);
  EXPECT_TRUE(done(trellis_stream_call(
      nullptr, [](void* n) { ++*static_cast<int*>(n); }, &b)));
  EXPECT_EQ(b, 5);
  EXPECT_TRUE(done(trellis_stream_synchronize(nullptr)));
  EXPECT_TRUE(done(trellis_stream_query(nullptr)));
}

TEST(ApiDevice, AnEventOrdersTwoStreams) {
  trellis_stream first = nullptr, second = nullptr;
  trellis_event event = nullptr;
  ASSERT_TRUE(done(trellis_stream_create(&first)));
  ASSERT_TRUE(done(trellis_stream_create(&second)));
  ASSERT_TRUE(done(trellis_event_create(&event)));
  EXPECT_TRUE(done(trellis_event_query(event)));
  std::atomic<bool> open = false;
  int a = 9, b = 0, c = 0;
  EXPECT_TRUE(done(trellis_stream_call(
      first,
      [](void* flag) {
        while (!*static_cast<std::atomic<bool>*>(flag)) std::this_thread::yield();
      },
      &open)));
  EXPECT_TRUE(done(trellis_copy(&b, &a, sizeof a, first)));
  EXPECT_TRUE(done(trellis_event_record(event, first)));
  EXPECT_TRUE(done(trellis_stream_wait(second, event)));
  EXPECT_TRUE(done(trellis_copy(&c, &b, sizeof b, second)));
  EXPECT_EQ(trellis_event_query(event), TRELLIS_IN_PROGRESS);
  open = true;
  EXPECT_TRUE(done(trellis_event_synchronize(event)));
  EXPECT_TRUE(done(trellis_event_query(event)));
  EXPECT_TRUE(done(trellis_stream_synchronize(second)));
  EXPECT_EQ(c, 9);
  EXPECT_TRUE(done(trellis_event_destroy(event)));
  EXPECT_TRUE(done(trellis_stream_destroy(first)));
  EXPECT_TRUE(done(trellis_stream_destroy(second)));
}

// Compiled programs contain these numbers, so they must never change.
TEST(ApiNumbers, NeverChange) {
  EXPECT_EQ(TRELLIS_TYPES, 17);
  const char* const types[] = {"f64", "f32", "tf32", "f16", "bf16", "f8e3m4", "f8e4m3", "f8e4m3fn", "f8e5m2",
                               "i8",  "u8",  "i16",  "u16", "i32",  "u32",    "i64",    "u64"};
  for (int t = 0; t < TRELLIS_TYPES; ++t) {
    EXPECT_STREQ(trellis_type_name(t), types[t]);
    EXPECT_EQ(trellis_type_size(t), kernels::size_of(kernels::dtype_named(types[t])));
  }
  const char* const reductions[] = {"sum", "prod", "min", "max", "avg", "scaled_sum"};
  for (int r = 0; r < TRELLIS_REDUCTIONS; ++r) EXPECT_STREQ(trellis_reduction_name(r), reductions[r]);
  EXPECT_EQ(static_cast<std::size_t>(TRELLIS_COLLECTIVES), schedule::collectives().size());
  EXPECT_STREQ(trellis_collective_name(TRELLIS_BARRIER), "barrier");
  for (int bad : {-1, 1000}) {
    EXPECT_EQ(trellis_type_size(bad), 0u);
    EXPECT_EQ(trellis_type_name(bad), nullptr);
    EXPECT_EQ(trellis_reduction_name(bad), nullptr);
    EXPECT_EQ(trellis_collective_name(bad), nullptr);
    EXPECT_STREQ(trellis_result_text(bad), "no result of this library");
  }
  EXPECT_EQ(TRELLIS_PEER_LOST, 4);
  EXPECT_STREQ(trellis_result_text(TRELLIS_PEER_LOST), "a peer was lost");
  for (int r = 0; r < TRELLIS_RESULTS; ++r) EXPECT_STRNE(trellis_result_text(r), "no result of this library");
  EXPECT_EQ(trellis_version(), 10000);
  EXPECT_EQ(sizeof(trellis_config), 96u);
  EXPECT_EQ(sizeof(trellis_call), 88u);
}

TEST(ApiNumbers, ElementsBecomeDoublesAndBack) {
  for (int type = 0; type < TRELLIS_TYPES; ++type) {
    SCOPED_TRACE(trellis_type_name(type));
    unsigned char element[8] = {};
    double value = 0;
    EXPECT_TRUE(done(trellis_type_store(type, element, 3)));
    EXPECT_TRUE(done(trellis_type_load(type, element, &value)));
    EXPECT_EQ(value, 3);
  }
  double value = 0;
  EXPECT_TRUE(refused(trellis_type_load(40, &value, &value), TRELLIS_INVALID_ARGUMENT, "type 40"));
  EXPECT_TRUE(refused(trellis_type_store(-2, &value, 1), TRELLIS_INVALID_ARGUMENT, "type -2"));
}

TEST(ApiNumbers, TheConfigOfTheEnvironmentIsOneThatCanBeUsed) {
  trellis_config config;
  ASSERT_TRUE(done(trellis_config_from_environment(&config)));
  EXPECT_GT(config.timeout_s, 0);
  EXPECT_NE(config.rounding, nullptr);
  trellis_comm comm = nullptr;
  EXPECT_TRUE(done(trellis_comm_create_all(&comm, 1, &config)));
  EXPECT_TRUE(done(trellis_comm_destroy(comm)));
}

}  // namespace
}  // namespace trellis::ccl
