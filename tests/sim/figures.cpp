#include "sim/hardware/figures/figures.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "sim/hardware/chip/chip.h"
#include "tests/why.h"

namespace trellis::sim {
namespace {

Figures read(std::string_view line) { return Figures::read(line); }

std::string fault_of(std::string_view text, const Figures::Others& others = {}) {
  return why([&] { Figures::read(text, others); });
}

TEST(Figures, ReadsValuesInTheirUnits) {
  const Figures f = Figures::read(
      "# a chip\n"
      "tensor.clock = 2.8 GHz | documented | guide.rst#section\n"
      "vector.latency = 339 ns | fitted instr.a instr.b | 2N and this | by hand  # at 1.12 GHz\n"
      "\r\n"
      "hbm.latency = 300 ns 150..600 | assumed | as other HBM2e controllers\n"
      "ring.size=64|documented|x\n"
      "sbuf = 24 MiB | documented | x\n"
      "hbm = 2.9 TB/s 2..3.1 TB/s | assumed | x\n"
      "efa = 100 Gbit/s | documented | x\n"
      "start = 64 cycles | documented | x\n"
      "less = -2.5 ns | documented | x");
  EXPECT_EQ(f.frequency("tensor.clock"), 2.8e9);
  EXPECT_EQ(f.at("tensor.clock").source, "guide.rst#section");
  EXPECT_EQ(f.time("vector.latency"), 339'000);
  EXPECT_EQ(f.at("vector.latency").records, (std::vector<std::string>{"instr.a", "instr.b"}));
  EXPECT_EQ(f.at("vector.latency").source, "2N and this | by hand");
  EXPECT_EQ(f.at("hbm.latency").low, 150e-9);
  EXPECT_EQ(f.at("hbm.latency").high, 600e-9);
  EXPECT_EQ(f.at("hbm.latency").mark, FigureProvenance::assumed);
  EXPECT_EQ(f.count("ring.size"), 64);
  EXPECT_EQ(f.bytes("sbuf"), 24 * 1024 * 1024.0);
  EXPECT_EQ(f.at("hbm").low, 2e12);
  EXPECT_EQ(f.rate("efa"), 12.5e9);
  EXPECT_EQ(f.cycles("start"), 64);
  EXPECT_EQ(f.time("less"), -2'500);
}

TEST(Figures, EveryUnitHasItsSize) {
  const std::pair<std::string_view, double> sizes[] = {
      {"ps", 1e-12}, {"ns", 1e-9},  {"us", 1e-6},       {"ms", 1e-3},     {"s", 1},         {"B", 1},   {"KB", 1e3},
      {"MB", 1e6},   {"GB", 1e9},   {"KiB", 1024},      {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B/s", 1}, {"KB/s", 1e3},
      {"MB/s", 1e6}, {"GB/s", 1e9}, {"GiB/s", 1 << 30}, {"TB/s", 1e12},   {"B/ns", 1e9},    {"Hz", 1},  {"KHz", 1e3},
      {"MHz", 1e6},  {"GHz", 1e9},  {"cycles", 1},      {"Gbit/s", 125e6}};
  for (const auto& [unit, size] : sizes)
    EXPECT_EQ(read("k = 1 " + std::string(unit) + " | documented | x").at("k").value, size) << unit;
}

TEST(Figures, ReadsBackWhatItPrints) {
  const std::string_view values[] = {"300 ns",
                                     "0.3 ns 0.1..0.7",
                                     "1e-30 s",
                                     "3.3333333333333335e-09 s",
                                     "123456789.123 B/s",
                                     "24 GiB",
                                     "1.4 GHz",
                                     "24 GB 1..25 GiB",
                                     "0",
                                     "-7.25 -8..0",
                                     "17.07 B/ns",
                                     "64 cycles"};
  for (const std::string_view value : values) {
    const bool ranged = value.find("..") != value.npos;
    const Figures once = read("k = " + std::string(value) + (ranged ? " | assumed | x" : " | fitted a b | x"));
    const Figures twice = read(once.text());
    EXPECT_EQ(once.at("k").value, twice.at("k").value) << once.text();
    EXPECT_EQ(once.at("k").low, twice.at("k").low) << once.text();
    EXPECT_EQ(once.at("k").high, twice.at("k").high) << once.text();
    EXPECT_EQ(once.at("k").mark, twice.at("k").mark);
    EXPECT_EQ(once.text(), twice.text());
  }
  EXPECT_EQ(read("k = 300 ns 0.15..600 us | assumed | x").text(), "k = 300 ns 150..600000 | assumed | x\n");
  EXPECT_EQ(read("k = 0.0000014 GHz | documented | x").text(), "k = 1.4 KHz | documented | x\n");
}

TEST(Figures, NamesTheLineTheFaultAndWhatWasExpected) {
  const std::string d = " | documented | x";
  EXPECT_EQ(fault_of("\n\nabc"), "line 3: 'abc': expected KEY = VALUE [UNIT] [LOW..HIGH [UNIT]] | MARK | SOURCE");
  EXPECT_EQ(fault_of("a = 1 | documented |"),
            "line 1: a without a source: expected KEY = VALUE [UNIT] [LOW..HIGH "
            "[UNIT]] | MARK | SOURCE");
  EXPECT_EQ(fault_of("a b = 1" + d), "line 1: 'a b' is not a key: expected letters, digits, '_', '-' and '.' between");
  EXPECT_EQ(fault_of("a = 1" + d + "\na = 2" + d), "line 2: a was given above: expected once a file");
  EXPECT_EQ(fault_of("a = x ns" + d), "line 1: 'x' is not a finite number");
  for (const char* number : {"inf", "nan", "1e400", "0x10", "1,000", "+1"})
    EXPECT_EQ(fault_of("a = " + std::string(number) + d),
              "line 1: '" + std::string(number) + "' is not a finite number");
  EXPECT_TRUE(fault_of("a = 1e308 TB/s" + d).ends_with("is beyond all numbers"));
  EXPECT_TRUE(
      fault_of("a = 1 nsec" + d).starts_with("line 1: 'nsec' is not a unit: expected none, ps, ns, us, ms, s,"));
  EXPECT_EQ(fault_of("a = 1 ns 2..3 | assumed | x"), "line 1: 1 lies outside its range 2..3");
  EXPECT_EQ(fault_of("a = 1 ns 0..3 GB | assumed | x"), "line 1: the range is in 'GB', the value in 'ns'");
  EXPECT_EQ(fault_of("a = 1 ns | assumed | x"), "line 1: a is assumed: expected its range LOW..HIGH after the value");
  EXPECT_EQ(fault_of("a = 1 ns 0..2" + d), "line 1: a is documented: expected no range after the value");
  EXPECT_EQ(fault_of("a = 1 | fitted | x"), "line 1: expected the records that it is fitted to after 'fitted'");
  EXPECT_EQ(fault_of("a = 1 | known | x"),
            "line 1: 'known' is not a mark: expected documented, fitted RECORD... or assumed");
  EXPECT_EQ(fault_of("a = 1 | documented well | x"), "line 1: 'well' after 'documented': expected '|'");
  EXPECT_EQ(fault_of("a = -1 B" + d), "line 1: -1 B is negative");
  EXPECT_EQ(fault_of("a = 0 Hz" + d), "line 1: a frequency of 0");
  EXPECT_EQ(fault_of("a = 1 ns s" + d), "line 1: expected VALUE [UNIT] [LOW..HIGH [UNIT]] before '|'");
}

TEST(Figures, TakesOverAnotherFile) {
  const Figures::Others others = [](std::string_view name) -> std::string_view {
    if (name == "base") return "a = 1 | documented | base\nb = 2 | documented | base";
    if (name == "bad") return "\na = ? | documented | x";
    if (name == "loop") return "like pool";
    if (name == "pool") return "like loop";
    throw std::invalid_argument("no such file");
  };
  const Figures f = Figures::read("like base\nb = 3 ns | documented | here\n", others);
  EXPECT_EQ(f.number("a"), 1);
  EXPECT_EQ(f.time("b"), 3'000);
  EXPECT_EQ(f.at("b").source, "here");
  EXPECT_EQ(fault_of("\nlike bad", others), "'bad' line 2: '?' is not a finite number");
  EXPECT_EQ(fault_of("like loop", others), "'pool' line 1: 'like loop' leads back to itself: loop -> pool -> loop");
  EXPECT_EQ(fault_of("like none", others), "line 1: 'like none': no such file");
  EXPECT_EQ(fault_of("like base"), "line 1: 'like base': there are no other files here");
  EXPECT_EQ(fault_of("a = 1 | documented | x\nlike base", others),
            "line 2: 'like base' expected once, before the first figure");
}

TEST(Figures, AskingForWhatIsNotThereNamesWhatIs) {
  Figures f = read("dma.size = 64 B | documented | x\nhbm.rate = 1 GB/s | documented | x\nx = 1.5 | documented | x");
  EXPECT_EQ(why([&] { f.at("dma.sise"); }),
            "the figure 'dma.sise' is missing: expected a line `dma.sise = VALUE | MARK | SOURCE`");
  EXPECT_EQ(why([&] { f.at("none"); }), "the figure 'none' is missing: expected a line `none = VALUE | MARK | SOURCE`");
  EXPECT_EQ(why([&] { f.time("dma.size"); }), "dma.size is a bytes: expected a time");
  EXPECT_EQ(why([&] { f.count("x"); }), "x is 1.5: expected a whole number from 0 to 2147483647");
  for (const double large : {2147483648.0, 4294967300.0, 1e12}) {
    f.set("x", large);
    EXPECT_EQ(why([&] { f.count("x"); }),
              fmt::format("x is {:.0f}: expected a whole number from 0 to 2147483647", large));
  }
  EXPECT_EQ(why([&] { f.expect_all_used("chip y"); }), "chip y: nothing asks for a figure 'hbm.rate'; is it misspelt?");
  f.rate("hbm.rate");
  EXPECT_NO_THROW(f.expect_all_used("chip y"));
}

TEST(Figures, WhatIf) {
  Figures f = read("a = 1 ns 0.5..2 | assumed | x\nb = 1 GB/s | documented | x");
  f.set("a", 3e-9);
  EXPECT_EQ(f.time("a"), 3'000);
  EXPECT_EQ(f.at("a").high, 3e-9);
  EXPECT_EQ(Figures::read(f.text()).time("a"), 3'000);
  f.set("b", "12 GB/s");
  EXPECT_EQ(f.rate("b"), 12e9);
  EXPECT_EQ(why([&] { f.set("b", "12 ns"); }), "b cannot be '12 ns': expected a rate, such as '12 GB/s'");
  EXPECT_EQ(why([&] { f.set("b", -1.0); }), "b cannot be -1");
  EXPECT_EQ(why([&] { f.set("b", std::numeric_limits<double>::infinity()); }), "b cannot be inf");
  EXPECT_EQ(why([&] { f.set("c", "1"); }), "no figure 'c': expected one that begins with a, b");
}

// Negative times would have a core's events happen before now, and work cannot be divided among the rows of an array
// that has none.
TEST(ChipSpec, RefusesWhatTimeCannotBeMadeOf) {
  const auto told = [](std::string_view key, std::string_view value) {
    Figures f = chip_named("trn2").figures();
    f.set(key, value);
    return why([&] { ChipSpec("trn2", f); });
  };
  EXPECT_EQ(told("semaphore.latency", "0 us"), "");
  EXPECT_EQ(told("semaphore.latency", "-1 us"), "trn2: semaphore.latency must be at least 0");
  EXPECT_EQ(told("dma.done", "-1 us"), "trn2: dma.done must be at least 0");
  EXPECT_EQ(told("vector.latency", "-1 us"), "trn2: vector.latency must be at least 0");
  EXPECT_EQ(told("tensor.rows", "0"), "trn2: tensor.rows and tensor.columns must be above 0");
  EXPECT_EQ(told("tensor.columns", "0"), "trn2: tensor.rows and tensor.columns must be above 0");
}

}  // namespace
}  // namespace trellis::sim
