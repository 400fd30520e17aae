#include "sim/hardware/report/html_report.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/hardware/report/html_parts.h"
#include "sim/hardware/timeline/perfetto.h"
#include "tests/folder.h"
#include "tests/sim/timeline/example.h"

namespace trellis::sim {
namespace {

// Writes a file where the Python tests look for it, or else to a folder that is gone after the tests.
void write(const std::string& name, const std::string& bytes) {
  static const Folder own;
  const char* folder = std::getenv("TRELLIS_REPORTS");
  const std::filesystem::path path = (folder != nullptr ? folder : own.path()) / name;
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  EXPECT_TRUE(file.flush()) << path;
}

ReportOptions options() {
  return {.title = "example <1>", .peaks = {90e12, {{"HBM", 800e9, {0}}, {"SBUF & all", 500e9, {}}}}};
}

// A timeline of many short spans on few tracks, each after an earlier one.
Timeline large(std::size_t spans) {
  Timeline t;
  std::mt19937 random(7);
  constexpr std::uint32_t tracks = 20;
  for (std::uint32_t i = 0; i < tracks; ++i)
    t.track("core " + std::to_string(i / 5), i % 5 == 4 ? "dma" : "engine " + std::to_string(i % 5));
  std::vector<Time> at(tracks);
  const std::uint32_t depth = t.counter("core 0", "depth");
  for (std::size_t i = 0; i < spans; ++i) {
    const auto track = static_cast<std::uint32_t>(random() % tracks);
    Span s{.track = track, .label = t.label_of("matmul " + std::to_string(i % 50)), .ready = at[track]};
    s.start = s.ready + static_cast<Time>(random() % 40) * ns;
    s.end = at[track] = s.start + static_cast<Time>(random() % 100 + 1) * ns;
    if (s.start > s.ready) s.wait = static_cast<WaitReason>(1 + random() % 6);
    for (std::int64_t back = 1; back < 20 && s.cause < 0 && back <= static_cast<std::int64_t>(i); ++back)
      if (t.spans[i - back].end <= s.start) s.cause = static_cast<std::int64_t>(i) - back;
    s.flops = 1e6;
    t.add(s);
    if (i % 8 == 0) t.samples.push_back({depth, s.start, static_cast<double>(random() % 9)});
  }
  return t;
}

// A timeline of two links, and forty ranks of three tracks each.
Timeline many_ranks() {
  Timeline t;
  const std::uint32_t links[] = {t.track("wire", "wire of chip 0"), t.track("wire", "wire of chip 1")};
  for (int r = 0; r < 40; ++r) {
    const std::string group = "rank " + std::to_string(r);
    const std::uint32_t software = t.track(group, "software"), moving = t.track(group, "moving");
    t.track(group, "waiting");
    for (Time at = r * ns; at < 100 * ns; at += 50 * ns) {
      t.add({.track = software, .label = t.label_of("to another"), .start = at, .end = at + 10 * ns, .ready = at});
      Span move{.track = moving, .label = t.label_of("to another"), .start = at + 10 * ns, .end = at + 40 * ns};
      move.ready = move.start, move.cause = std::ssize(t.spans) - 1, move.bytes = 4096;
      t.add(move);
    }
    t.add(
        {.track = links[r % 2], .label = t.label_of("0 to 1"), .start = r * ns, .end = (r + 2) * ns, .ready = r * ns});
  }
  return t;
}

// The Python tests read these files with other programs.
TEST(Report, WritesItsFiles) {
  write("report_example.perfetto", perfetto(example()));
  write("report_example.html", html_report(example(), options()));
  write("report_ranks.html", html_report(many_ranks(), {.title = "ranks", .scope = "40 of 80 ranks", .path = false}));
}

TEST(Report, WritesLargePages) {
  write("report_200000.html", html_report(large(200'000), {.title = "200,000 spans"}));
  write("report_merged.html", html_report(large(300'000), {.title = "merged", .most_blocks = 20'000}));
}

TEST(Report, NothingInItLeavesThePage) {
  const std::string page = html_report(example(), options());
  EXPECT_EQ(page, html_report(example(), options()));
  EXPECT_EQ(page.find("http://"), page.npos);
  EXPECT_EQ(page.find("https://"), page.npos);
  EXPECT_EQ(page.find("src="), page.npos);
  EXPECT_NE(page.find("<title>example &lt;1&gt;</title>"), page.npos);
  EXPECT_NE(page.find("SBUF &amp; all"), page.npos);
  std::size_t scripts = 0;  // a label that contains </script> must not end one
  for (std::size_t at = page.find("</script>"); at != page.npos; at = page.find("</script>", at + 1)) ++scripts;
  EXPECT_EQ(scripts, 2U);
}

TEST(Report, MergedBlocksAccountForEverySpan) {
  const Timeline t = large(5'000);
  const TimelineLayout rows = rows_of(t);
  const MergedSpans all = blocks_of(t, rows, 5'000);
  EXPECT_EQ(all.blocks.size(), 5'000U);
  EXPECT_EQ(all.merged, 0U);
  const MergedSpans some = blocks_of(t, rows, 700);
  EXPECT_LE(some.blocks.size(), 700U);
  EXPECT_GT(some.blocks.size(), 200U);
  std::size_t count = 0, merged = 0;
  Time busy = 0, expected = 0;
  for (const MergedSpan& b : some.blocks) {
    count += b.count;
    busy += b.busy;
    if (b.count == 1) continue;
    merged += b.count;
    EXPECT_LT(b.end - b.start, some.shorter);
  }
  for (const Span& s : t.spans) expected += s.end - s.start;
  EXPECT_EQ(count, 5'000U);
  EXPECT_EQ(merged, some.merged);
  EXPECT_EQ(busy, expected);
  for (std::size_t s = 0; s < t.spans.size(); ++s) {
    const MergedSpan& b = some.blocks[some.of[s]];
    EXPECT_EQ(b.row, rows.row_of[s]);
    EXPECT_LE(b.start, t.spans[s].start);
    EXPECT_GE(b.end, t.spans[s].end);
  }
  const std::string page = html_report(t, {.most_blocks = 700});
  EXPECT_NE(page.find(std::to_string(some.merged) + " of 5000 spans, each shorter than "), page.npos);
}

TEST(Report, DataComesBack) {
  const Timeline t = example();
  const TimelineLayout rows = rows_of(t);
  const auto data = nlohmann::json::parse(report_data(t, rows, blocks_of(t, rows, 100), summarize(t)));
  EXPECT_EQ(data["first"], (std::vector<int>{0, 1, 2, 5, 6, 7}));
  EXPECT_EQ(data["gap"], (std::vector<Time>{0, 500'000, 3'100'500, 0, 0, 2'100'000, 7'250'000}));
  EXPECT_EQ(data["cause"], (std::vector<int>{-1, -1, 1, 2, 2, 0, 4}));
  EXPECT_EQ(data["critical"], (std::vector<int>{1, 2, 4, 6}));
  EXPECT_EQ(data["labels"][4], "copy <out>");
}

TEST(Report, SaysWhatMadeIt) {
  const std::string page = html_report(example(), {.made_by = {{"command", "trellis sim 'a<b'"}}});
  EXPECT_NE(page.find("<tr><td>command</td><td>trellis sim &#39;a&lt;b&#39;</td></tr>"), std::string::npos);
  EXPECT_EQ(html_report(example()).find("made_by"), std::string::npos);
}

TEST(Report, AnEmptyTimelineHasAPage) { EXPECT_NE(html_report({}).find("</html>"), std::string::npos); }

}  // namespace
}  // namespace trellis::sim
