// Selection tables: which of their rules a call gets, and how errors in their text are reported.
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "ccl/plan/selection_table.h"
#include "schedule/algorithms/algorithm.h"
#include "tests/folder.h"
#include "tests/why.h"

namespace trellis::ccl {
namespace {

using kernels::DType;
using schedule::Collective;

constexpr const char* table = R"(# a comment, and blank lines

all_reduce 2 0 recursive_doubling      # another
all_reduce 2 65536 ring*2/4
all_reduce 2 1024 mesh bf16
all_reduce 8 0 mesh
all_gather 4 0 direct
machine trn2.48xlarge                  # all that follows, to the next such line
all_reduce 16 0 ring*4
all_reduce 16 4096 bine bf16
machine rack
all_gather 8 0 split(hierarchical(mesh,ring)@4x2:3,torus@4x2^1.0)*2
all_gather 8 4096 file:found/all.schedule
machine *
broadcast 2 64 binomial
end
)";

std::string first(Collective c, schedule::Rank ranks, std::uint64_t bytes, DType type = DType::f32,
                  const char* machine = "host") {
  const auto rules = SelectionTable::read(table).candidates(c, ranks, bytes, type, machine, 1);
  return rules.empty() ? "nothing" : text_of(rules.front().config);
}

TEST(SelectionTable, TheLastRuleThatBeginsAtTheSizeOrBelow) {
  EXPECT_EQ(first(Collective::all_reduce, 2, 0), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 2, 65535), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 2, 65536), "ring channels=2 segments=4");
  EXPECT_EQ(first(Collective::broadcast, 2, 8), "nothing");
  EXPECT_EQ(first(Collective::broadcast, 2, 64), "binomial");
}

TEST(SelectionTable, SayWithHowManyCoresTheyWereMeasured) {
  const SelectionTable all = SelectionTable::read(
      "cores 2\nall_reduce 4 0 ring\nmachine here\nall_reduce 8 0 mesh\ncores 4\nbroadcast 8 0 direct\n"
      "machine *\nall_gather 4 0 ring\nend\nbarrier 4 0 direct\nend\n");
  EXPECT_EQ(all.measured_cores(Collective::all_reduce, 8, "host", 1), 2);
  EXPECT_EQ(all.measured_cores(Collective::all_reduce, 8, "here", 1), 0) << "its own rules hold, whatever it has";
  EXPECT_EQ(all.measured_cores(Collective::broadcast, 2, "here", 1), 4);
  EXPECT_EQ(all.measured_cores(Collective::all_gather, 4, "host", 1), 0);
  EXPECT_EQ(all.measured_cores(Collective::barrier, 4, "host", 1), 0);
  EXPECT_EQ(all.measured_cores(Collective::reduce, 4, "host", 1), 0) << "there are no rules";
  EXPECT_EQ(SelectionTable::read(all.text()).text(), all.text());
  EXPECT_THROW(SelectionTable::read("cores -1\nend\n"), std::invalid_argument);
  EXPECT_THROW(SelectionTable::read("cores\nend\n"), std::invalid_argument);
  EXPECT_EQ(SelectionTable::built_in().measured_cores(Collective::all_reduce, 4, "host", 1), 2);
  EXPECT_EQ(SelectionTable::built_in().measured_cores(Collective::all_reduce, 4, "fabric", 1), 0);
}

// A host takes what was measured with as many cores as it has, or with the next larger number.
TEST(SelectionTable, OfSeveralNumbersOfCoresTheNearestFromAbove) {
  const SelectionTable all = SelectionTable::read(
      "all_reduce 8 0 bruck\ncores 8\nall_reduce 8 0 direct\nall_reduce 8 1024 mesh\ncores 2\nall_reduce 8 0 ring\n"
      "machine here\ncores 4\nbroadcast 8 0 ring\ncores 2\nbroadcast 8 0 direct\nend\n");
  const auto order = [&](Collective c, int cores, const char* machine) {
    std::string text;
    for (const SelectionRule& r : all.candidates(c, 8, 2048, DType::f32, machine, cores))
      text += text_of(r.config) + " ";
    return text + std::to_string(all.measured_cores(c, 8, machine, cores));
  };
  EXPECT_EQ(order(Collective::all_reduce, 1, "host"), "ring mesh direct bruck 2");
  EXPECT_EQ(order(Collective::all_reduce, 2, "host"), "ring mesh direct bruck 2");
  EXPECT_EQ(order(Collective::all_reduce, 3, "host"), "mesh direct bruck ring 8");
  EXPECT_EQ(order(Collective::all_reduce, 8, "host"), "mesh direct bruck ring 8");
  EXPECT_EQ(order(Collective::all_reduce, 9, "host"), "bruck mesh direct ring 0") << "it holds on any number";
  EXPECT_EQ(order(Collective::broadcast, 2, "here"), "direct ring 2");
  EXPECT_EQ(order(Collective::broadcast, 5, "here"), "ring direct 4") << "the model chooses, where there is one";
}

TEST(SelectionTable, AChoiceMayHaveAShapeAndPartsOrBeAFile) {
  EXPECT_EQ(first(Collective::all_gather, 8, 64, DType::f32, "rack"),
            "split levels=(hierarchical(mesh,ring)@4x2:3,torus@4x2^1.0) channels=2");
  EXPECT_EQ(first(Collective::all_gather, 8, 4096, DType::f32, "rack"), "file:found/all.schedule");
  const std::string text = SelectionTable::read(table).text();
  EXPECT_EQ(SelectionTable::read(text).text(), text);
}

TEST(SelectionTable, TheNearestNumberOfRanksCounts) {
  EXPECT_EQ(first(Collective::all_reduce, 3, 8), "recursive_doubling");
  EXPECT_EQ(first(Collective::all_reduce, 64, 8), "mesh");
  EXPECT_EQ(first(Collective::all_gather, 1000, 8), "direct");
}

TEST(SelectionTable, RulesOfATypeComeBeforeThoseOfAll) {
  EXPECT_EQ(first(Collective::all_reduce, 2, 1 << 20, DType::bf16), "mesh");
  EXPECT_EQ(first(Collective::all_reduce, 2, 8, DType::bf16), "recursive_doubling");
  const auto all = SelectionTable::read(table).candidates(Collective::all_reduce, 2, 1 << 20, DType::bf16, "host", 1);
  EXPECT_EQ(all.size(), 3U);  // the other rules follow, for calls that mesh can't serve
}

TEST(SelectionTable, AMachinesRulesComeBeforeThoseOfAnyMachine) {
  EXPECT_EQ(first(Collective::all_reduce, 2, 8, DType::f32, "trn2.48xlarge"), "ring channels=4");
  EXPECT_EQ(first(Collective::all_reduce, 2, 4096, DType::bf16, "trn2.48xlarge"), "bine");
  EXPECT_EQ(first(Collective::all_gather, 2, 8, DType::f32, "trn2.48xlarge"), "direct") << "it has none of its own";
  EXPECT_EQ(first(Collective::all_reduce, 16, 8, DType::f32, "trn1.32xlarge"), "mesh");
  EXPECT_EQ(first(Collective::all_reduce, 16, 8, DType::f32, "*"), "mesh");
  const auto all =
      SelectionTable::read(table).candidates(Collective::all_reduce, 16, 8192, DType::bf16, "trn2.48xlarge", 1);
  std::string text;
  for (const SelectionRule& r : all) text += text_of(r.config) + " ";
  EXPECT_EQ(text, "bine ring channels=4 mesh ");
}

TEST(SelectionTable, TextReadsBack) {
  const std::string text = SelectionTable::read(table).text();
  EXPECT_EQ(SelectionTable::read(text).text(), text);
  EXPECT_NE(text.find("\nmachine *\nall_reduce 2 0 recursive_doubling\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nall_reduce 2 1024 mesh bf16\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nmachine trn2.48xlarge\nall_reduce 16 0 ring channels=4\n"), std::string::npos) << text;
  EXPECT_EQ(SelectionTable::read(text + text).text().size(),
            2 * text.size() - text.find('\n') - 1 -
                std::string("machine *\nmachine rack\nmachine trn2.48xlarge\nend\n").size())
      << "one table after another is a table";
  const SelectionTable two = SelectionTable::read("machine here\nall_reduce 2 0 mesh\nend\nall_reduce 2 0 ring\nend\n");
  EXPECT_EQ(two.rules()[0].machine, "*") << "a table's first rules are anybody's";
}

TEST(SelectionTable, WhatIsWrongIsNamedWithItsLine) {
  const auto complaint = [](const char* text) { return why([&] { SelectionTable::read(text); }); };
  EXPECT_EQ(complaint("all_reduce 2 0\n"), "line 1: expected: collective ranks from_bytes algorithm [type]");
  EXPECT_EQ(complaint("\nall_reduce -2 0 ring\n"), "line 2: '-2' is no number of ranks: expected a whole number");
  EXPECT_EQ(complaint("machine\n"), "line 1: expected: machine NAME");
  EXPECT_EQ(complaint("# first\nmachine a b\n"), "line 2: expected: machine NAME");
  EXPECT_EQ(complaint("machine trn2,48\n"),
            "line 1: 'trn2,48' is no machine's name: expected letters, digits and any of .-_:+, or * for all");
  EXPECT_NE(complaint("all_reduce 2 0 ring f33").find("line 1: "), std::string::npos);
  EXPECT_NE(complaint("all_reduc 2 0 ring").find("all_reduce"), std::string::npos);
  EXPECT_NE(complaint("all_reduce 2 0 ring*0").find("channels=2, segments=4"), std::string::npos);
}

// What an interruption or a full disk leaves of a table must not be taken for one.
TEST(SelectionTable, ATableThatIsCutOffIsRefusedWhereverItEnds) {
  const std::string text = SelectionTable::read(table).text();
  const std::size_t whole = text.size() - 1;  // without the last newline nothing is missing
  EXPECT_NO_THROW(SelectionTable::read(text.substr(0, whole)));
  for (std::size_t size = 0; size < whole; ++size)
    EXPECT_THROW(SelectionTable::read(text.substr(0, size)), std::invalid_argument) << size;
  for (std::size_t size = 1; size < whole; ++size)
    EXPECT_THROW(SelectionTable::read(text + text.substr(0, size)), std::invalid_argument) << size;
}

TEST(SelectionTable, AFileIsNamedWithWhatIsWrongInIt) {
  const Folder folder;
  const std::string path = folder.path() / "selections";
  const auto complaint = [&](const std::string& text) {
    folder.put("selections", text);
    return why([&] { SelectionTable::from_file(path); });
  };
  EXPECT_EQ(complaint(""), path + ": no selection table: it is empty: expected rules, and a last line 'end'");
  EXPECT_EQ(complaint("all_reduce 2 0 ring\n"),
            path + ": no selection table: it is cut off after line 1: expected a last line 'end'");
  EXPECT_EQ(complaint("# nothing\nend\n"),
            path + ": no selection table: no rule is in it: expected lines like 'all_reduce 2 0 ring'");
  EXPECT_EQ(complaint("all_reduce 2 0 ring\nend\n"), "");
  std::filesystem::remove(path);
  EXPECT_THROW(SelectionTable::from_file(path), std::system_error);
  EXPECT_THROW(SelectionTable::from_file(folder.path()), std::system_error);
}

TEST(SelectionTable, TheBuiltInTableNamesAlgorithmsThatExist) {
  ASSERT_FALSE(SelectionTable::built_in().rules().empty());
  for (const SelectionRule& rule : SelectionTable::built_in().rules())
    EXPECT_NO_THROW(schedule::algorithm_named(rule.config.algorithm)) << text_of(rule);
}

}  // namespace
}  // namespace trellis::ccl
