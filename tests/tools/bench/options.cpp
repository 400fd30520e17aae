#include "tools/bench/options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/why.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {

using namespace measure;
namespace {

using Words = std::vector<std::string>;

BenchSettings read(const Words& words) {
  CLI::App app;
  BenchOptions options;
  add_bench_options(app, options);
  app.parse(words);
  expect_values(app.whole());  // as the program does before each command
  return bench_settings(options);
}

std::string refusal(const Words& words) {
  return why([&] { read(words); });
}

TEST(BenchOptions, DefaultsAreThoseOfNcclTests) {
  for (const char* const op : {"all_reduce_perf", "all_reduce"}) {
    const BenchSettings s = read({op});
    EXPECT_EQ(s.style, BenchStyle::nccl);
    EXPECT_EQ(s.types, std::vector{kernels::DType::f32});
    EXPECT_EQ(s.warm_ups, 1);
    EXPECT_EQ(s.check_passes, 1);
    EXPECT_TRUE(s.in_place);
    EXPECT_EQ(s.sizes, std::vector<std::uint64_t>{32u << 20});
    EXPECT_EQ(s.stats, (Words{"avg", "p50", "p99"}));
  }
}

TEST(BenchOptions, SizesStep) {
  EXPECT_EQ(read({"all_reduce_perf", "-b", "1M", "-e", "3M"}).sizes,
            (std::vector<std::uint64_t>{1 << 20, 2 << 20, 3 << 20}));
  EXPECT_EQ(read({"all_reduce", "-b", "0", "-e", "100", "-i", "10"}).sizes.size(), 11u);
  EXPECT_EQ(read({"all_reduce", "-b", "8", "-e", "1kb", "-f", "4"}).sizes,
            (std::vector<std::uint64_t>{8, 32, 128, 512}));
  EXPECT_EQ(read({"barrier"}).sizes, std::vector<std::uint64_t>{0});
}

TEST(BenchOptions, WhatGoesWithASimulatedMachine) {
  const BenchSettings s =
      read({"all_reduce", "--on", "sim:ring:4", "--era", "2023", "--what-if", "a=1", "--what-if", "b=2"});
  EXPECT_EQ(s.era, "2023");
  EXPECT_EQ(s.what_if, (Words{"a=1", "b=2"}));
  EXPECT_TRUE(s.interval);
  EXPECT_FALSE(read({"all_reduce", "--on", "sim:ring:4", "--no-interval"}).interval);
  EXPECT_FALSE(read({"all_reduce"}).interval);
  for (const Words& words : {Words{"--era", "2023"}, {"--what-if", "dead:0-1"}, {"--no-interval"}}) {
    Words all = {"all_reduce"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(refusal(all), words.front() + " goes with --on sim:MACHINE");
  }
}

TEST(BenchOptions, LettersMeanWhatTheyDoInNcclTests) {
  for (const char* const op : {"broadcast_perf", "broadcast"}) {
    const BenchSettings s = read({op, "-r", "1", "-N", "3", "-I", "1", "-S", "1", "-t", "4", "-u", "2", "-c", "0"});
    EXPECT_EQ(s.roots, std::vector<ccl::Rank>{1});
    EXPECT_EQ(s.cycles, 3);
    EXPECT_TRUE(s.per_iteration);
    EXPECT_TRUE(s.timestamps);
    EXPECT_EQ(s.ranks, 4);
    EXPECT_TRUE(s.threads);
    EXPECT_EQ(s.unaligned, 2);
    EXPECT_EQ(s.check_passes, 0);
  }
}

TEST(BenchOptions, TheTableOfNccomTest) {
  const BenchSettings s = read({"broadcast_perf", "--style", "nccom", "--stats", "avg", "p50", "--inside", "8"});
  EXPECT_EQ(s.style, BenchStyle::nccom);
  EXPECT_EQ(s.stats, (Words{"avg", "p50"}));
  EXPECT_EQ(s.repeated, 8);
  EXPECT_FALSE(s.in_place);
  EXPECT_EQ(read({"all_reduce", "--style", "nccl"}).style, BenchStyle::nccl);
  EXPECT_EQ(refusal({"all_reduce", "--style", "mpi"}), "--style mpi: expected nccl or nccom");
}

TEST(BenchOptions, Checks) {
  EXPECT_TRUE(read({"broadcast", "-c", "all_ones"}).all_ones);
  EXPECT_EQ(read({"broadcast", "-c", "all_ones"}).check_passes, 1);
  EXPECT_EQ(read({"broadcast", "--check", "random"}).check_passes, 1);
  EXPECT_EQ(read({"broadcast", "--check", "7"}).check_passes, 7);
  EXPECT_EQ(read({"broadcast", "--check"}).check_passes, 1);
}

TEST(BenchOptions, TheOperationMayFollowAFlagThatTakesValues) {
  EXPECT_EQ(read({"--style", "nccom", "--stats", "avg", "p99", "allr"}).stats, (Words{"avg", "p99"}));
  EXPECT_EQ(read({"-c", "all_gather"}).op.collective, schedule::Collective::all_gather);
  EXPECT_EQ(read({"-c", "all_gather"}).check_passes, 1);
  EXPECT_EQ(read({"--ranks", "2", "--inside", "3", "allr"}).ranks, 2);
  EXPECT_EQ(read({"-c", "1", "all_gather_perf"}).check_passes, 1);
  EXPECT_EQ(refusal({"--ranks", "2"}), "no operation: trellis bench all_reduce, trellis bench all_reduce_perf, ...");
}

TEST(BenchOptions, AllKinds) {
  EXPECT_EQ(read({"all_reduce_perf", "-d", "all"}).types.size(), kernels::dtype_count);
  EXPECT_EQ(read({"all_reduce_perf", "-o", "all"}).reductions.size(), kernels::reduction_count);
  EXPECT_EQ(read({"all_gather_perf", "-o", "all"}).reductions.size(), 1u);
  EXPECT_TRUE(read({"reduce_perf", "-r", "all"}).roots.empty());
}

TEST(BenchOptions, PairsInBothSpellings) {
  const std::vector<schedule::Pair> both = {{0, 1}, {1, 0}};
  EXPECT_EQ(read({"permute", "--custom-src-target-pairs", "[[0,1],[1,0]]"}).pairs, both);
  EXPECT_EQ(read({"permute", "--custom-src-target-pairs", "0:1,1:0"}).pairs, both);
  for (const std::string bad : {"[[0]]", "[]", "[[0,1", "[[0,1,2]]", "[[0.5,1]]", "[[1e300,1]]", "[[-1,0]]", "[0,1]",
                                "[[\"a\",1]]", "[[4294967296,1]]", "[[18446744073709551615,1]]"})
    EXPECT_NE(refusal({"permute", "--custom-src-target-pairs", bad}).find(bad), std::string::npos) << bad;
  EXPECT_EQ(refusal({"permute", "--custom-src-target-pairs", "[[0,-1]]"}),
            "--custom-src-target-pairs [[0,-1]]: -1 is no rank: expected 0:1,1:0 or [[0,1],[1,0]]");
  EXPECT_EQ(refusal({"allr", "--custom-src-target-pairs", "0:1"}),
            "--custom-src-target-pairs 0:1: only permute has pairs, and this is all_reduce");
}

std::string counts_refusal(const std::string& text, const std::string& op = "alltoallv") {
  const std::string path = testing::TempDir() + "counts.json";
  std::ofstream(path) << text;
  std::string said = refusal({op, "--variable-size-op-metadata", path});
  if (const std::size_t at = said.find(path); at != std::string::npos) said.replace(at, path.size(), "FILE");
  return said;
}

TEST(BenchOptions, CountsOfBlocks) {
  for (const char* good : {"[1, 2]", "{\"counts\": [0, 2.0]}", "[[1, 2], [3, 1e3]]", "[9007199254740992]"})
    EXPECT_EQ(counts_refusal(good), "") << good;
  for (const auto& [text, named] : {std::pair<std::string, std::string>{"[1, 1e300]", "1e+300"},
                                    {"[-1, 2]", "-1"},
                                    {"[0.5]", "0.5"},
                                    {"[[1], [\"two\"]]", "\"two\""},
                                    {"[null]", "null"},
                                    {"[true]", "true"},
                                    {"[1, [2]]", "array of 1"},
                                    {"[9007199254740994]", "9007199254740994"}})
    EXPECT_EQ(counts_refusal(text), "'FILE': count " + named + ": expected a whole number from 0 to 9007199254740992");
  for (const char* bad : {"[]", "[[]]", "[0, 0]"}) EXPECT_EQ(counts_refusal(bad), "'FILE': no count above 0");
  for (const char* bad : {"", "x", "5", "{}", "{\"counts\": 5}", "[1e400]"})
    EXPECT_EQ(counts_refusal(bad).rfind("'FILE' holds no counts: expected [1, 2]", 0), 0u) << bad;
  EXPECT_EQ(counts_refusal("[[1], 2]"), "'FILE': 2: expected a list, as for other senders");
  EXPECT_EQ(counts_refusal("[1, 2]", "allr"),
            "--variable-size-op-metadata FILE: only the _v forms have counts, and this is all_reduce");
  EXPECT_EQ(counts_refusal("[[1, 2], [2, 1]]", "allgv"),
            "--variable-size-op-metadata FILE: only all_to_all_v has a list for each sender, and this is all_gather_v");
}

TEST(BenchOptions, WhatMeansNothingHereIsRefusedUnlessItIsTheDefault) {
  for (const Words& words :
       std::vector<Words>{{"-G", "0"}, {"-p", "1"}, {"-z", "0"}, {"-y", "0"}, {"-x", "0"}, {"-D", "0"}, {"-V", "16"}}) {
    Words all = words;
    all.emplace_back("all_reduce_perf");
    EXPECT_EQ(refusal(all), "") << words.front();
  }
  EXPECT_EQ(refusal({"all_reduce_perf", "-G", "1"}),
            "--cudagraph 1: expected 0; there are no graphs: plans are kept by themselves");
  EXPECT_EQ(refusal({"all_reduce_perf", "-p", "7"}),
            "--parallel_init 7: expected 0 or 1; ranks always begin side by side");
  EXPECT_EQ(refusal({"send_recv", "--algorithm", "ring"}), "--algorithm ring: send_recv goes by none");
}

TEST(BenchOptions, MistakesNameTheFlagAndTheValue) {
  EXPECT_EQ(refusal({"allr", "-b", "5x"}), "'5x' is no size: expected one like 8, 64KB, 1M or 2GiB");
  EXPECT_EQ(refusal({"allr", "-b", "2M", "-e", "1M"}), "-b 2M -e 1M: expected the first to be the smaller");
  EXPECT_EQ(refusal({"allr", "-f", "1"}), "-f 1: expected at least 2");
  EXPECT_EQ(refusal({"allr", "-n", "0"}), "-n 0: expected 1 to 100000000");
  for (const std::string bad : {"mean", "p101", "p", "p5x", "p-1"})
    EXPECT_EQ(refusal({"allr", "--style", "nccom", "--stats", bad}), "--stats " + bad + ": expected avg or p0 to p100");
  EXPECT_EQ(refusal({"allr", "-a", "-1"}), "-a -1: expected 0 to 3");
  EXPECT_EQ(refusal({"allr", "--style", "nccom", "-M", "1"}), "--memory: the table of nccl-tests has it: --style nccl");
  EXPECT_EQ(refusal({"all_reduce_perf", "--show-input-output-size"}),
            "--show-input-output-size: the table of nccom-test has it: --style nccom");
  EXPECT_EQ(refusal({"allr", "-b", "0", "-e", "0", "--plot", "x.svg"}), "--plot: expected a size above 0");
  EXPECT_EQ(refusal({"allr", "--check", "zeros"}),
            "--check zeros: expected a number of passes from 0 to 1000000, random or all_ones");
  EXPECT_EQ(refusal({"all_reduce_perf", "-r", "3"}),
            "");  // ignored for a collective without a root, as in nccl-tests
  EXPECT_EQ(refusal({"reduce_perf", "-r", "x"}), "--root x: expected a whole number from 0 to 16777216");
  EXPECT_EQ(refusal({"all_reduce_perf", "--ranks", "3", "-t", "2"}), "3 ranks and 2 threads: expected one of them");
  EXPECT_EQ(refusal({"allr", "--streams", "0"}), "--streams 0: expected 1 to 64");
  EXPECT_EQ(refusal({"allr", "-f", "0"}), "-f 0: expected at least 2");
  EXPECT_EQ(refusal({"allr", "--run_cycles", "-1"}), "-N -1: expected 0 to 1073741824");
  EXPECT_EQ(refusal({"all_reduce_perf", "-I", "2"}), "-I 2: expected 0 or 1");
  EXPECT_EQ(refusal({"all_reduce_perf", "-C", "2"}), "-C 2: expected 0 or 1");
  EXPECT_EQ(refusal({"all_reduce_perf", "-n", "5", "-K", "5"}),
            "-K 5: expected fewer than the 5 iterations of each size");
  EXPECT_EQ(refusal({"all_reduce_perf", "-K", "19"}), "");
  EXPECT_EQ(refusal({"all_reduce_perf", "-K", "20"}), "-K 20: expected fewer than the 20 iterations of each size");
  for (const std::string seed : {"-1", "18446744073709551616", "1e3", "nan"})
    EXPECT_EQ(refusal({"allr", "--seed", seed}),
              "--seed " + seed + ": expected a whole number from 0 to 18446744073709551615");
  EXPECT_EQ(read({"allr", "--seed", "18446744073709551615"}).seed, ~std::uint64_t{0});
}

TEST(BenchOptions, NumbersOfRanks) {
  for (const std::string value : {"0", "-1", "1048577"})
    EXPECT_EQ(refusal({"allr", "--ranks", value}), "--ranks " + value + ": expected 1 to 1048576");
  EXPECT_EQ(refusal({"allr", "--nthreads", "0"}), "-t 0: expected 1 to 1024");
  EXPECT_EQ(refusal({"all_reduce_perf", "-g", "0"}), "-g 0: expected 1 to 1024");
  EXPECT_EQ(read({"all_reduce_perf"}).ranks, 0);
  for (const Words& words : {Words{"-t", "1"}, {"-g", "1"}, {"--nthreads", "1"}}) {
    EXPECT_EQ(read({"all_reduce_perf", words[0], words[1]}).ranks, 1);  // as in nccl-tests
    EXPECT_EQ(read({"all_reduce_perf", words[0], words[1], "--on", "sim:ring:4"}).ranks, 0);
  }
}

TEST(BenchOptions, ATimeoutOf0IsNone) {
  EXPECT_EQ(read({"allr"}).timeout, std::chrono::seconds(30));
  EXPECT_EQ(read({"allr", "-T", "7"}).timeout, std::chrono::seconds(7));
  EXPECT_GT(read({"all_reduce_perf", "-T", "0"}).timeout, std::chrono::hours(24 * 365));
  EXPECT_GT(ccl::Clock::now() + read({"all_reduce_perf", "-T", "0"}).timeout, ccl::Clock::now());
  for (const std::string value : {"-1", "10000001"})
    EXPECT_EQ(refusal({"allr", "-T", value}), "-T " + value + ": expected 0 to 10000000");
}

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    setenv(name, value, 1);
  }                                 // NOLINT(concurrency-mt-unsafe)
  ~Variable() { unsetenv(name_); }  // NOLINT(concurrency-mt-unsafe)
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(BenchOptions, WithoutFlagsTheEnvironmentCounts) {
  const Variable timeout("TRELLIS_TIMEOUT", "0.25"), device("TRELLIS_DEVICE", "sim:trn2.48xlarge");
  EXPECT_EQ(read({"allr"}).timeout, std::chrono::milliseconds(250));
  EXPECT_EQ(read({"allr", "-T", "7"}).timeout, std::chrono::seconds(7));
  EXPECT_EQ(read({"allr"}).device, "sim:trn2.48xlarge");
  EXPECT_TRUE(read({"allr"}).device_memory);
  EXPECT_EQ(read({"allr", "--device", "host"}).device, "host");
  EXPECT_EQ(read({"allr", "--on", "sim:ring:4"}).device, "host");
  EXPECT_NE(refusal({"allr", "-C", "1"}).find("the time of TRELLIS_DEVICE=sim:trn2.48xlarge is simulated"),
            std::string::npos);
}

TEST(BenchOptions, WhatTheEnvironmentSaysWronglyIsNamed) {
  {
    const Variable timeout("TRELLIS_TIMEOUT", "soon");
    EXPECT_NE(refusal({"allr"}).find("TRELLIS_TIMEOUT=soon: expected seconds"), std::string::npos);
  }
  const Variable device("TRELLIS_DEVICE", "gpu");
  EXPECT_TRUE(refusal({"allr"}).starts_with("TRELLIS_DEVICE=gpu: ")) << refusal({"allr"});
}

TEST(BenchOptions, NoValueIsEmpty) {
  for (const std::string flag :
       {"--ranks", "-b",    "-i",     "-f",          "-d",      "-n",   "-w", "-m", "-a", "-T", "--root",
        "--json",  "--csv", "--seed", "--algorithm", "--style", "--on", "-r", "-N", "-t", "-I"})
    EXPECT_NE(refusal({"broadcast", flag, ""}).find(" '': expected a value"), std::string::npos) << flag;
  EXPECT_TRUE(refusal({"", "-r", "2"}).starts_with("no operation")) << refusal({"", "-r", "2"});
  EXPECT_EQ(read({"allr", "--check", "-C", "0"}).check_passes, 1);
}

TEST(BenchOptions, AFactorGoesNoFurtherThanNumbersDo) {
  EXPECT_EQ(read({"allr", "-b", "1", "-e", "16T", "-f", "2147483647"}).sizes,
            (std::vector<std::uint64_t>{1, 2147483647}));
  EXPECT_EQ(read({"allr", "-b", "8T", "-e", "16T", "-f", "2097152"}).sizes, std::vector<std::uint64_t>{8ull << 40});
}

TEST(BenchOptions, BlocksOfTheNcclStyleAreMultiplesOf16Bytes) {
  const auto count = [](const char* style, const char* op, std::uint64_t bytes) {
    const BenchSettings s = read({op, "-d", "f32", "--style", style});
    return calls_for(s, bytes, kernels::DType::f32, kernels::Reduction::sum, 0, 3).front().count;
  };
  EXPECT_EQ(count("nccl", "all_gather", 100), 8u);
  EXPECT_EQ(count("nccom", "all_gather", 108), 9u);
  EXPECT_EQ(count("nccl", "all_gather", 40), 0u);
  EXPECT_EQ(count("nccl", "all_reduce", 100), 25u);
}

}  // namespace
}  // namespace trellis::tools
