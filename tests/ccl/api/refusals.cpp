// What the C API refuses, and that its messages name the value at fault.
#include <cmath>
#include <cstring>

#include "tests/ccl/api/ranks.h"

namespace trellis::ccl {
namespace {

constexpr auto bad = TRELLIS_INVALID_ARGUMENT;

// Calls of all functions that take a communicator, in which everything but the communicator is right.
std::vector<std::pair<const char*, std::function<trellis_result(trellis_comm)>>> calls_on_a_communicator() {
  static float in[8], out[8];
  static const std::size_t counts[] = {1, 1};
  static int number;
  static std::size_t bytes;
  static std::uint64_t operations;
  static const char* text;
  static char name[32];
  static trellis_result state;
  static trellis_comm child;
  static trellis_call call = TRELLIS_CALL_INIT;
  call.in = in;
  call.out = out;
  call.count = 1;
  const auto f = TRELLIS_F32;
  const auto s = TRELLIS_SUM;
  return {
      {"all_reduce", [=](auto c) { return trellis_all_reduce(c, in, out, 1, f, s, nullptr); }},
      {"reduce_scatter", [=](auto c) { return trellis_reduce_scatter(c, in, out, 1, f, s, nullptr); }},
      {"all_gather", [=](auto c) { return trellis_all_gather(c, in, out, 1, f, nullptr); }},
      {"broadcast", [=](auto c) { return trellis_broadcast(c, in, out, 1, f, 0, nullptr); }},
      {"reduce", [=](auto c) { return trellis_reduce(c, in, out, 1, f, s, 0, nullptr); }},
      {"gather", [=](auto c) { return trellis_gather(c, in, out, 1, f, 0, nullptr); }},
      {"scatter", [=](auto c) { return trellis_scatter(c, in, out, 1, f, 0, nullptr); }},
      {"all_to_all", [=](auto c) { return trellis_all_to_all(c, in, out, 1, f, nullptr); }},
      {"all_gather_v", [=](auto c) { return trellis_all_gather_v(c, in, out, counts, f, nullptr); }},
      {"reduce_scatter_v", [=](auto c) { return trellis_reduce_scatter_v(c, in, out, counts, f, s, nullptr); }},
      {"all_to_all_v", [=](auto c) { return trellis_all_to_all_v(c, in, out, counts, counts, f, nullptr); }},
      {"barrier", [=](auto c) { return trellis_barrier(c, nullptr); }},
      {"send", [=](auto c) { return trellis_send(c, in, 1, f, 0, nullptr); }},
      {"recv", [=](auto c) { return trellis_recv(c, out, 1, f, 0, nullptr); }},
      {"run", [=](auto c) { return trellis_run(c, &call, nullptr); }},
      {"run_schedule", [=](auto c) { return trellis_run_schedule(c, &call, "", nullptr); }},
      {"algorithm", [=](auto c) { return trellis_algorithm(c, &call, name, sizeof name); }},
      {"split", [=](auto c) { return trellis_comm_split(c, 0, 0, nullptr, &child); }},
      {"shrink", [=](auto c) { return trellis_comm_shrink(c, nullptr, 0, nullptr, &child); }},
      {"finalize", [=](auto c) { return trellis_comm_finalize(c); }},
      {"abort", [=](auto c) { return trellis_comm_abort(c); }},
      {"async_error", [=](auto c) { return trellis_comm_async_error(c, &state); }},
      {"rank", [=](auto c) { return trellis_comm_rank(c, &number); }},
      {"ranks", [=](auto c) { return trellis_comm_ranks(c, &number); }},
      {"transport", [=](auto c) { return trellis_comm_transport(c, &text); }},
      {"memory_bytes", [=](auto c) { return trellis_comm_memory_bytes(c, &bytes); }},
      {"operations", [=](auto c) { return trellis_comm_operations(c, &operations); }},
  };
}

TEST(ApiRefuses, HandlesThatAreNone) {
  trellis_comm gone = nullptr;
  ASSERT_TRUE(done(trellis_comm_create_all(&gone, 1, nullptr)));
  ASSERT_TRUE(done(trellis_comm_destroy(gone)));
  int elsewhere = 0;
  for (const auto& [name, call] : calls_on_a_communicator()) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(refused(call(nullptr), bad, "communicator is NULL"));
    EXPECT_TRUE(refused(call(gone), bad, "no communicator, or one that was destroyed"));
    EXPECT_TRUE(refused(call(reinterpret_cast<trellis_comm>(&elsewhere)), bad, "no communicator"));
  }
  EXPECT_TRUE(refused(trellis_comm_destroy(gone), bad, "destroyed"));
  EXPECT_TRUE(done(trellis_comm_destroy(nullptr)));
  trellis_comm grown = nullptr;
  EXPECT_TRUE(refused(trellis_comm_grow(gone, 2, nullptr, -1, nullptr, &grown), bad, "destroyed"));
}

TEST(ApiRefuses, StreamsAndEventsThatAreNone) {
  trellis_stream stream = nullptr;
  trellis_event event = nullptr;
  ASSERT_TRUE(done(trellis_stream_create(&stream)));
  ASSERT_TRUE(done(trellis_event_create(&event)));
  // A handle of one kind is refused where a handle of another kind is expected.
  EXPECT_TRUE(refused(trellis_stream_synchronize(reinterpret_cast<trellis_stream>(event)), bad, "no stream"));
  EXPECT_TRUE(refused(trellis_event_query(reinterpret_cast<trellis_event>(stream)), bad, "no event"));
  ASSERT_TRUE(done(trellis_stream_destroy(stream)));
  ASSERT_TRUE(done(trellis_event_destroy(event)));
  char a[8] = {}, b[8] = {};
  const Ranks one(1);
  EXPECT_TRUE(refused(trellis_stream_destroy(stream), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_stream_synchronize(stream), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_stream_query(stream), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_stream_call(
                          stream, [](void*) {}, nullptr),
                      bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_copy(a, b, 8, stream), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_barrier(one[0], stream), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_event_destroy(event), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_event_record(event, nullptr), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_event_query(event), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_event_synchronize(event), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_stream_wait(nullptr, event), bad, "destroyed"));
  EXPECT_TRUE(refused(trellis_event_query(nullptr), bad, "event is NULL"));
  EXPECT_TRUE(done(trellis_stream_destroy(nullptr)));
  EXPECT_TRUE(done(trellis_event_destroy(nullptr)));
}

TEST(ApiRefuses, NullResults) {
  const Ranks one(1);
  EXPECT_TRUE(refused(trellis_unique_id_create(nullptr), bad, "id is NULL"));
  EXPECT_TRUE(refused(trellis_comm_rank(one[0], nullptr), bad, "rank is NULL"));
  EXPECT_TRUE(refused(trellis_comm_ranks(one[0], nullptr), bad, "ranks is NULL"));
  EXPECT_TRUE(refused(trellis_comm_transport(one[0], nullptr), bad, "name is NULL"));
  EXPECT_TRUE(refused(trellis_comm_memory_bytes(one[0], nullptr), bad, "bytes is NULL"));
  EXPECT_TRUE(refused(trellis_comm_operations(one[0], nullptr), bad, "operations is NULL"));
  EXPECT_TRUE(refused(trellis_comm_async_error(one[0], nullptr), bad, "state is NULL"));
  EXPECT_TRUE(refused(trellis_comm_split(one[0], 0, 0, nullptr, nullptr), bad, "child is NULL"));
  EXPECT_TRUE(refused(trellis_comm_shrink(one[0], nullptr, 0, nullptr, nullptr), bad, "child is NULL"));
  EXPECT_TRUE(refused(trellis_comm_grow(one[0], 2, nullptr, -1, nullptr, nullptr), bad, "child is NULL"));
  EXPECT_TRUE(refused(trellis_comm_create_all(nullptr, 1, nullptr), bad, "comms is NULL"));
  EXPECT_TRUE(refused(trellis_comm_create_from_environment(nullptr, nullptr), bad, "comm is NULL"));
  EXPECT_TRUE(refused(trellis_alloc(nullptr, 1), bad, "memory is NULL"));
  EXPECT_TRUE(refused(trellis_allocated_bytes(nullptr), bad, "bytes is NULL"));
  EXPECT_TRUE(refused(trellis_device_name(nullptr), bad, "name is NULL"));
  EXPECT_TRUE(refused(trellis_device_time(nullptr), bad, "picoseconds is NULL"));
  EXPECT_TRUE(refused(trellis_stream_create(nullptr), bad, "stream is NULL"));
  EXPECT_TRUE(refused(trellis_event_create(nullptr), bad, "event is NULL"));
  EXPECT_TRUE(refused(trellis_stream_call(nullptr, nullptr, nullptr), bad, "work is NULL"));
  EXPECT_TRUE(refused(trellis_config_from_environment(nullptr), bad, "config is NULL"));
  EXPECT_TRUE(refused(trellis_run(one[0], nullptr, nullptr), bad, "call is NULL"));
  const trellis_call call = TRELLIS_CALL_INIT;
  EXPECT_TRUE(refused(trellis_run_schedule(one[0], &call, nullptr, nullptr), bad, "schedule is NULL"));
  EXPECT_TRUE(refused(trellis_algorithm(one[0], &call, nullptr, 9), bad, "text is NULL"));
  double value = 0;
  EXPECT_TRUE(refused(trellis_type_load(TRELLIS_F32, nullptr, &value), bad, "element is NULL"));
  EXPECT_TRUE(refused(trellis_type_load(TRELLIS_F32, &value, nullptr), bad, "value is NULL"));
  EXPECT_TRUE(refused(trellis_type_store(TRELLIS_F32, nullptr, 1), bad, "element is NULL"));
}

TEST(ApiRefuses, NumbersThatAreNone) {
  const Ranks one(1);
  float in[4] = {}, out[4] = {};
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, out, 1, 99, TRELLIS_SUM, nullptr), bad, "type 99"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, out, 1, -1, TRELLIS_SUM, nullptr), bad, "type -1"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, out, 1, TRELLIS_F32, 77, nullptr), bad, "reduction 77"));
  EXPECT_TRUE(
      refused(trellis_all_reduce(one[0], in, out, 1, TRELLIS_F32, TRELLIS_SCALED_SUM, nullptr), bad, "trellis_run"));
  EXPECT_TRUE(refused(trellis_broadcast(one[0], in, out, 1, TRELLIS_F32, 5, nullptr), bad, "root 5"));
  EXPECT_TRUE(refused(trellis_reduce(one[0], in, out, 1, TRELLIS_F32, TRELLIS_SUM, -3, nullptr), bad, "root -3"));
  EXPECT_TRUE(refused(trellis_send(one[0], in, 1, TRELLIS_F32, 8, nullptr), bad, "send: peer 8"));
  EXPECT_TRUE(refused(trellis_recv(one[0], out, 1, TRELLIS_F32, -8, nullptr), bad, "recv: peer -8"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], nullptr, out, 1, TRELLIS_F32, TRELLIS_SUM, nullptr), bad, "null"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, nullptr, 1, TRELLIS_F32, TRELLIS_SUM, nullptr), bad, "null"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, out, SIZE_MAX, TRELLIS_F32, TRELLIS_SUM, nullptr), bad,
                      "18446744073709551615"));
  EXPECT_TRUE(refused(trellis_all_reduce(one[0], in, in + 1, 2, TRELLIS_F32, TRELLIS_SUM, nullptr), bad, "overlap"));
  EXPECT_TRUE(refused(trellis_all_gather_v(one[0], in, out, nullptr, TRELLIS_F32, nullptr), bad, "counts is NULL"));
  const std::size_t one_count = 1;
  EXPECT_TRUE(refused(trellis_all_to_all_v(one[0], in, out, &one_count, nullptr, TRELLIS_F32, nullptr), bad,
                      "arriving_counts is NULL"));
  EXPECT_TRUE(refused(trellis_comm_split(one[0], -7, 0, nullptr, nullptr), bad, "child"));
  trellis_comm child = nullptr;
  EXPECT_TRUE(refused(trellis_comm_split(one[0], -7, 0, nullptr, &child), bad, "color -7"));
  const int excluded[] = {4};
  EXPECT_TRUE(refused(trellis_comm_shrink(one[0], excluded, 1, nullptr, &child), bad, "rank 4"));
  EXPECT_TRUE(refused(trellis_comm_shrink(one[0], excluded, -1, nullptr, &child), bad, "-1"));
  EXPECT_TRUE(refused(trellis_comm_shrink(one[0], nullptr, 1, nullptr, &child), bad, "excluded is NULL"));
  EXPECT_TRUE(refused(trellis_comm_grow(one[0], 1, nullptr, -1, nullptr, &child), bad, "1 ranks"));
  EXPECT_TRUE(refused(trellis_comm_grow(one[0], 2, nullptr, 1, nullptr, &child), bad, "rank 1"));
  EXPECT_TRUE(refused(trellis_comm_grow(nullptr, 2, nullptr, 1, nullptr, &child), bad, "id is NULL"));
  EXPECT_EQ(child, nullptr);
  std::uint64_t operations = 9;
  EXPECT_TRUE(done(trellis_comm_operations(one[0], &operations)));
  EXPECT_EQ(operations, 0u);  // nothing of the above was begun
}

TEST(ApiRefuses, CreatingWhatCannotBe) {
  trellis_unique_id id = {};
  trellis_comm comm = reinterpret_cast<trellis_comm>(1);
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 0, &id, 0, nullptr), bad, "0 ranks"));
  EXPECT_EQ(comm, nullptr);
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 2, &id, 2, nullptr), bad, "rank 2"));
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 2, &id, -1, nullptr), bad, "rank -1"));
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 2, nullptr, 0, nullptr), bad, "id is NULL"));
  EXPECT_TRUE(refused(trellis_comm_create(nullptr, 2, &id, 0, nullptr), bad, "comm is NULL"));
  EXPECT_TRUE(refused(trellis_comm_create(&comm, 1, &id, 0, nullptr), bad, "128 zeros"));
  EXPECT_TRUE(refused(trellis_comm_create_all(&comm, 0, nullptr), bad, "0 ranks"));
}

TEST(ApiRefuses, ConfigsThatCannotBe) {
  const auto with = [](auto&& change) {
    trellis_config config = TRELLIS_CONFIG_INIT;
    change(config);
    trellis_comm comm = nullptr;
    const trellis_result result = trellis_comm_create_all(&comm, 1, &config);
    EXPECT_EQ(comm, nullptr);
    return result;
  };
  EXPECT_TRUE(refused(with([](auto& c) { c.size = 3; }), bad, "config.size is 3"));
  EXPECT_TRUE(refused(with([](auto& c) { c.size = 1 << 20; }), bad, "config.size is 1048576"));
  EXPECT_TRUE(refused(with([](auto& c) { c.version = 0; }), bad, "config.version is 0"));
  EXPECT_TRUE(refused(with([](auto& c) { c.version = 20000; }), bad, "config.version is 20000"));
  EXPECT_TRUE(refused(with([](auto& c) { c.nonblocking = 2; }), bad, "config.nonblocking is 2"));
  EXPECT_TRUE(refused(with([](auto& c) { c.timeout_s = -4; }), bad, "config.timeout_s is -4"));
  EXPECT_TRUE(refused(with([](auto& c) { c.timeout_s = NAN; }), bad, "config.timeout_s is nan"));
  EXPECT_TRUE(refused(with([](auto& c) { c.single_copy = 3; }), bad, "config.single_copy is 3"));
  EXPECT_TRUE(refused(with([](auto& c) { c.rounds = -1; }), bad, "config.rounds is -1"));
  EXPECT_TRUE(refused(with([](auto& c) { c.wire = 6; }), bad, "config.wire is 6"));
  EXPECT_TRUE(refused(with([](auto& c) { c.rounding = "up"; }), bad, "up"));
  EXPECT_TRUE(refused(with([](auto& c) { c.transport = "pigeon"; }), bad, "pigeon"));
  EXPECT_TRUE(refused(with([](auto& c) { c.algorithm = "guess"; }), bad, "guess"));
  const Ranks one(1);
  trellis_config config = TRELLIS_CONFIG_INIT;
  config.seed = 4;
  trellis_comm child = nullptr;
  EXPECT_TRUE(refused(trellis_comm_split(one[0], 0, 0, &config, &child), bad, "like its parent"));
}

// A program compiled for a later version of the library has a struct with more fields at its end.
TEST(ApiRefuses, FieldsThatThisLibraryDoesNotKnow) {
  struct Longer {
    trellis_config known = TRELLIS_CONFIG_INIT;
    std::uint64_t more = 0;
  } longer;
  longer.known.size = sizeof longer;
  trellis_comm comm = nullptr;
  EXPECT_TRUE(done(trellis_comm_create_all(&comm, 1, &longer.known)));
  EXPECT_TRUE(done(trellis_comm_destroy(comm)));
  longer.more = 1;
  EXPECT_TRUE(refused(trellis_comm_create_all(&comm, 1, &longer.known), bad, "byte 96"));
}

TEST(ApiRefuses, AGroupThatIsNotOpen) {
  EXPECT_TRUE(refused(trellis_group_end(), TRELLIS_INVALID_USAGE, "no group is open"));
  EXPECT_TRUE(refused(trellis_group_forget(), TRELLIS_INVALID_USAGE, "no group is open"));
}

TEST(ApiRefuses, NothingOfAGroupWithAFailureIsDone) {
  const Ranks one(1);
  float in = 3, out = 0;
  ASSERT_TRUE(done(trellis_group_start()));
  EXPECT_TRUE(done(trellis_all_reduce(one[0], &in, &out, 1, TRELLIS_F32, TRELLIS_SUM, nullptr)));
  EXPECT_TRUE(refused(trellis_broadcast(one[0], &in, &out, 1, TRELLIS_F32, 9, nullptr), bad, "root 9"));
  EXPECT_TRUE(refused(trellis_group_end(), bad, "root 9"));
  EXPECT_EQ(out, 0);
  EXPECT_TRUE(done(trellis_all_reduce(one[0], &in, &out, 1, TRELLIS_F32, TRELLIS_SUM, nullptr)));
  EXPECT_EQ(out, 3);
}

TEST(ApiRefuses, MessagesAreOfTheirThread) {
  EXPECT_TRUE(refused(trellis_unique_id_create(nullptr), bad, "id is NULL"));
  std::jthread([] {
    EXPECT_STREQ(trellis_last_error(), "");
    EXPECT_EQ(trellis_last_result(), TRELLIS_OK);
    trellis_note_failure(TRELLIS_TIMED_OUT, "of a library above");
    EXPECT_STREQ(trellis_last_error(), "of a library above");
    EXPECT_EQ(trellis_last_result(), TRELLIS_TIMED_OUT);
  }).join();
  EXPECT_STREQ(trellis_last_error(), "id is NULL");
  EXPECT_EQ(trellis_last_error_rank(), -1);
}

// A program may keep the pointer to the message: it stays valid, and shows the latest failure.
TEST(ApiRefuses, AMessageHasOnePlaceInItsThread) {
  EXPECT_TRUE(refused(trellis_unique_id_create(nullptr), bad, "id is NULL"));
  const char* const kept = trellis_last_error();
  trellis_note_failure(bad, std::string(100'000, 'k').c_str());
  EXPECT_EQ(trellis_last_error(), kept);
  EXPECT_EQ(kept, std::string(1023, 'k'));  // as much of it as there is room for
  trellis_note_failure(bad, kept + 1020);
  EXPECT_STREQ(kept, "kkk");
  trellis_note_failure(bad, "");
  EXPECT_STREQ(kept, "");
}

}  // namespace
}  // namespace trellis::ccl
