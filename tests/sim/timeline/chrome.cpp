#include "sim/timeline/chrome.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/sim/timeline/example.h"

namespace trellis::sim {
namespace {

TEST(TimelineChrome, HoldsWhatTheTimelineHolds) {
  const Timeline t = example();
  const std::string text = chrome_trace(t);
  EXPECT_EQ(text, chrome_trace(t));
  EXPECT_NE(text.find("\"ts\":3.100500,"), text.npos);  // to the picosecond
  const auto trace = nlohmann::json::parse(text);
  std::map<std::string, int> kinds;
  std::map<int, std::string> groups;
  std::map<int, std::string> rows;
  for (const auto& event : trace["traceEvents"]) {
    ++kinds[event["ph"]];
    if (event["name"] == "process_name") groups[event["pid"]] = event["args"]["name"];
    if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
  }
  EXPECT_EQ(kinds["X"], 7);
  EXPECT_EQ(kinds["s"], 5);
  EXPECT_EQ(kinds["f"], 5);
  EXPECT_EQ(kinds["C"], 4);
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] != "load B") continue;
    EXPECT_EQ(groups[event["pid"]], "core 0");
    EXPECT_EQ(rows[event["tid"]], "dma queue 0 (2)");
    EXPECT_EQ(event["dur"], 2.5005);
    EXPECT_EQ(event["args"]["bytes"], 1e6);
  }
}

}  // namespace
}  // namespace trellis::sim
