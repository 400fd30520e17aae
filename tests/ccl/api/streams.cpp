// Failures on a stream, which no call of the program can return.
#include <string>
#include <thread>

#include "tests/ccl/api/ranks.h"

namespace trellis::ccl {
namespace {

constexpr auto bad = TRELLIS_INVALID_ARGUMENT;

struct Stream {
  Stream() { EXPECT_TRUE(done(trellis_stream_create(&stream))); }
  ~Stream() { trellis_stream_destroy(stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator trellis_stream() const { return stream; }
  trellis_stream stream = nullptr;
};

trellis_result state_of(trellis_comm comm) {
  trellis_result state = TRELLIS_RESULTS;
  EXPECT_TRUE(done(trellis_comm_async_error(comm, &state)));
  return state;
}

// Whether swing can serve a call is found when the first one is planned; it can't serve three ranks.
trellis_config for_an_even_number() {
  trellis_config config = Ranks::patient_for(20);
  config.algorithm = "all_reduce=swing";
  return config;
}
constexpr const char* why = "swing was asked for, but can't serve";

TEST(ApiStreams, WhatCannotBeBegunEndsTheCommunicator) {
  const Ranks r(3, for_an_even_number());
  float in = 1, out[3] = {};
  r.each([&](int rank, trellis_comm comm) {
    const Stream stream;
    EXPECT_TRUE(done(trellis_all_reduce(comm, &in, &out[rank], 1, TRELLIS_F32, TRELLIS_SUM, stream)));
    EXPECT_TRUE(refused(trellis_stream_synchronize(stream), bad, why));
    trellis_note_failure(bad, "something else");
    EXPECT_EQ(state_of(comm), bad);
    EXPECT_NE(std::string(trellis_last_error()).find(why), std::string::npos);
    EXPECT_TRUE(refused(trellis_barrier(comm, nullptr), bad, why));
  });
}

TEST(ApiStreams, WhatCannotBeBegunEndsAllOfItsGroup) {
  const Ranks r(3, for_an_even_number()), other(2);
  const Stream stream;
  float in = 1, out[5] = {};
  ASSERT_TRUE(done(trellis_group_start()));
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_TRUE(done(trellis_all_reduce(r[rank], &in, &out[rank], 1, TRELLIS_F32, TRELLIS_SUM, stream)));
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(done(trellis_all_reduce(other[rank], &in, &out[3 + rank], 1, TRELLIS_F32, TRELLIS_SUM, stream)));
  EXPECT_TRUE(done(trellis_group_end()));
  EXPECT_TRUE(refused(trellis_stream_synchronize(stream), bad, why));
  for (trellis_comm comm : {r[0], r[1], r[2], other[0], other[1]}) EXPECT_EQ(state_of(comm), bad);
  for (float each : out) EXPECT_EQ(each, 0);
}

// Without a stream, the call itself returns the error, and the communicator stays usable.
TEST(ApiStreams, WhatCannotBeBegunWithoutOneLeavesTheCommunicator) {
  const Ranks r(3, for_an_even_number());
  float in = 1, out = 0;
  EXPECT_TRUE(refused(trellis_all_reduce(r[0], &in, &out, 1, TRELLIS_F32, TRELLIS_SUM, nullptr), bad, why));
  EXPECT_EQ(state_of(r[0]), TRELLIS_OK);
}

TEST(ApiStreams, MessagesToOneselfThatDoNotFitAreRefusedBeforeTheStreamRunsThem) {
  const Ranks one(1);
  const Stream stream;
  float in[8] = {}, out[8] = {};
  ASSERT_TRUE(done(trellis_group_start()));
  EXPECT_TRUE(done(trellis_send(one[0], in, 8, TRELLIS_F32, 0, stream)));
  EXPECT_TRUE(done(trellis_recv(one[0], out, 4, TRELLIS_F32, 0, stream)));
  EXPECT_TRUE(refused(trellis_group_end(), bad, "sends itself 8 f32 where it receives 4"));
  EXPECT_TRUE(done(trellis_stream_synchronize(stream)));
  EXPECT_EQ(state_of(one[0]), TRELLIS_OK);
  EXPECT_TRUE(refused(trellis_recv(one[0], nullptr, 1, TRELLIS_F32, 0, stream), bad, "recv: 1 elements at null"));
}

// Callbacks that note what became of a piece of work on a stream: 'a' if it ran, 'x' if it was dropped.
void ran(void* said) { static_cast<std::string*>(said)->push_back('a'); }
void dropped(void* said) { static_cast<std::string*>(said)->push_back('x'); }

TEST(ApiStreams, WhatIsDroppedIsTold) {
  const Ranks r(2);
  const Stream stream;
  float in = 1, out = 0;
  std::string said;
  EXPECT_TRUE(done(trellis_stream_call_or(stream, ran, dropped, &said)));
  EXPECT_TRUE(done(trellis_all_reduce(r[0], &in, &out, 1, TRELLIS_F32, TRELLIS_SUM, stream)));
  EXPECT_TRUE(done(trellis_stream_call_or(stream, ran, dropped, &said)));
  EXPECT_TRUE(done(trellis_comm_abort(r[0])));
  trellis_result state = TRELLIS_IN_PROGRESS;
  while (state == TRELLIS_IN_PROGRESS) state = trellis_stream_query(stream);
  EXPECT_TRUE(refused(state, TRELLIS_ABORTED, "aborted"));
  EXPECT_EQ(said, "ax");
  EXPECT_TRUE(done(trellis_stream_query(stream)));  // the failure is reported once
  EXPECT_TRUE(done(trellis_stream_call_or(nullptr, ran, dropped, &said)));
  EXPECT_EQ(said, "axa");
  EXPECT_TRUE(refused(trellis_stream_call_or(stream, nullptr, dropped, &said), bad, "work is NULL"));
  EXPECT_TRUE(refused(trellis_stream_call_or(stream, ran, nullptr, &said), bad, "dropped is NULL"));
}

TEST(ApiStreams, ThereAreDefaultStreamsWhenSomebodyUsesThem) {
  trellis_stream all = nullptr, again = nullptr, other = nullptr, mine = nullptr;
  EXPECT_TRUE(done(trellis_default_stream(0, &all)));
  EXPECT_EQ(all, nullptr);
  EXPECT_TRUE(done(trellis_default_streams_use()));
  EXPECT_TRUE(done(trellis_default_stream(0, &all)));
  EXPECT_TRUE(done(trellis_default_stream(0, &again)));
  EXPECT_TRUE(done(trellis_default_stream(7, &other)));
  EXPECT_NE(all, nullptr);
  EXPECT_EQ(all, again);
  EXPECT_NE(all, other);
  EXPECT_TRUE(done(trellis_thread_stream(0, &mine)));
  EXPECT_TRUE(done(trellis_thread_stream(0, &again)));
  EXPECT_EQ(mine, again);
  std::jthread([&] {
    EXPECT_TRUE(done(trellis_thread_stream(0, &again)));
    EXPECT_NE(mine, again);
  }).join();
  std::jthread([&] {
    EXPECT_TRUE(done(trellis_thread_stream(0, &other)));
    EXPECT_EQ(other, again);  // the stream of the thread that has ended is used again
  }).join();
  EXPECT_TRUE(refused(trellis_default_stream(-1, &all), bad, "number -1"));
  EXPECT_TRUE(refused(trellis_thread_stream(-1, &all), bad, "number -1"));
  EXPECT_TRUE(refused(trellis_ordered_stream_create(-1, &all), bad, "number -1"));
  EXPECT_TRUE(refused(trellis_default_stream(0, nullptr), bad, "stream is NULL"));
}

TEST(ApiStreams, AThreadsFailuresAreNotToldToTheNextOne) {
  std::string said;
  std::jthread([&] {
    const Ranks r(2);
    trellis_stream mine = nullptr;
    trellis_event end = nullptr;
    float in = 1, out = 0;
    EXPECT_TRUE(done(trellis_thread_stream(5, &mine)));
    EXPECT_TRUE(done(trellis_all_reduce(r[0], &in, &out, 1, TRELLIS_F32, TRELLIS_SUM, mine)));
    EXPECT_TRUE(done(trellis_event_create(&end)));
    EXPECT_TRUE(done(trellis_event_record(end, mine)));
    EXPECT_TRUE(done(trellis_comm_abort(r[0])));
    EXPECT_TRUE(done(trellis_event_synchronize(end)));
    EXPECT_TRUE(done(trellis_event_destroy(end)));
  }).join();
  std::jthread([&] {
    trellis_stream mine = nullptr;
    EXPECT_TRUE(done(trellis_thread_stream(5, &mine)));
    EXPECT_TRUE(done(trellis_stream_call_or(mine, ran, dropped, &said)));
    EXPECT_TRUE(done(trellis_stream_synchronize(mine)));
    EXPECT_EQ(said, "a");
  }).join();
}

TEST(ApiStreams, AStreamThatItsThreadDestroyedIsNotGivenToTheNextOne) {
  std::jthread([] {
    trellis_stream mine = nullptr;
    EXPECT_TRUE(done(trellis_thread_stream(6, &mine)));
    EXPECT_TRUE(done(trellis_stream_destroy(mine)));
  }).join();
  std::jthread([] {
    trellis_stream mine = nullptr;
    EXPECT_TRUE(done(trellis_thread_stream(6, &mine)));
    EXPECT_TRUE(done(trellis_stream_synchronize(mine)));
  }).join();
}

}  // namespace
}  // namespace trellis::ccl
