// The cause that doctor names for jobs that each went wrong for one reason, from their dumps, as recorded by
// tests/tools/doctor/situations.py.
#include "ccl/diagnosis/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>

namespace trellis::ccl {
namespace {

using nlohmann::json;

struct Situation {
  std::string name = {}, cause = {};  // the latter is a regular expression
  std::vector<std::string> files = {};
};

std::vector<Situation> situations() {
  std::vector<Situation> all;
  for (const auto& entry : std::filesystem::directory_iterator(TRELLIS_SOURCE_DIR "/tests/ccl/situations")) {
    std::ifstream file(entry.path());
    const json whole = json::parse(file);
    Situation s{.name = entry.path().stem(), .cause = whole.at("cause")};
    for (const json& one : whole.at("files")) s.files.push_back(one.dump());
    all.push_back(std::move(s));
  }
  return all;
}

CollectedEvidence evidence_of(const std::vector<std::string>& files) {
  CollectedEvidence evidence;
  for (const std::string& text : files)
    if (is_launch_record(text))
      evidence.add(launch_record_in(text));
    else
      evidence.add(rank_dump_in(text));
  return evidence;
}

bool is_circle(const std::string& line) { return line.find("circle") != std::string::npos; }

TEST(Diagnosis, NamesTheOneCauseOfEachSituation) {
  const std::vector<Situation> all = situations();
  ASSERT_GE(all.size(), 35U);
  for (const Situation& s : all) {
    const std::vector<Diagnosis> jobs = diagnose(evidence_of(s.files));
    ASSERT_EQ(jobs.size(), 1U) << s.name;
    EXPECT_TRUE(std::regex_match(jobs[0].cause, std::regex(s.cause))) << s.name << ": " << jobs[0].cause;
    if (is_circle(jobs[0].cause)) continue;
    for (const Diagnosis::Part& part : jobs[0].parts) {
      EXPECT_TRUE(std::ranges::none_of(part.lines, is_circle)) << s.name;
      for (const auto& [rank, error] : part.errors) EXPECT_FALSE(is_circle(error)) << s.name << ": " << error;
    }
  }
}

// The order in which dumps are read must not matter.
TEST(Diagnosis, IsTheSameInWhateverOrderDumpsCome) {
  for (Situation& s : situations()) {
    const std::string cause = diagnose(evidence_of(s.files)).front().cause;
    std::ranges::reverse(s.files);
    EXPECT_EQ(diagnose(evidence_of(s.files)).front().cause, cause) << s.name;
  }
}

// A rank's dump may be lost; launch records are missing wherever another launcher was used.
TEST(Diagnosis, FindsTheCauseOfALateRankFromOneSurvivor) {
  const auto all = situations();
  for (const char* name : {"late_asleep", "dead_between_operations", "stopped_between_operations"}) {
    const auto found = std::ranges::find(all, name, &Situation::name);
    ASSERT_NE(found, all.end());
    for (const std::string& file : found->files) {
      if (is_launch_record(file)) continue;
      const RankDump d = rank_dump_in(file);
      if (d.trouble == FailureKind::none) continue;
      CollectedEvidence evidence;
      evidence.add(d);
      const std::string cause = diagnose(evidence).front().cause;
      EXPECT_EQ(cause.substr(0, 6), "rank 2") << name << ": " << cause;
    }
  }
}

// On a busy node the launch may see that a rank ended after the other node's launch has seen ranks end that gave it up,
// and no dump may have seen it end.
TEST(Diagnosis, NamesARankWhoseEndWasSeenLate) {
  const auto all = situations();
  const auto found = std::ranges::find(all, "fails_on_another_node", &Situation::name);
  ASSERT_NE(found, all.end());
  CollectedEvidence evidence;
  for (const std::string& file : found->files) {
    if (is_launch_record(file)) {
      LaunchRecord record = launch_record_in(file);
      for (LaunchedRank& r : record.ranks)
        if (r.rank == 3) r.ended_ns += 1'000'000'000;
      evidence.add(record);
      continue;
    }
    RankDump dump = rank_dump_in(file);
    dump.seen.at(3).standing = RankStatus::alive;
    evidence.add(dump);
  }
  const std::string cause = diagnose(evidence).front().cause;
  EXPECT_TRUE(std::regex_match(cause, std::regex(found->cause))) << cause;
}

RankDump idle(Rank rank, Rank ranks, std::uint64_t operation) {
  return {.rank = rank,
          .ranks = ranks,
          .communicator = "1",
          .entries = {{.operation = operation, .call = "all_reduce of 4 f32, sum"}}};
}

TEST(Diagnosis, NothingIsWrongWhereAllAreThrough) {
  CollectedEvidence evidence;
  for (Rank r = 0; r < 3; ++r) evidence.add(idle(r, 3, 7));
  const std::vector<Diagnosis> jobs = diagnose(evidence);
  EXPECT_EQ(jobs[0].cause, "");
  EXPECT_EQ(jobs[0].parts[0].lines, std::vector<std::string>{"all 3 ranks have finished operation 7"});
}

// The dump of rank 0 of two: it waits in operation 8 for rank 1, and last saw it with this status and process number.
RankDump waits_for_one_that_is(RankStatus standing, std::int64_t process) {
  RankDump d = idle(0, 2, 8);
  d.entries.back().under_way = true;
  d.trouble = FailureKind::lost;
  d.blamed = d.waits_for = 1;
  d.process = 69;
  d.seen = {{}, {.last = {.operation = 7}, .process = process, .standing = standing}};
  return d;
}

std::string cause_in(const CollectedEvidence& evidence) { return diagnose(evidence).front().cause; }

TEST(Diagnosis, WhatIsSilentIsNotSaidToHaveEnded) {
  CollectedEvidence evidence;
  evidence.add(waits_for_one_that_is(RankStatus::silent, 70));
  EXPECT_EQ(cause_in(evidence),
            "rank 1 did not answer any more after operation 7 and never came to operation 8, all_reduce of 4 f32, sum");
  CollectedEvidence ended;
  ended.add(waits_for_one_that_is(RankStatus::ended, 70));
  EXPECT_EQ(cause_in(ended),
            "rank 1's process ended after operation 7 and never came to operation 8, all_reduce of 4 f32, sum");
}

TEST(Diagnosis, ASilentRankIsWhatItsHostKnowsOfIt) {
  CollectedEvidence stopped;
  stopped.add(waits_for_one_that_is(RankStatus::silent, 70));
  RankDump near = idle(0, 2, 3);  // of another communicator, by a rank on rank 1's host
  near.communicator = "2";
  near.process_identity = "another's";
  near.parent = "1";
  near.in_parent = {0, 1};
  near.seen = {{}, {.last = {.operation = 3}, .process = 70, .standing = RankStatus::stopped}};
  stopped.add(near);
  EXPECT_NE(cause_in(stopped).find("rank 1 stands still"), std::string::npos) << cause_in(stopped);

  CollectedEvidence launched;
  launched.add(waits_for_one_that_is(RankStatus::silent, 70));
  launched.add(LaunchRecord{.written_ns = 9,
                            .ranks = {{.rank = 0, .process = 69},
                                      {.rank = 1, .process = 70, .end = "exited with status 3", .failed = true}}});
  EXPECT_NE(cause_in(launched).find("rank 1's process ended after operation 7"), std::string::npos)
      << cause_in(launched);
  EXPECT_NE(cause_in(launched).find("it exited with status 3"), std::string::npos) << cause_in(launched);
}

// A job of four ranks on two hosts. Both hosts have the processes 50 and 51. Rank 2 ended after operation 7.
std::string cause_where_ids_repeat(Rank ranks) {
  CollectedEvidence evidence;
  for (const Rank r : {0, 1, 3}) {
    if (r >= ranks) continue;
    RankDump d = idle(r, ranks, 7);
    d.process = 50 + r % 2;
    d.process_identity = std::string(1, static_cast<char>('a' + r));
    d.job_identity = "one";
    d.signal = "TERM";
    for (Rank other = 0; other < ranks; ++other)
      d.seen.push_back({.last = d.entries[0],
                        .process = 50 + other % 2,
                        .standing = other == 2 ? RankStatus::ended : RankStatus::alive});
    evidence.add(d);
  }
  for (const int node : {0, 1}) {
    LaunchRecord record{.node = node, .nodes = 2, .job_identity = "one", .written_ns = 9};
    for (const Rank r : {2 * node, 2 * node + 1})
      record.ranks.push_back({.rank = r, .process = 50 + r % 2, .end = "was killed", .failed = true, .told = true});
    if (node == 1) record.ranks[0] = {.rank = 2, .process = 50, .end = "exited with status 3", .failed = true};
    evidence.add(record);
  }
  return cause_in(evidence);
}

TEST(Diagnosis, ProcessesOnSeveralHostsMayHaveTheSameId) {
  EXPECT_EQ(cause_where_ids_repeat(4), "rank 2's process ended after operation 7: it exited with status 3");
  // A communicator of a part of the job may number its ranks otherwise, so its dumps do not tell which operation rank 2
  // of the job was in.
  EXPECT_EQ(cause_where_ids_repeat(2), "rank 2's process exited with status 3");
}

TEST(Diagnosis, ASilentRankIsNotTheStoppedOneOfAnotherHost) {
  for (const bool same : {false, true}) {
    CollectedEvidence evidence;
    RankDump d = waits_for_one_that_is(RankStatus::silent, 70);
    d.ranks = 3;
    d.seen.push_back({.last = {.operation = 8}, .process = 70});
    evidence.add(d);
    RankDump child = idle(0, 2, 3);
    child.communicator = "2";
    child.parent = "1";
    child.in_parent = {0, same ? 1 : 2};
    child.seen = {{}, {.last = {.operation = 3}, .process = 70, .standing = RankStatus::stopped}};
    evidence.add(child);
    evidence.add(
        LaunchRecord{.nodes = 2, .written_ns = 9, .ranks = {{.rank = 0, .process = 69}, {.rank = 2, .process = 70}}});
    evidence.add(LaunchRecord{.node = 1, .nodes = 2, .written_ns = 9, .ranks = {{.rank = 1, .process = 70}}});
    const std::string expected = same ? "rank 1 stands still" : "rank 1 did not answer any more";
    EXPECT_NE(cause_in(evidence).find(expected), std::string::npos) << cause_in(evidence);
  }
}

TEST(Diagnosis, RanksOfAnExchangeMaySendDifferentCounts) {
  const auto call = [](std::uint64_t count) {
    return call_text(schedule::Collective::all_to_all_v, count, "f32", "", 0, 0);
  };
  EXPECT_EQ(call(8), call(12));
  EXPECT_EQ(call(8), "all_to_all_v of f32");
}

TEST(Diagnosis, AScriptMayStandBetweenTheLaunchAndARank) {
  const auto jobs_of = [](const std::string& identity) {
    RankDump d = waits_for_one_that_is(RankStatus::stopped, 170);
    d.process = 169;
    d.job_identity = identity;
    CollectedEvidence evidence;
    evidence.add(d);
    evidence.add(
        LaunchRecord{.job_identity = "one",
                     .written_ns = 9,
                     .ranks = {{.rank = 0, .process = 69, .end = "exited with status 1", .failed = true},
                               {.rank = 1, .process = 70, .end = "was killed", .failed = true, .told = true}}});
    return diagnose(evidence);
  };
  const std::vector<Diagnosis> same = jobs_of("one");
  ASSERT_EQ(same.size(), 1U);
  EXPECT_NE(same[0].cause.find("rank 1 stands still"), std::string::npos) << same[0].cause;
  EXPECT_EQ(jobs_of("another").size(), 2U);
}

TEST(Diagnosis, WhatAnotherCommunicatorsRanksDidIsAJobOfItsOwn) {
  CollectedEvidence evidence;
  evidence.add(idle(0, 1, 7));
  RankDump other = idle(0, 1, 3);
  other.communicator = "2";
  other.moment_ns = 5;
  evidence.add(other);
  const std::vector<Diagnosis> jobs = diagnose(evidence);
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].parts[0].communicator, "2");  // the newest first
}

TEST(Diagnosis, ContradictionsAreRefused) {
  CollectedEvidence evidence;
  evidence.add(idle(0, 2, 7));
  EXPECT_THROW(evidence.add(idle(1, 3, 7)), std::invalid_argument);
}

TEST(LaunchRecord, ComesBackAsItWasWritten) {
  const LaunchRecord record{
      .node = 1,
      .nodes = 2,
      .job_identity = "0123456789abcdef",
      .began_ns = 5,
      .written_ns = 9,
      .told = "INT",
      .heard = "rank 0 exited with status 3",
      .ranks = {{.rank = 2, .process = 77, .end = "exited with status 3", .ended_ns = 8, .failed = true},
                {.rank = 3, .process = 78, .ended_ns = 7, .failed = true, .told = true}}};
  const LaunchRecord same = launch_record_in(text_of(record));
  EXPECT_EQ(text_of(same), text_of(record));
  ASSERT_NE(same.first_failed(), nullptr);
  EXPECT_EQ(same.first_failed()->rank, 2);  // rank 3 was told to end
  EXPECT_THROW(launch_record_in("{}"), std::invalid_argument);
}

}  // namespace
}  // namespace trellis::ccl
