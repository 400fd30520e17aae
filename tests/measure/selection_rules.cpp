#include "measure/selection_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "schedule/algorithms/algorithm.h"

namespace trellis::measure {
namespace {

using schedule::Collective;

std::vector<CandidateCost> costs(std::vector<std::pair<const char*, double>> all) {
  std::ranges::stable_sort(all, {}, &std::pair<const char*, double>::second);
  std::vector<CandidateCost> found;
  for (const auto& [name, us] : all) found.push_back({schedule::algorithm_config_named(name), us, 9});
  return found;
}

std::string table(const std::vector<SizeCosts>& sizes) {
  ccl::SelectionTable all;
  for (const ccl::SelectionRule& rule : rules_for(Collective::all_reduce, 4, sizes)) all.add(rule);
  const std::string text = all.text();
  const std::string heading =
      "# collective ranks from_bytes algorithm[(levels)][@dims][^order][*channels][/segments] [type]\n";
  EXPECT_TRUE(text.starts_with(heading)) << text;
  EXPECT_TRUE(text.ends_with("end\n")) << text;
  const std::string rules = text.substr(heading.size(), text.size() - heading.size() - 4);
  return rules.starts_with("machine *\n") ? rules.substr(rules.find('\n') + 1) : rules;
}

TEST(TuneRules, NeighboursWithOneWinnerAreOneRule) {
  EXPECT_EQ(table({{8, costs({{"ring", 2}, {"mesh", 1}})},
                   {16, costs({{"ring", 2}, {"mesh", 1}})},
                   {32, costs({{"ring*2/4", 1}, {"mesh", 2}})},
                   {64, costs({{"ring*2/4", 1}, {"mesh", 2}})}}),
            "all_reduce 4 0 mesh\nall_reduce 4 32 ring channels=2 segments=4\n");
}

TEST(TuneRules, AWinnerMustBeBetterByThreePercent) {
  EXPECT_EQ(table({{8, costs({{"ring", 2}, {"mesh", 1}})}, {16, costs({{"ring", 0.98}, {"mesh", 1}})}}),
            "all_reduce 4 0 mesh\n");
  EXPECT_EQ(table({{8, costs({{"ring", 2}, {"mesh", 1}})}, {16, costs({{"ring", 0.96}, {"mesh", 1}})}}),
            "all_reduce 4 0 mesh\nall_reduce 4 16 ring\n");
}

TEST(TuneRules, WhoCantServeASizeLosesIt) {
  EXPECT_EQ(table({{8, costs({{"ring", 1}})}, {16, costs({{"mesh", 5}})}, {32, {}}}),
            "all_reduce 4 0 ring\nall_reduce 4 16 mesh\n");
  EXPECT_EQ(table({}), "");
}

TEST(TuneRules, Sizes) {
  EXPECT_EQ(parse_sizes("8..64"), (std::vector<std::uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(parse_sizes("1KB,8,8..16"), (std::vector<std::uint64_t>{8, 16, 1024}));
  for (const char* bad : {"", "0", "64..8", "8..", "x", "0..8", "32T", "8T..32T"})
    EXPECT_THROW(parse_sizes(bad), std::invalid_argument) << bad;
}

TEST(TuneRules, AReasonNamesTheRule) {
  const auto all = ccl::SelectionTable::read(
      "all_reduce 2 0 mesh\nall_reduce 8 0 mesh\nall_reduce 8 65536 ring\n"
      "machine here\nall_reduce 8 0 bine\nend\n");
  EXPECT_EQ(reason(all, Collective::all_reduce, 8, 1 << 20, kernels::DType::f32, "host", {"ring"}),
            "the rule 'all_reduce 8 65536 ring' begins at 64 KiB");
  EXPECT_EQ(reason(all, Collective::all_reduce, 7, 8, kernels::DType::f32, "host", {"mesh"}),
            "the rule 'all_reduce 8 0 mesh' begins at 0, and 8 is the nearest number of ranks that has rules");
  EXPECT_EQ(reason(all, Collective::all_reduce, 8, 1 << 20, kernels::DType::f32, "host", {"mesh"}),
            "the rule 'all_reduce 8 0 mesh' begins at 0; 1 rule before it can't serve this");
  EXPECT_EQ(reason(all, Collective::broadcast, 8, 8, kernels::DType::f32, "host", {"ring"}),
            "the table has no rule for broadcast: it is the first by name that serves");
  EXPECT_EQ(reason(all, Collective::all_reduce, 8, 8, kernels::DType::f32, "here", {"bine"}),
            "the rule 'all_reduce 8 0 bine' of machine here begins at 0");
  EXPECT_EQ(reason(all, Collective::all_reduce, 8, 1 << 20, kernels::DType::f32, "here", {"ring"}),
            "the rule 'all_reduce 8 65536 ring' begins at 64 KiB; 1 rule before it can't serve this");
  EXPECT_EQ(reason(all, Collective::all_reduce, 8, 8, kernels::DType::f32, "here", {"direct"}),
            "no rule of the table for all_reduce can serve this: it is the first by name that does");
  EXPECT_EQ(reason(all, Collective::broadcast, 8, 8, kernels::DType::f32, "host", {"bine", true, 8}),
            "the table has no rule for broadcast; the model of the host selects (--predict)");
}

// The model may select an algorithm that the table has as well: the reason names the model all the same.
TEST(TuneRules, AReasonNamesTheModelWhereItSelects) {
  const auto few = ccl::SelectionTable::read("cores 1\nall_reduce 2 0 ring\ncores 2\nall_reduce 2 0 mesh\nend\n");
  const auto why = [&](const ccl::Selected& selected) {
    return reason(few, Collective::all_reduce, 8, 64, kernels::DType::f32, "host", selected);
  };
  for (const char* const algorithm : {"ring", "bine"})
    EXPECT_EQ(why({algorithm, true, 8}),
              "its rules were measured where ranks share 2 cores; the model of the host selects (--predict)");
  EXPECT_EQ(why({"mesh", false, 2}),
            "the rule 'all_reduce 2 0 mesh' begins at 0, and 2 is the nearest number of ranks that has rules");
  EXPECT_EQ(why({"ring", false, 1}),
            "the rule 'all_reduce 2 0 ring' begins at 0, and 2 is the nearest number of ranks that has rules");
}

TEST(TuneCandidates, EachIsServedAndThereOnce) {
  for (const Collective c : {Collective::all_reduce, Collective::all_gather, Collective::barrier})
    for (const ccl::Rank ranks : {2, 3}) {
      std::set<std::string> seen;
      for (const ccl::AlgorithmConfig& choice : candidates(c, ranks)) {
        EXPECT_TRUE(seen.insert(text_of(choice)).second);
        const schedule::Algorithm& a = schedule::algorithm_named(choice.algorithm);
        EXPECT_EQ(schedule::refusal(a, {.operation = {.collective = c},
                                        .dims = {ranks},
                                        .channels = choice.channels,
                                        .segments = choice.segments}),
                  "");
      }
      EXPECT_GE(seen.size(), 1u);
    }
  const auto all = candidates(Collective::all_reduce, 2);
  for (const char* name : {"ring", "ring*2/4", "mesh", "recursive_doubling"})
    EXPECT_NE(std::ranges::find(all, schedule::algorithm_config_named(name)), all.end()) << name;
}

}  // namespace
}  // namespace trellis::measure
