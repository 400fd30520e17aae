#include "schedule/formats/msccl_xml.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "schedule/algorithms/algorithm.h"
#include "schedule/formats/text.h"
#include "schedule/proof/reference_interpreter.h"
#include "schedule/proof/step_wiring.h"
#include "schedule/proof/verify.h"
#include "tests/why.h"

namespace trellis::schedule {
namespace {

std::string step(int s, std::string_view type, std::string_view from, std::string_view to,
                 std::string_view wait = "-1 -1", int hasdep = 0, int count = 1) {
  const auto space = wait.find(' ');
  return fmt::format(
      R"(<step s="{}" type="{}" srcbuf="{}" srcoff="{}" dstbuf="{}" dstoff="{}" cnt="{}" depid="{}" deps="{}" hasdep="{}"/>)",
      s, type, from[0], from.substr(1), to[0], to.substr(1), count, wait.substr(0, space), wait.substr(space + 1),
      hasdep);
}

std::string tb(int id, int send, int recv, int channel, std::initializer_list<std::string> steps) {
  std::string text = fmt::format(R"(<tb id="{}" send="{}" recv="{}" chan="{}">)", id, send, recv, channel);
  for (const std::string& s : steps) text += s;
  return text + "</tb>";
}

std::string gpu(int id, int scratch, std::initializer_list<std::string> blocks) {
  std::string text = fmt::format(R"(<gpu id="{}" i_chunks="2" o_chunks="2" s_chunks="{}">)", id, scratch);
  for (const std::string& b : blocks) text += b;
  return text + "</gpu>";
}

std::string algo(std::string_view collective, int chunks, std::initializer_list<std::string> gpus, int in_place = 0,
                 int out_of_place = 1) {
  std::string text = fmt::format(
      R"(<algo name="sample" proto="LL" nchannels="2" nchunksperloop="{}" ngpus="{}" coll="{}" inplace="{}" outofplace="{}">)",
      chunks, gpus.size(), collective, in_place, out_of_place);
  for (const std::string& g : gpus) text += g;
  return text + "</algo>";
}

// Each of two gpus receives one half from the other, adds its own, and returns the sum.
std::string pair(int in_place, int out_of_place) {
  const char own = out_of_place ? 'o' : 'i';
  const auto one = [&](int me, int mine, int other) {
    const std::string from = fmt::format("i{}", mine), to = fmt::format("{}{}", own, mine),
                      far = fmt::format("{}{}", own, other);
    return gpu(me, 0,
               {tb(0, 1 - me, 1 - me, 0,
                   {step(0, "s", fmt::format("i{}", other), far), step(1, "rrcs", from, to), step(2, "r", far, far)})});
  };
  return algo("allreduce", 2, {one(0, 0, 1), one(1, 1, 0)}, in_place, out_of_place);
}

std::string complaint(const std::string& xml, std::optional<bool> in_place = {}) {
  return why([&] { import_msccl(xml, in_place); });
}

std::string verdict(const std::string& xml, std::optional<bool> in_place = {}) {
  return verify(import_msccl(xml, in_place)).text();
}

TEST(MscclXml, FusedStepsBecomeAReceiveAndASend) {
  const Schedule schedule = import_msccl(pair(0, 1));
  EXPECT_EQ(schedule.algorithm, "sample");
  EXPECT_EQ(
      schedule.task,
      (Task{.operation = {.collective = Collective::all_reduce, .pairs = {}}, .ranks = 2, .even = true, .pieces = 2}));
  EXPECT_EQ(print(schedule, 0),
            "rank 0 scratch 0\n"
            "0 send in[1] to 1 tag 0\n"
            "1 recv_reduce out[0] = in[0] from 1 tag 0\n"
            "2 send out[0] to 1 tag 1 after 1\n"
            "3 recv out[1] from 1 tag 1 after 1\n");
  EXPECT_EQ(verify(schedule).text(), "proved: 8 steps, 4 transfers");
}

TEST(MscclXml, InPlaceTheInputGoesByTheOutputsName) {
  const Schedule schedule = import_msccl(pair(1, 0));
  EXPECT_TRUE(schedule.task.operation.in_place);
  EXPECT_EQ(print(schedule, 1),
            "rank 1 scratch 0\n"
            "0 send out[0] to 0 tag 0\n"
            "1 recv_reduce out[1] = out[1] from 0 tag 0\n"
            "2 send out[1] to 0 tag 1 after 1\n"
            "3 recv out[0] from 0 tag 1 after 0 1\n");
  EXPECT_TRUE(verify(schedule).ok());
}

TEST(MscclXml, AFileThatClaimsBothIsReadEitherWay) {
  EXPECT_FALSE(import_msccl(pair(1, 1)).task.operation.in_place);
  EXPECT_TRUE(import_msccl(pair(1, 1), true).task.operation.in_place);
  EXPECT_EQ(verdict(pair(1, 1), true), "proved: 8 steps, 4 transfers");
  EXPECT_EQ(complaint(pair(0, 1), true), "algo: does not claim to work in place");
  EXPECT_EQ(complaint(pair(1, 0), false), "algo: does not claim to work out of place");
}

TEST(MscclXml, WhatIsPassedOnWithoutBeingStoredGoesThroughScratch) {
  std::vector<std::string> gpus;
  for (int r = 0; r < 3; ++r) {
    const auto chunk = [&](int back) { return fmt::format("i{}", (r + 3 - back) % 3); };
    gpus.push_back(gpu(
        r, 0,
        {tb(0, (r + 1) % 3, (r + 2) % 3, 0,
            {step(0, "s", chunk(0), chunk(0)), step(1, "rrs", chunk(1), chunk(1)), step(2, "rrcs", chunk(2), chunk(2)),
             step(3, "rcs", chunk(0), chunk(0)), step(4, "r", chunk(1), chunk(1))})}));
  }
  const Schedule schedule = import_msccl(algo("allreduce", 3, {gpus[0], gpus[1], gpus[2]}, 1, 0));
  EXPECT_EQ(schedule.programs[0].scratch, 1);
  EXPECT_EQ(verify(schedule).text(), "proved: 24 steps, 12 transfers");
}

// Two gpus swap their data; another thread block copies or adds the received data.
std::string swap(const std::string& second_block, int hasdep = 1) {
  const auto one = [&](int me) {
    return gpu(me, 1,
               {tb(4, 1 - me, 1 - me, 0, {step(0, "s", "i0", "o0"), step(1, "r", "s0", "s0", "-1 -1", hasdep)}),
                second_block});
  };
  return algo("allreduce", 1, {one(0), one(1)});
}

TEST(MscclXml, WaitsBetweenThreadBlocksAreKept) {
  const std::string copy = step(0, "cpy", "i0", "o0");
  EXPECT_EQ(verdict(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0", "4 1")}))), "proved: 8 steps, 2 transfers");
  EXPECT_EQ(verdict(swap(
                tb(2, -1, -1, 1,
                   {step(0, "nop", "i0", "i0", "4 1", 0, 0), step(1, "cpy", "i0", "o0"), step(2, "re", "s0", "o0")}))),
            "proved: 8 steps, 2 transfers");
  // A wait for a step without hasdep waits for the next step that has it.
  EXPECT_EQ(verdict(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0", "4 0")}))), "proved: 8 steps, 2 transfers");
  EXPECT_NE(verdict(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0")}))).find("races with"), std::string::npos);
}

TEST(MscclXml, WaitsThatNeverEndAreRefused) {
  const std::string copy = step(0, "cpy", "i0", "o0");
  EXPECT_EQ(complaint(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0", "4 1")}), 0)),
            "gpu 0 tb 2 step 1 waits for tb 4 step 1, but that block lets nobody know: neither it nor a later step has "
            "hasdep");
  EXPECT_EQ(complaint(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0", "7 1")}))),
            "gpu 0 tb 2 step 1 waits for thread block 7, which does not exist");
  EXPECT_EQ(complaint(swap(tb(2, -1, -1, 1, {copy, step(1, "re", "s0", "o0", "4 9")}))),
            "gpu 0 tb 2 step 1 waits for tb 4 step 9, which does not exist");
  EXPECT_EQ(complaint(swap(tb(2, -1, -1, 1, {step(0, "cpy", "i0", "o0", "2 1"), step(1, "re", "s0", "o0", "4 1", 1)}))),
            "gpu 0 tb 2 step 0 waits for tb 2 step 1, which is never reached: a deadlock");
}

TEST(MscclXml, ABlockGoesOnWhileItsSendIsOnTheWayButNotOverItsData) {
  // The send follows a receive of the other gpu. If the block waited for the send, it would never receive.
  const Schedule schedule =
      import_msccl(swap(tb(2, -1, -1, 1, {step(0, "cpy", "i0", "o0"), step(1, "re", "s0", "o0", "4 1")})));
  EXPECT_TRUE(schedule.programs[0].after(schedule.programs[0].steps[1]).empty());
  // Overwriting sent data during an exchange depends on buffering, and is detected.
  const std::string xml = algo("alltoall", 2,
                               {gpu(0, 0, {tb(0, 1, 1, 0, {step(0, "s", "i1", "i1"), step(1, "r", "i1", "i1")})}),
                                gpu(1, 0, {tb(0, 0, 0, 0, {step(0, "s", "i0", "i0"), step(1, "r", "i0", "i0")})})},
                               1, 0);
  EXPECT_TRUE(verdict(xml).starts_with("deadlock: rank 0 step 0 (send out[1] to 1)")) << verdict(xml);
}

TEST(MscclXml, CollectivesThatTheFileLeavesOpenAreRefused) {
  EXPECT_EQ(complaint(algo("custom", 1, {gpu(0, 0, {})})),
            "algo: coll=\"custom\": the file does not say what the buffers must hold in the end");
  EXPECT_EQ(complaint(algo("broadcast", 1, {gpu(0, 0, {})})),
            "algo: coll=\"broadcast\": the file does not say which gpu is the root");
  EXPECT_EQ(complaint(algo("alltonext", 1, {gpu(0, 0, {})})),
            "algo: coll=\"alltonext\": expected allreduce, allgather, reducescatter or alltoall");
  EXPECT_EQ(complaint(algo("allgather", 3, {gpu(0, 0, {}), gpu(1, 0, {})})),
            "algo: nchunksperloop=\"3\" for 2 gpus: expected a multiple");
}

TEST(MscclXml, ComplaintsNameThePlace) {
  const auto with = [](std::string_view old, std::string_view now) {
    std::string xml = pair(0, 1);
    return xml.replace(xml.find(old), old.size(), now);
  };
  EXPECT_EQ(complaint(""), "line 1 column 1: No document element found");
  EXPECT_EQ(complaint("<algo>\n<gpu></algo>"), "line 2 column 8: Start-end tags mismatch");
  EXPECT_EQ(complaint("\xff\xfe\x80"), "line 1 column 4: No document element found");
  EXPECT_EQ(complaint("<plan/>"), "the file: contains an element 'plan': expected 'algo'");
  EXPECT_EQ(complaint("<algo/>"), "algo: has no attribute coll");
  EXPECT_EQ(complaint("<algo coll='x' nchunksperloop='1' nchannels='1' ngpus='2000000000'/>"),
            "algo: has 0 gpus: ngpus says 2000000000");
  EXPECT_EQ(complaint(with("ngpus=\"2\"", "ngpus=\"-2\"")), "algo: ngpus=\"-2\": expected 1 to 2147483647");
  EXPECT_EQ(complaint(with("<gpu id=\"1\"", "<gpu id=\"0\"")), "algo: has gpu 0 twice");
  EXPECT_EQ(complaint(with("<tb id=\"0\"", "<tb id=\"zero\"")), "gpu 0 tb: id=\"zero\": expected 0 to 2147483647");
  EXPECT_EQ(complaint(with("send=\"1\"", "send=\"0\"")), "gpu 0 tb 0: has its own gpu for a peer");
  EXPECT_EQ(complaint(with("send=\"1\"", "send=\"-1\"")),
            "gpu 0 tb 0 step 0: sends, but its thread block has no peer to send to");
  EXPECT_EQ(complaint(with("chan=\"0\"", "chan=\"256\"")), "gpu 0 tb 0: chan=\"256\": expected -1 to 255");
  EXPECT_EQ(complaint(with("s=\"1\"", "s=\"2\"")), "gpu 0 tb 0 step 1: s=\"2\": expected 1 to 1");
  EXPECT_EQ(complaint(with("type=\"rrcs\"", "type=\"rcc\"")),
            "gpu 0 tb 0 step 1: type=\"rcc\": expected s, r, rcs, rrs, rrc, rrcs, cpy, re or nop");
  EXPECT_EQ(complaint(with("cnt=\"1\"", "cnt=\"0\"")), "gpu 0 tb 0 step 0: cnt=\"0\": expected 1 to 2147483647");
  EXPECT_EQ(complaint(with("srcoff=\"1\"", "srcoff=\"2147483647\"")),
            "gpu 0 tb 0 step 0: srcoff=\"2147483647\": expected 0 to 2147483646");
  EXPECT_EQ(complaint(with("srcbuf=\"i\"", "srcbuf=\"x\"")), "gpu 0 tb 0 step 0: srcbuf=\"x\": expected i, o or s");
  EXPECT_EQ(complaint(with("srcbuf=\"i\"", "")), "gpu 0 tb 0 step 0: has no attribute srcbuf");
  EXPECT_EQ(complaint(with("</tb>", "</tb><tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"-1\"/>")),
            "gpu 0: has thread block 0 twice");
  EXPECT_EQ(complaint(with("<step s=\"0\"", "<op/><step s=\"0\"")),
            "gpu 0 tb 0: contains an element 'op': expected 'step'");
  const std::string other = tb(1, 1, 1, 0, {step(0, "s", "i0", "o0")});
  EXPECT_EQ(complaint(with("</tb>", "</tb>" + other)),
            "gpu 0 tb 1: shares its connection with gpu 1 on channel 0 with tb 0");
}

TEST(MscclXml, HugeClaimsCostNothing) {
  EXPECT_EQ(complaint(algo("allreduce", 2'000'000'000,
                           {gpu(0, 0, {tb(0, -1, -1, 0, {step(0, "cpy", "i0", "o0", "-1 -1", 0, 2'000'000'000)})})})),
            "algo: its steps move 2000000000 chunks: at most 4194304 can be followed");
  EXPECT_EQ(verdict(algo("allreduce", 2'000'000'000, {gpu(0, 2'000'000'000, {})})),
            "6000000000 chunks of memory are more than the 67108864 that a proof may take");
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<algo>";
  EXPECT_NE(complaint(deep), "");
}

// All output values, as expressions.
std::vector<std::string> outcome(const Schedule& s) {
  auto memory = memory_of<std::string>(s, [](Rank r, std::int64_t chunk) { return fmt::format("{}.{}", r, chunk); });
  interpret(s, memory, [](std::span<const std::string* const> values) {
    const auto [less, more] = std::minmax(*values[0], *values[1]);
    return fmt::format("({}+{})", less, more);
  });
  std::vector<std::string> all;
  for (Rank r = 0; r < s.ranks(); ++r)
    for (std::int64_t c = 0; c < output_chunks(s.task, r); ++c)
      all.push_back(memory[r][cells(s.task, r).at(Buffer::output, c)]);
  return all;
}

TEST(MscclXml, WhatIsWrittenIsReadBackAndComputesTheSame) {
  int written = 0;
  for (const auto& [name, algorithm] : algorithms())
    for (const Collective collective : algorithm.serves)
      for (const Rank ranks : {1, 2, 3, 4})
        for (const bool in_place : {false, true}) {
          Request request{.operation = {.collective = collective}, .dims = {ranks}};
          request.operation.in_place = in_place;
          if (!refusal(algorithm, request).empty()) continue;
          const Schedule schedule = make(algorithm, request);
          SCOPED_TRACE(fmt::format("{} {} {}", name, schedule::name(collective), ranks));
          std::string xml;
          try {
            xml = export_msccl(schedule);
          } catch (const std::invalid_argument&) {
            continue;
          }
          ++written;
          const Schedule again = import_msccl(xml);
          EXPECT_EQ(again.task.operation.in_place, in_place);
          ASSERT_TRUE(verify(again).ok()) << verify(again).text();
          EXPECT_EQ(outcome(again), outcome(schedule));
          EXPECT_EQ(again.algorithm, schedule.algorithm);
        }
  EXPECT_GT(written, 20);
}

// The number of steps that have to end one after another.
std::int32_t longest_chain(const Schedule& s) {
  StepWiring wiring;
  EXPECT_FALSE(StepWiring::connect(s, wiring));
  std::vector<std::int32_t> ends(wiring.count());
  const auto end = [&](StepId id) {
    const Rank rank = wiring.rank(id);
    const Program& program = s.programs[rank];
    std::int32_t longest = 0;
    for (const std::int32_t before : program.after(program.steps[wiring.step(id)]))
      longest = std::max(longest, ends[wiring.id(rank, before)]);
    return longest + 1;
  };
  EXPECT_TRUE(
      DataflowExecutor(s, wiring).run([&](StepId id) { ends[id] = end(id); },
                                      [&](StepId send, StepId receive) {
                                        ends[send] = ends[receive] = std::max({ends[send], end(send), end(receive)});
                                      }));
  return *std::ranges::max_element(ends);
}

TEST(MscclXml, WhatIsWrittenHasNoLongerChains) {
  for (const char* const name : {"ring", "halving_doubling"})
    for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
      for (const Rank ranks : {4, 8}) {
        const Request request{.operation = {.collective = collective}, .dims = {ranks}};
        const Algorithm& algorithm = algorithm_named(name);
        if (!refusal(algorithm, request).empty()) continue;
        const Schedule schedule = make(algorithm, request);
        EXPECT_EQ(longest_chain(import_msccl(export_msccl(schedule))), longest_chain(schedule))
            << name << " " << schedule::name(collective) << " of " << ranks;
      }
}

std::string refused(const Schedule& schedule) {
  return why([&] { export_msccl(schedule); });
}

TEST(MscclXml, WhatTheFormatCannotSayIsRefused) {
  Request broadcast{.operation = {.collective = Collective::broadcast}, .dims = {2}};
  EXPECT_EQ(refused(make("ring", broadcast)), "broadcast: an MSCCL file can't say which rank is the root");
  Request uneven{.operation = {.collective = Collective::all_gather_v}, .dims = {2}};
  EXPECT_EQ(refused(make("ring", uneven)), "all_gather_v: an MSCCL file knows chunks of one size only");
  const std::string head = "trellis schedule 1\ncollective barrier\nranks 3\npieces 1\nchannels 1\n";
  EXPECT_EQ(refused(parse(head + "rank 0 scratch 0\nrank 1 scratch 0\nrank 2 scratch 0\n")),
            "barrier: MSCCL files have no such collective");
  const std::string reduce = "trellis schedule 1\ncollective all_reduce\nranks 3\npieces 1\neven\nchannels 1\n";
  EXPECT_EQ(refused(parse(
                reduce +
                "rank 0 scratch 2\n0 reduce out[0] = in[0] + tmp[0] + tmp[1]\nrank 1 scratch 0\nrank 2 scratch 0\n")),
            "rank 0 step 0 (reduce out[0] = in[0] + tmp[0] + tmp[1]): an MSCCL step adds up two chunks: the sum would "
            "be rounded more than once");
  EXPECT_EQ(refused(parse(
                reduce +
                "rank 0 scratch 0\n0 send in[0] to 1 tag 0 and 2 tag 0\nrank 1 scratch 0\n0 recv out[0] from 0 tag 0\n"
                "rank 2 scratch 0\n0 recv out[0] from 0 tag 0\n")),
            "rank 0 step 0 (send in[0] to 1 and 2): an MSCCL step sends to one gpu only");
  Request many{.operation = {.collective = Collective::all_gather}, .dims = {34}, .channels = 8};
  EXPECT_EQ(refused(make("direct", many)), "gpu 0 would take 265 thread blocks: an MSCCL file may have 256");
  many.channels = 7;
  EXPECT_EQ(import_msccl(export_msccl(make("direct", many))).ranks(), 34);
}

}  // namespace
}  // namespace trellis::schedule
