#include "schedule/formats/mscclpp_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

constexpr std::string_view nop = R"({"name":"nop"})";
constexpr std::string_view signal = R"({"name":"signal","channel_ids":[0],"channel_type":"memory"})";
constexpr std::string_view wait = R"({"name":"wait","channel_ids":[0],"channel_type":"memory"})";
constexpr std::string_view relaxed_signal = R"({"name":"rlxsignal","channel_ids":[0],"channel_type":"memory"})";
constexpr std::string_view relaxed_wait = R"({"name":"rlxwait","channel_ids":[0],"channel_type":"memory"})";

std::string here(char buffer, int first, int count = 1) {
  return fmt::format(R"({{"type":"{}","index":{},"size":{}}})", buffer, first, count);
}
std::string there(int id, int first, int count = 1) {
  return fmt::format(R"({{"buffer_id":{},"index":{},"size":{}}})", id, first, count);
}

std::string move(std::string_view name, std::string_view from, std::string_view to) {
  return fmt::format(R"({{"name":"{}","channel_type":"memory","reduce_op":"sum","src_buff":[{}],"dst_buff":[{}]}})",
                     name, from, to);
}

std::string operations(std::initializer_list<std::string_view> ops) {
  std::string text;
  for (const std::string_view op : ops) text += fmt::format("{}{}", text.empty() ? "" : ",", op);
  return text;
}

std::string block(int id, const std::string& ops) {
  return fmt::format(
      R"({{"id":{},"channels":[{{"channel_type":"memory","channel_ids":[{}]}}],"remote_buffer_refs":[{{"access_channel_type":"memory","remote_buffer_ids":[0,1,2]}}],"ops":[{}]}})",
      id, id, ops);
}

// A plan of two gpus. Each sees the other's input, output and scratch as buffers 0, 1 and 2.
std::string plan(std::string_view collective, int inputs, int outputs, const std::string& first,
                 const std::string& second, bool in_place = false) {
  std::string gpus;
  for (int r = 0; r < 2; ++r) {
    std::string remotes;
    for (const char buffer : std::string_view("ios"))
      remotes += fmt::format(R"({}{{"rank":{},"type":"{}","access_channel_types":["memory"]}})",
                             remotes.empty() ? "" : ",", 1 - r, buffer);
    gpus += fmt::format(
        R"({}{{"id":{},"input_chunks":{},"output_chunks":{},"scratch_chunks":2,"channels":[{{"channel_type":"memory","connected_to":[{},{}]}}],"remote_buffers":[{}],"semaphores":[{{"init_value":0}}],"threadblocks":[{}]}})",
        r ? "," : "", r, inputs, outputs, 1 - r, 1 - r, remotes, r ? second : first);
  }
  return fmt::format(R"({{"name":"sample","collective":"{}","protocol":"Simple","inplace":{},"gpus":[{}]}})",
                     collective, in_place, gpus);
}

std::string complaint(const std::string& json) {
  return why([&] { import_mscclpp(json); });
}

std::string verdict(const std::string& json) { return verify(import_mscclpp(json)).text(); }

// Each gpu puts its chunk into the other's output.
std::string gather(std::initializer_list<std::string_view> after_put) {
  const auto one = [&](int me) {
    return block(0, operations({move("copy", here('i', 0), here('o', me)), move("put", here('i', 0), there(1, me))}) +
                        "," + operations(after_put));
  };
  return plan("allgather", 1, 2, one(0), one(1));
}

TEST(MscclppJson, PutsBecomeTransfersWithBothEnds) {
  const Schedule schedule = import_mscclpp(gather({nop, signal, wait}));
  EXPECT_EQ(schedule.algorithm, "sample");
  EXPECT_EQ(schedule.task,
            (Task{.operation = {.collective = Collective::all_gather, .pairs = {}}, .ranks = 2, .even = true}));
  EXPECT_EQ(print(schedule, 0),
            "rank 0 scratch 2\n"
            "0 copy out[0] = in[0]\n"
            "1 send in[0] to 1 tag 0\n"
            "2 recv out[1] from 1 tag 0\n");
  EXPECT_EQ(verify(schedule).text(), "proved: 6 steps, 2 transfers");
}

TEST(MscclppJson, AGpuMustWaitForWhatOthersDoToItsMemory) {
  EXPECT_EQ(complaint(gather({nop, signal})), "gpus 0: ends without waiting for rank 0 step 2 (recv out[1] from 1)");
  EXPECT_EQ(complaint(gather({signal, wait})), "gpus 0: ends without waiting for rank 0 step 2 (recv out[1] from 1)");
}

// Each gpu reads its half from the other, adds its own and writes the sum to both.
std::string reduce(std::initializer_list<std::string_view> before, std::initializer_list<std::string_view> after) {
  const auto one = [&](int me) {
    const std::string own = here('i', me), far = there(0, me);
    return block(0,
                 operations(before) + "," + move("rres", own + "," + far, own + "," + far) + "," + operations(after));
  };
  return plan("allreduce", 2, 2, one(0), one(1), true);
}

TEST(MscclppJson, AReductionReadsAndWritesElementByElement) {
  const Schedule schedule = import_mscclpp(reduce({relaxed_signal, relaxed_wait, nop}, {nop, signal, wait}));
  EXPECT_EQ(print(schedule, 0),
            "rank 0 scratch 2\n"
            "0 send out[1] to 1 tag 0\n"
            "1 recv out[1] from 1 tag 0 after 0\n"
            "2 recv_reduce out[0] = out[0] from 1 tag 1\n"
            "3 send out[0] to 1 tag 1 after 2\n");
  EXPECT_EQ(verify(schedule).text(), "proved: 8 steps, 4 transfers");
}

TEST(MscclppJson, OrderNeedsSignalsAndNops) {
  const auto two_steps = [](std::initializer_list<std::string_view> between) {
    const auto one = [&](int me) {
      return block(0, operations({move("put", here('i', 1 - me), there(2, 1 - me))}) + "," + operations(between) + "," +
                          operations({move("re", here('i', me) + "," + here('s', me), here('o', me)), nop,
                                      move("put", here('o', me), there(1, me)), nop, signal, wait}));
    };
    return plan("allreduce", 2, 2, one(0), one(1));
  };
  EXPECT_EQ(verdict(two_steps({nop, signal, wait, nop})), "proved: 10 steps, 4 transfers");
  EXPECT_NE(verdict(two_steps({nop, signal, wait})).find("races with"), std::string::npos);  // others may go on early
  EXPECT_NE(verdict(two_steps({signal, wait, nop})).find("races with"),
            std::string::npos);  // others may still be writing
  EXPECT_EQ(complaint(two_steps({nop, relaxed_signal, relaxed_wait, nop})),
            "gpus 0 threadblocks 0 ops 2: a relaxed signal does not promise that what was written before is seen");
  EXPECT_EQ(complaint(two_steps({wait, nop, signal})), "gpus 0 threadblocks 0 ops 1: waits for what never comes");
}

TEST(MscclppJson, BarriersAndSemaphoresJoinThreadBlocks) {
  const std::string barrier = R"({"name":"barrier","barrier_id":0,"num_threadblocks":2})";
  const std::string release = R"({"name":"sem_release","semaphore_ids":[0]})",
                    acquire = R"({"name":"sem_acquire","semaphore_ids":[0]})";
  const auto with = [&](const std::string& end, const std::string& begin) {
    const auto one = [&](int me) {
      return block(0, operations({move("put", here('i', 0), there(2, me)), nop, signal, wait, nop}) + end) + "," +
             block(1, begin + operations({move("copy", here('s', 1 - me), here('o', 1 - me)),
                                          move("copy", here('i', 0), here('o', me))}));
    };
    return plan("allgather", 1, 2, one(0), one(1));
  };
  EXPECT_EQ(verdict(with("," + barrier, barrier + ",")), "proved: 8 steps, 2 transfers");
  EXPECT_EQ(verdict(with("," + release, acquire + "," + std::string(nop) + ",")), "proved: 8 steps, 2 transfers");
  EXPECT_NE(verdict(with("", "")).find("races with"), std::string::npos);
  EXPECT_EQ(complaint(with("," + barrier, "")), "gpus 0 threadblocks 0 ops 5: waits for what never comes");
  EXPECT_EQ(complaint(with("", acquire + ",")), "gpus 0 threadblocks 1 ops 0: waits for what never comes");
}

// A barrier joins the thread blocks that arrive first. If more use it than it joins, the result depends on timing, so
// the plan is refused.
TEST(MscclppJson, ABarrierIsForThoseWhoUseIt) {
  const std::string barrier = R"({"name":"barrier","barrier_id":0,"num_threadblocks":2})";
  const auto with = [&](const std::string& end, const std::string& more) {
    const std::string writer = block(0, move("copy", here('i', 0), here('s', 0)) + "," + barrier + end),
                      reader = block(1, barrier + "," + move("copy", here('s', 0), here('o', 0)) + end);
    const std::string both = writer + "," + reader + more;
    return plan("alltoall", 2, 2, both, both);
  };
  const auto further = [&](int id, const std::string& ops) {
    return fmt::format(R"(,{{"id":{},"channels":[],"remote_buffer_refs":[],"ops":[{}]}})", id, ops);
  };
  EXPECT_EQ(complaint(with("", "")), "");
  EXPECT_EQ(complaint(with("," + barrier, "")), "");
  EXPECT_EQ(complaint(with("", further(2, barrier) + further(3, barrier))),
            "gpus 0 threadblocks 0 ops 1: 2 thread blocks meet at barrier 0, which 4 use");
  EXPECT_EQ(complaint(with("", further(2, barrier + "," + barrier))),
            "gpus 0 threadblocks 0 ops 1: 2 thread blocks meet at barrier 0, which 3 use");
}

TEST(MscclppJson, WhatTheFormatLeavesOpenIsRefused) {
  const std::string good = gather({nop, signal, wait});
  const auto with = [&](std::string_view old, std::string_view now) {
    std::string json = good;
    return json.replace(json.find(old), old.size(), now);
  };
  EXPECT_EQ(complaint(with("\"allgather\"", "\"sendrecv\"")),
            "plan collective: 'sendrecv': the plan does not say what must come out, or which gpu is the root");
  EXPECT_EQ(complaint(with("Simple", "LL")),
            "plan protocol: packets keep their order in flags inside the data: expected Simple");
  EXPECT_EQ(complaint(with("\"put\"", "\"ppkt\"")),
            "gpus 0 threadblocks 0 ops 1: ppkt: packets keep their order in flags inside the data");
  EXPECT_EQ(complaint(with("\"put\"", "\"pipeline\"")),
            "gpus 0 threadblocks 0 ops 1: a pipeline goes round as often as the size at run time says");
  EXPECT_EQ(complaint(with("\"name\":\"put\"", "\"name\":\"put\",\"tbg_info\":{\"tb_id\":0,\"tbg_size\":2}")),
            "gpus 0 threadblocks 0 ops 1: thread block groups cut chunks at run time");
  EXPECT_EQ(complaint(with("\"memory\"", "\"switch\"")),
            "gpus 0 channels 0 channel_type: switch channels leave the order of a sum to the switch");
  EXPECT_EQ(complaint(with("\"memory\"", "\"port\"")),
            "gpus 0 channels 0 channel_type: port channels leave the end of a put to their proxy");
}

TEST(MscclppJson, ComplaintsNameThePlace) {
  const std::string good = gather({nop, signal, wait});
  const auto with = [&](std::string_view old, std::string_view now) {
    std::string json = good;
    return json.replace(json.find(old), old.size(), now);
  };
  EXPECT_TRUE(complaint("").starts_with("plan: "));
  EXPECT_TRUE(complaint("{\"name\":\"\xff\"}").starts_with("plan: "));
  EXPECT_TRUE(complaint(std::string(1'000'000, '[')).starts_with("plan: "));
  EXPECT_EQ(complaint(std::string(1'000'000, '[') + std::string(1'000'000, ']')), "plan: expected an object");
  EXPECT_EQ(complaint("{}"), "plan: has no 'name'");
  EXPECT_EQ(complaint(with("[{\"id\":0", "[{\"id\":1")), "gpus 0 id: expected 0, its place in the list");
  EXPECT_EQ(complaint(with("\"input_chunks\":1", "\"input_chunks\":-1")),
            "gpus 0 input_chunks: expected a whole number, 0 to 2147483647");
  EXPECT_EQ(complaint(with("\"input_chunks\":1", "\"input_chunks\":1e400")).substr(0, 6), "plan: ");
  EXPECT_EQ(complaint(with("\"input_chunks\":1", "\"input_chunks\":18446744073709551615")),
            "gpus 0 input_chunks: expected a whole number, 0 to 2147483647");
  EXPECT_EQ(complaint(with("\"output_chunks\":2", "\"output_chunks\":3")),
            "gpus: 1 and 3 chunks of input and output here, 1 and 2 there");
  EXPECT_EQ(complaint(with("\"connected_to\":[1,1]", "\"connected_to\":[0]")),
            "gpus 0 channels 0 connected_to 0: is this gpu itself");
  EXPECT_EQ(complaint(with("\"connected_to\":[1,1]", "\"connected_to\":[2]")),
            "gpus 0 channels 0 connected_to 0: expected a whole number, 0 to 1");
  EXPECT_EQ(complaint(with("\"connected_to\":[1,1]", "\"connected_to\":[]")),
            "gpus 0 threadblocks 0 channels 0 channel_ids 0: expected a whole number, 0 to -1");
  EXPECT_EQ(complaint(with("\"buffer_id\":1", "\"buffer_id\":7")),
            "gpus 0 threadblocks 0 ops 1 dst_buff 0 buffer_id: expected a whole number, 0 to 2");
  EXPECT_EQ(complaint(with("\"name\":\"copy\"", "\"name\":\"fill\"")),
            "gpus 0 threadblocks 0 ops 0 name: 'fill' is no operation that is known");
  EXPECT_EQ(complaint(with("\"name\":\"copy\"", "\"name\":\"put\"")),
            "gpus 0 threadblocks 0 ops 0: its sources and targets don't fit this kind of operation");
  EXPECT_EQ(complaint(with("\"size\":1", "\"size\":2")),
            "gpus 0 threadblocks 0 ops 0: its sources and targets don't fit this kind of operation");
  EXPECT_EQ(complaint(with("\"size\":1", "\"size\":0")),
            "gpus 0 threadblocks 0 ops 0 src_buff 0 size: expected a whole number, 1 to 2147483647");
}

}  // namespace
}  // namespace trellis::schedule
