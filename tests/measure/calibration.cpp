#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/calibration/fit.h"
#include "measure/calibration/measurements_csv.h"
#include "tests/why.h"

namespace trellis::measure {
namespace {

// A collective's time by two figures, a launch and a rate.
double model(double bytes, double launch, double rate) { return launch + bytes / rate; }

struct Made {
  std::vector<Measurement> measured;
  std::vector<double> bytes;
};

Made made(const std::vector<double>& sizes, double launch, double rate, double noise) {
  Made out;
  std::mt19937_64 random(3);
  std::normal_distribution<double> error(0, noise);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::string name = "m" + std::to_string(i);
    out.measured.push_back({name, name, model(sizes[i], launch, rate) * std::exp(error(random))});
    out.bytes.push_back(sizes[i]);
  }
  return out;
}

const std::vector<FreeFigure> figures{{"launch", 20e-6, 5e-6, 80e-6, 0, 0}, {"rate", 50e9, 20e9, 120e9, 0, 0}};

CalibrationResult run(const Made& m, const std::vector<FreeFigure>& free = figures) {
  return calibrate(free, m.measured,
                   [&](std::size_t i, const std::vector<double>& v) { return model(m.bytes[i], v[0], v[1]); });
}

TEST(CalibrationResult, FindsWhatTheMeasurementsWereMadeWith) {
  const CalibrationResult c = run(made({1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}, 35e-6, 90e9, 0.03));
  EXPECT_TRUE(c.figures[0].identified());
  EXPECT_TRUE(c.figures[1].identified());
  EXPECT_NEAR(c.figures[0].value, 35e-6, 4e-6);
  EXPECT_NEAR(c.figures[1].value, 90e9, 9e9);
  EXPECT_LT(c.figures[0].low, 35e-6);
  EXPECT_GT(c.figures[0].high, 35e-6);
  double before = 0, after = 0, left = 0;
  for (std::size_t i = 0; i < c.before.size(); ++i)
    before += std::abs(c.before[i]), after += std::abs(c.after[i]), left += std::abs(c.left_out[i]);
  EXPECT_LT(after, before / 4);
  EXPECT_GE(left, after);
}

TEST(CalibrationResult, LeavesAFigureThatNoTimeDependsOn) {
  const CalibrationResult c = run(made({1e3, 2e3, 4e3, 8e3}, 35e-6, 90e9, 0.02));
  EXPECT_TRUE(c.figures[0].identified());
  EXPECT_FALSE(c.figures[1].identified());
  EXPECT_NE(c.figures[1].why_not.find("no time depends on it"), std::string::npos) << c.figures[1].why_not;
  EXPECT_EQ(c.figures[1].value, 50e9);
  EXPECT_EQ(c.figures[1].low, 20e9);
}

TEST(CalibrationResult, LeavesOneOfTwoThatChangeTheSameTimesAlike) {
  const Made m = made({1e9, 2e9, 3e9, 4e9}, 0, 90e9, 0.02);
  const std::vector<FreeFigure> two{{"one", 1, 0.5, 2, 0, 0}, {"other", 1, 0.5, 2, 0, 0}};
  const CalibrationResult c = calibrate(
      two, m.measured, [&](std::size_t i, const std::vector<double>& v) { return m.bytes[i] / 50e9 / v[0] / v[1]; });
  EXPECT_NE(c.figures[0].identified(), c.figures[1].identified());
  const FittedFigure& left = c.figures[c.figures[0].identified() ? 1 : 0];
  EXPECT_NE(left.why_not.find("do not tell it from"), std::string::npos) << left.why_not;
}

// If two or more measurements are all 1.5 times as long as predicted, a figure is wrong; it is no noise.
TEST(CalibrationResult, WhatAllErrorsHaveInCommonIsFitted) {
  const std::vector<FreeFigure> level{{"level", 1, 1 / 1.22, 1.22, 0, 0}};
  for (const std::vector<double>& sizes : {std::vector<double>{1e8, 1e9}, {1e8, 3e8, 1e9, 3e9}}) {
    const Made m = made(sizes, 0, 50e9, 0.01);
    const CalibrationResult c = calibrate(
        level, m.measured, [&](std::size_t i, const std::vector<double>& v) { return m.bytes[i] / 50e9 / 1.5 * v[0]; });
    EXPECT_TRUE(c.figures[0].identified()) << c.figures[0].why_not;
    EXPECT_GT(c.figures[0].value, 1.22);
    EXPECT_LT(c.figures[0].value, 1.55);
  }
}

TEST(CalibrationResult, AnOutlierPullsLittle) {
  Made m = made({1e7, 3e7, 1e8, 3e8, 1e9, 3e9, 1e10}, 20e-6, 90e9, 0.02);
  m.measured[3].seconds *= 5;
  EXPECT_NEAR(run(m).figures[1].value, 90e9, 12e9);
}

TEST(CalibrationResult, OneGroupHasNothingToLeaveOutAndNoneIsRefused) {
  Made m = made({1e7, 1e8}, 20e-6, 90e9, 0.02);
  for (Measurement& each : m.measured) each.group = "all";
  EXPECT_TRUE(run(m).one_group);
  EXPECT_TRUE(run(m).left_out.empty());
  EXPECT_NE(why([] { run({}); }).find("no measurement"), std::string::npos);
}

TEST(CalibrationResult, AFigureStaysWithinItsBounds) {
  const Made m = made({1e8, 1e9}, 0, 10e9, 0.01);
  const std::vector<FreeFigure> part{{"part", 0.5, 0.2, 0.8, 0, 1}};
  const CalibrationResult c = calibrate(
      part, m.measured, [&](std::size_t i, const std::vector<double>& v) { return m.bytes[i] / 50e9 * (0.5 + v[0]); });
  EXPECT_LE(c.figures[0].value, 1);
}

TEST(CalibrationResult, AStoppedPredictionStops) {
  const Made m = made({1e8, 1e9}, 0, 10e9, 0.01);
  EXPECT_TRUE(calibrate(figures, m.measured, [](std::size_t, const std::vector<double>&) { return 0.0; }).stopped);
}

TEST(MeasuredTable, ReadsCommaSeparatedValues) {
  const MeasuredTable t =
      read_table("# of a run\nName,step_ms,\"a,b\"\n one , 12.5 ,\"x \"\"y\"\"\"\n\ntwo,3,-\n", "f.csv");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.rows[0].word("name"), "one");
  EXPECT_DOUBLE_EQ(*t.rows[0].seconds(), 0.0125);
  EXPECT_EQ(t.rows[0].word("a,b"), "x \"y\"");
  EXPECT_EQ(t.rows[1].place, "f.csv:5");
  EXPECT_EQ(t.rows[1].find("a,b"), nullptr);
}

TEST(MeasuredTable, ReadsWhatNccomTestPrints) {
  const MeasuredTable t = read_table(
      "2024-05-14 INFO: NCCOM_TEST starts\n"
      "    size(B)    count(elems)     type    time:avg(us)    algbw(GB/s)    busbw(GB/s)\n"
      "     524288          131072     fp32           24.15          21.71          42.07\n"
      "    1048576          262144     fp32           49.56          21.16          40.99\n"
      "Avg bus bandwidth:    41.53GB/s\n",
      "out.txt");
  ASSERT_EQ(t.rows.size(), 2u);
  EXPECT_EQ(t.rows[1].number("size(b)"), 1048576);
  EXPECT_DOUBLE_EQ(*t.rows[0].seconds(), 24.15e-6);
  EXPECT_EQ(t.rows[0].place, "out.txt:3");
}

TEST(MeasuredTable, AnAlgorithmInTheLastColumnHasSeveralWords) {
  const MeasuredTable t = read_table(
      "size(B) time:avg(us) algorithm\n"
      "1024 20 rdh dims=4x4x4 channels=4\n"
      "2048 30 ring\n",
      "out.txt");
  EXPECT_EQ(t.rows[0].word("algorithm"), "rdh dims=4x4x4 channels=4");
  EXPECT_EQ(t.rows[1].word("algorithm"), "ring");
  EXPECT_NE(why([] { read_table("bytes time_us\n1024 20 ring\n", "f.txt"); }).find("3 columns: expected 2"),
            std::string::npos);
}

TEST(MeasuredTable, AByteOrderMarkIsNoPartOfTheFirstName) {
  const MeasuredTable t = read_table(
      "\xef\xbb\xbf"
      "bytes,time_us\n1024,20\n",
      "f.csv");
  EXPECT_EQ(t.columns, (std::vector<std::string>{"bytes", "time_us"}));
}

TEST(MeasuredTable, SaysWhereAFaultIs) {
  const auto fault = [](const char* text) { return why([&] { read_table(text, "f.csv"); }); };
  EXPECT_NE(fault("a,b\n1\n").find("f.csv:2: 1 columns: expected 2"), std::string::npos);
  EXPECT_NE(fault("a,a\n1,2\n").find("f.csv:1: column 'a'"), std::string::npos);
  EXPECT_NE(fault("a,b\n\"1,2\n").find("f.csv:2: a quote that does not end"), std::string::npos);
  EXPECT_NE(fault("").find("no row of measurements"), std::string::npos);
  const TableRow row = read_table("step_ms\nquick\n", "f.csv").rows[0];
  EXPECT_NE(why([&] { (void)row.seconds(); }).find("f.csv:2: step_ms is 'quick': expected a number above 0"),
            std::string::npos);
}

}  // namespace
}  // namespace trellis::measure
