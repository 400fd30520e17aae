#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string_view>

#include "sim/hardware/timeline/format_quantities.h"
#include "sim/hardware/timeline/summary.h"
#include "tests/sim/timeline/example.h"

namespace trellis::sim {
namespace {

Time by(const TrackUse& use, WaitReason wait) { return use.stalled_by[static_cast<std::size_t>(wait)]; }

TEST(TimelineSummary, BusyStalledAndIdle) {
  const Summary s = summarize(example());
  EXPECT_EQ(s.tracks[0].busy, 3'000'500);  // two spans overlap
  EXPECT_EQ(s.tracks[0].bytes, 2e6);
  EXPECT_EQ(s.tracks[0].idle, 6'999'500);
  EXPECT_EQ(s.tracks[1].busy, 3'899'500);
  EXPECT_EQ(by(s.tracks[1], WaitReason::semaphore), 3'100'500);
  EXPECT_EQ(by(s.tracks[1], WaitReason::order), 0);
  EXPECT_EQ(by(s.tracks[2], WaitReason::peer), 250 * ns);
  EXPECT_EQ(s.tracks[2].idle, 7 * us);
  EXPECT_EQ(by(s.tracks[3], WaitReason::data), 1'100 * ns);
  EXPECT_EQ(s.tracks[3].idle, 8'500 * ns);
}

TEST(TimelineSummary, FollowsCausesBack) {
  const std::vector<CriticalPathPiece> path = critical_path(example());
  const std::vector<std::tuple<std::int64_t, Time, Time, bool>> expected = {
      {-1, 0, 500'000, false},          {1, 500'000, 3'000'500, false},   {2, 3'000'500, 3'100'500, true},
      {2, 3'100'500, 5'000'000, false}, {4, 5'000'000, 7'000'000, false}, {6, 7'000'000, 7'250'000, true},
      {6, 7'250'000, 10'000'000, false}};
  ASSERT_EQ(path.size(), expected.size());
  for (std::size_t i = 0; i < path.size(); ++i)
    EXPECT_EQ(std::tuple(path[i].span, path[i].start, path[i].end, path[i].waiting), expected[i]) << i;
}

TEST(TimelineSummary, ASpanWithoutACauseFollowsTheOneBeforeItOnItsTrack) {
  Timeline t;
  const std::uint32_t track = t.track("core", "tensor");
  const std::uint32_t label = t.label_of("x");
  for (Time i = 0; i < 5; ++i) t.add({.track = track, .label = label, .start = i, .end = i + 1});
  EXPECT_EQ(critical_path(t).size(), 5U);
  t.spans[2].cause = 4;  // a cause later than the span itself: not followed
  EXPECT_EQ(critical_path(t).size(), 5U);
  t.add({.track = track, .label = label, .start = 9, .end = 10});
  const std::vector<CriticalPathPiece> path = critical_path(t);
  ASSERT_EQ(path.size(), 7U);
  EXPECT_TRUE(path[5].waiting);
  EXPECT_EQ(path[5].end - path[5].start, 4);
}

TEST(TimelineSummary, RooflineAndMfu) {
  const Summary s = summarize(example(), {.flops_per_second = 90e12,
                                          .roofs = {{.name = "HBM", .bytes_per_second = 800e9, .tracks = {0}},
                                                    {.name = "link", .bytes_per_second = 1e12, .tracks = {2}},
                                                    {.name = "slow", .bytes_per_second = 250e9}}});
  EXPECT_EQ(s.flops, 4e8);
  EXPECT_EQ(s.roofline[0].bytes, 2e6);
  EXPECT_EQ(s.roofline[0].intensity, 200);
  EXPECT_NEAR(s.roofline[0].attained, 4e13, 1e3);
  EXPECT_EQ(s.roofline[0].attainable, 90e12);  // 200 * 800e9 is more
  EXPECT_FALSE(s.roofline[0].memory_bound);
  EXPECT_EQ(s.roofline[2].intensity, 100);
  EXPECT_EQ(s.roofline[2].attainable, 25e12);
  EXPECT_TRUE(s.roofline[2].memory_bound);
  EXPECT_THROW(summarize(example(), {.roofs = {{.name = "HBM"}}}), std::invalid_argument);
  EXPECT_THROW(summarize(example(), {.roofs = {{"HBM", 1, {7}}}}), std::invalid_argument);
  EXPECT_THROW(summarize(example(), {.flops_per_second = -1}), std::invalid_argument);
}

// In any timeline, the times of a track add up, and the path covers all the time once.
TEST(TimelineSummary, RandomTimelinesAddUp) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Timeline t;
    for (int i = 0; i < 4; ++i) t.track("g", std::to_string(i));
    const std::uint32_t label = t.label_of("x");
    for (int i = 0; i < 200; ++i) {
      Span s{.track = static_cast<std::uint32_t>(random() % 4), .label = label};
      s.start = random() % 1'000;
      s.end = s.start + random() % 30;
      s.ready = s.start - random() % (s.start + 1);
      s.wait = static_cast<WaitReason>(random() % wait_count);
      s.cause = static_cast<std::int64_t>(random() % 200) - 1;
      if (s.cause >= i) s.cause = -1;
      t.add(s);
    }
    const Summary s = summarize(t);
    for (const TrackUse& use : s.tracks) {
      std::vector<bool> busy(t.end);
      for (const Span& span : t.spans)
        if (span.track == use.track) std::fill(busy.begin() + span.start, busy.begin() + span.end, true);
      EXPECT_EQ(use.busy, std::ranges::count(busy, true));
      EXPECT_EQ(use.stalled, std::accumulate(use.stalled_by.begin(), use.stalled_by.end(), Time{0}));
      EXPECT_EQ(use.busy + use.stalled + use.idle, t.end);
      EXPECT_GE(use.idle, 0);
    }
    Time at = 0;
    for (const CriticalPathPiece& piece : s.path) {
      EXPECT_EQ(piece.start, at);
      EXPECT_GT(piece.end, at);
      at = piece.end;
    }
    EXPECT_EQ(at, t.end);
    EXPECT_EQ(std::accumulate(s.parts.begin(), s.parts.end(), Time{0},
                              [](Time sum, const CriticalPathTotal& part) { return sum + part.time; }),
              t.end);
  }
}

constexpr std::string_view golden = R"(time 10.0 us (10000000 ps), 7 spans on 4 tracks
moved 3.81 MiB, 400 GB/s on average
computed 400 MFLOP, 40.0 TFLOP/s on average: MFU 44.4% of 90.0 TFLOP/s

track                            spans    busy stalled    idle      bytes   while busy  stalled by
core 0, dma queue 0                  2   30.0%    0.0%   70.0%   1.91 MiB     667 GB/s
core 0, tensor                       3   39.0%   31.0%   30.0%          -  103 TFLOP/s  semaphore 31.0%
links, 12 -> 13                      1   27.5%    2.5%   70.0%   1.91 MiB     727 GB/s  peer 2.5%
core 0, vector "é" </script>         1    4.0%   11.0%   85.0%          -            -  data 11.0%

critical path, 7 pieces:
 39.0% of the time (3.90 us): core 0, tensor: matmul
 27.5% of the time (2.75 us): links, 12 -> 13: send to 13
 25.0% of the time (2.50 us): core 0, dma queue 0: load B
  5.0% of the time (500 ns): nothing that was recorded
  2.5% of the time (250 ns): links, 12 -> 13 waits for its peer (send to 13)
  1.0% of the time (100 ns): core 0, tensor waits for a semaphore (matmul)

roofline:
HBM 1.91 MiB, at 200 GB/s of 800 GB/s (25.0%)
  200 flops a byte, bound by the arithmetic: 40.0 TFLOP/s of 90.0 TFLOP/s (44.4%)
slow 3.81 MiB, at 400 GB/s of 500 GB/s (80.0%)
  100 flops a byte, bound by slow: 40.0 TFLOP/s of 50.0 TFLOP/s (80.0%)
)";

TEST(TimelineSummary, PrintsItsGoldenText) {
  const Timeline t = example();
  const Summary s = summarize(t, {90e12, {{"HBM", 800e9, {0}}, {"slow", 500e9, {}}}});
  EXPECT_EQ(summary_text(t, s), golden);
  EXPECT_NE(summary_text(t, s, 2).find("and 2 less busy tracks"), std::string::npos);
}

TEST(TimelineSummary, JsonSaysTheSame) {
  const Timeline t = example();
  const auto json = nlohmann::json::parse(summary_json(t, summarize(t, {90e12, {{"HBM", 800e9, {0}}}})));
  EXPECT_EQ(json["time_ps"], 10 * us);
  EXPECT_NEAR(json["mfu"].get<double>(), 0.4444, 1e-4);
  EXPECT_EQ(json["tracks"][1]["stalled_by_ps"]["semaphore"], 3'100'500);
  EXPECT_EQ(json["critical_path"][0]["words"], "core 0, tensor: matmul");
  EXPECT_EQ(json["roofline"][0]["flops_per_byte"], 200);
}

TEST(TimelineSummary, AnEmptyTimelineHasASummary) {
  const Timeline t;
  EXPECT_EQ(summary_text(t, summarize(t)).substr(0, 12), "time 0 ps (0");
  EXPECT_NO_THROW(summary_json(t, summarize(t, {1, {{"HBM", 1, {}}}})));
}

TEST(TimelineSummary, Words) {
  EXPECT_EQ(time_words(999), "999 ps");
  EXPECT_EQ(time_words(999'600), "1.00 us");
  EXPECT_EQ(time_words(12'345'678), "12.3 us");
  EXPECT_EQ(time_words(5'000 * second), "5000 s");
  EXPECT_EQ(bytes_words(1536), "1.50 KiB");
  EXPECT_EQ(rate_words(180.4e9), "180 GB/s");
  EXPECT_EQ(flops_words(91e12), "91.0 TFLOP");
  EXPECT_EQ(share_words(1, 0), "0.0%");
}

}  // namespace
}  // namespace trellis::sim
