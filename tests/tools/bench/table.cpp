#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "schedule/collective_traits.h"
#include "tools/bench/report/result.h"

namespace trellis::tools {

using namespace measure;
namespace {

BenchSettings settings(BenchStyle style) {
  BenchSettings s;
  s.style = style;
  s.op = bench_op("all_reduce_perf");
  s.sizes = {8, 1 << 20};
  s.most_bytes = 1 << 20;
  s.step_text = "step: 2(factor)";
  s.check_passes = 1;
  s.warm_ups = 1;
  s.in_place = style == BenchStyle::nccl;
  s.stats = {"avg", "p50", "p99"};
  return s;
}

BenchResult result(bool in_place, std::vector<double> us) {
  return {.op = "all_reduce_perf",
          .ranks = 4,
          .bytes = 1 << 20,
          .count = 1 << 18,
          .input_bytes = 4 << 20,
          .output_bytes = 4 << 20,
          .in_place = in_place,
          .measured = {.us = std::move(us), .checked = !in_place, .wrong = 0, .algorithm = "ring*2"}};
}

TEST(BenchTable, NumbersFitTheirColumns) {
  EXPECT_EQ(fitted(0, 6), "0.00");
  EXPECT_EQ(fitted(123.456, 6), "123.46");
  EXPECT_EQ(fitted(1234.56, 6), "1234.6");
  EXPECT_EQ(fitted(123456, 6), "123456");
  EXPECT_EQ(fitted(1234567, 7), "1234567");
  EXPECT_EQ(fitted(12345678, 7), "1.2e+07");
  EXPECT_EQ(fitted(12345678, 6), "1e+07");
}

TEST(BenchTable, NcclStyle) {
  const BenchSettings s = settings(BenchStyle::nccl);
  EXPECT_EQ(
      bench_heading(s, {"Rank  0 Group  0", "Rank  1 Group  0"}),
      "# trellis bench, in the style of nccl-tests\n"
      "# Collective test starting: all_reduce_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 1 iters: 20-1000 agg iters: 1 "
      "validate: 1 graph: 0 unalign: 0\n"
      "#\n"
      "# Using devices\n"
      "#  Rank  0 Group  0\n"
      "#  Rank  1 Group  0\n"
      "#\n"
      "#                                                              out-of-place                       "
      "in-place                             out                  in\n"
      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   "
      "busbw  #wrong       p50       p99       p50       p99\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
      "(GB/s)              (us)      (us)      (us)      (us)\n");
  const BenchResult out = result(false, {100, 300}), in = result(true, {400});
  EXPECT_EQ(
      bench_row(s, &out, &in),
      "     1048576        262144     float     sum      -1   200.00    5.24    7.86       0   400.00    2.62    3.93 "
      "    N/A    100.00    300.00    400.00    400.00\n");
  EXPECT_EQ(
      bench_row(s, &out, nullptr),
      "     1048576        262144     float     sum      -1   200.00    5.24    7.86       0      N/A     N/A     N/A "
      "    N/A    100.00    300.00       N/A       N/A\n");
  EXPECT_EQ(bench_footer(s, {.wrong = 3, .checked = 2, .busbw_sum = 3, .rows = 2, .memory_bytes = 0}),
            "# Out of bounds values : 3 FAILED\n"
            "# Avg bus bandwidth    : 1.5\n"
            "#\n"
            "# Collective test concluded: all_reduce_perf\n");
  EXPECT_EQ(bench_footer(s, {.checked = 1, .rows = 2}).find("# Out of bounds values : 0 OK\n"), 0u);
  EXPECT_EQ(bench_footer(s, {.rows = 2}).find("# Out of bounds values : N/A\n"), 0u);
}

TEST(BenchTable, NcclStyleWithTheTimesOfIterations) {
  BenchSettings s = settings(BenchStyle::nccl);
  s.per_iteration = true;
  s.skipped = 1;
  const BenchResult out = result(false, {1000, 100, 300});
  const std::string row = bench_row(s, &out, nullptr);
  EXPECT_NE(row.find(" 100.00   300.00   300.00    50.00"), std::string::npos) << row;  // least, most, p99, cv
  EXPECT_EQ(row.size(), bench_row(s, &out, &out).size());
}

TEST(BenchTable, BetweenWhatASimulatedTimeLies) {
  BenchResult out = result(false, {200});
  out.low_us = 150, out.high_us = 300;
  BenchSettings nccl = settings(BenchStyle::nccl), nccom = settings(BenchStyle::nccom);
  nccl.interval = nccom.interval = nccl.simulated = nccom.simulated = true;
  const std::string row = bench_row(nccl, &out, nullptr);
  EXPECT_NE(row.find("       0   150.00   300.00"), std::string::npos) << row;
  EXPECT_EQ(row.size(), bench_row(nccl, &out, &out).size());
  EXPECT_NE(bench_heading(nccl, {}).find("  #wrong      low     high "), std::string::npos);
  EXPECT_NE(bench_heading(nccom, {}).find("    time:low(us)    time:high(us)    algbw"), std::string::npos);
  EXPECT_NE(bench_row(nccom, &out, nullptr).find("          150.00           300.00 "), std::string::npos);
  const auto json = nlohmann::json::parse(bench_json(nccom, {out}))["results"][0];
  EXPECT_EQ(json["time_low_us"], 150);
  EXPECT_EQ(json["time_high_us"], 300);
  EXPECT_NE(bench_csv(nccom, {out}).find(",time_low_us,time_high_us,"), std::string::npos);
}

TEST(BenchTable, NcclRowsKeepTheirWidthForAnyTime) {
  const BenchSettings s = settings(BenchStyle::nccl);
  const BenchResult usual = result(false, {1});
  for (const double us : {0.001, 12.0, 98765.4, 1e7, 3e9}) {
    const BenchResult r = result(false, {us});
    EXPECT_EQ(bench_row(s, &r, &r).size(), bench_row(s, &usual, &usual).size()) << us;
  }
}

TEST(BenchTable, NccomStyle) {
  BenchSettings s = settings(BenchStyle::nccom);
  s.show_algorithm = s.show_sizes = true;
  const BenchResult out = result(false, {100, 200, 600});
  EXPECT_EQ(
      bench_heading(s, {}),
      "     size(B)    count(elems)    total_input_size(B)    total_output_size(B)        type    time:avg(us)    "
      "time:p50(us)    time:p99(us)    algbw(GB/s)    busbw(GB/s)    #wrong                 algorithm\n");
  EXPECT_EQ(
      bench_row(s, &out, nullptr),
      "     1048576          262144                4194304                 4194304        fp32          300.00    "
      "      200.00          600.00           3.50           5.24         0                    ring*2\n");
  EXPECT_EQ(bench_footer(s, {.wrong = 0, .checked = 1, .busbw_sum = 5.25, .rows = 1, .memory_bytes = 0}),
            "Avg bus bandwidth:\t5.25GB/s\n");
}

TEST(BenchTable, BusFactors) {
  using enum schedule::Collective;
  EXPECT_DOUBLE_EQ(bus_factor(all_reduce, 4), 1.5);
  for (const auto c : {reduce_scatter, all_gather, all_to_all, gather, scatter})
    EXPECT_DOUBLE_EQ(bus_factor(c, 4), 0.75);
  for (const auto c : {broadcast, reduce, send_recv, permute}) EXPECT_DOUBLE_EQ(bus_factor(c, 4), 1);
}

TEST(BenchReport, JsonHasWhatReadersLookFor) {
  const auto json =
      nlohmann::json::parse(bench_json(settings(BenchStyle::nccl), {result(false, {100, 300}), result(true, {50})}));
  ASSERT_EQ(json.at("results").size(), 2u);
  const auto& first = json["results"][0];
  EXPECT_EQ(first["op"], "all_reduce");
  EXPECT_EQ(first["bytes"], 1 << 20);
  EXPECT_EQ(first["count"], 1 << 18);
  EXPECT_EQ(first["type"], "float");
  EXPECT_DOUBLE_EQ(first["time_us"], 200);
  EXPECT_NEAR(first["algbw_GBps"], 5.24288, 1e-9);
  EXPECT_NEAR(first["busbw_GBps"], 7.86432, 1e-9);
  EXPECT_EQ(first["wrong"], 0);
  EXPECT_EQ(first["iterations"], 2);
  EXPECT_DOUBLE_EQ(first["p50_us"], 100);
  EXPECT_EQ(first["algorithm"], "ring*2");
  EXPECT_TRUE(json["results"][1]["wrong"].is_null());
  EXPECT_EQ(json["results"][1]["in_place"], true);
}

TEST(BenchReport, CsvHasTheSameColumns) {
  const std::vector<BenchResult> results = {result(false, {100}), result(true, {50})};
  const std::string csv = bench_csv(settings(BenchStyle::nccl), results);
  const std::string heading = csv.substr(0, csv.find('\n'));
  const auto json = nlohmann::ordered_json::parse(bench_json(settings(BenchStyle::nccl), results));
  std::string keys;
  for (const auto& [key, value] : json["results"][0].items()) keys += (keys.empty() ? "" : ",") + key;
  EXPECT_EQ(heading, keys);
  EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
  EXPECT_NE(csv.find("all_reduce,4,1048576,262144,float,sum,-1,false,1,ring*2,1,100.0,"), std::string::npos) << csv;
}

TEST(BenchReport, APlotOfEveryCurve) {
  BenchResult small = result(false, {1});
  small.bytes = 8;
  const std::string svg = bench_plot({small, result(false, {100}), result(true, {50})});
  EXPECT_NE(svg.find("<title>all_reduce on 4 ranks</title>"), std::string::npos);
  EXPECT_NE(svg.find("out of place: 1 MiB, 100 µs"), std::string::npos);
  EXPECT_NE(svg.find("in place: 1 MiB"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THROW(bench_plot({}), std::invalid_argument);
}

TEST(BenchStatistics, Percentiles) {
  const Statistics s = statistics_of({4, 1, 3, 2});
  EXPECT_DOUBLE_EQ(s.average, 2.5);
  EXPECT_DOUBLE_EQ(s.least, 1);
  EXPECT_DOUBLE_EQ(s.most, 4);
  EXPECT_DOUBLE_EQ(s.percentile(0), 1);
  EXPECT_DOUBLE_EQ(s.percentile(50), 2);
  EXPECT_DOUBLE_EQ(s.percentile(99), 4);
  std::vector<double> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1.0);
  const Statistics all = statistics_of(hundred);
  for (int p = 1; p <= 100; ++p) EXPECT_EQ(all.percentile(p), p);
}

}  // namespace
}  // namespace trellis::tools
