#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/bench/report/result.h"
#include "tools/program/json_text.h"

namespace trellis::tools {

using namespace measure;
namespace {

using Row = nlohmann::ordered_json;

Row row_of(const BenchSettings& s, const BenchResult& r) {
  const Statistics t = statistics_of(r.measured.us);
  Row row;
  row["op"] = schedule::name(r.collective);
  row["ranks"] = r.ranks;
  row["bytes"] = r.bytes;
  row["count"] = r.count;
  row["type"] = type_word(r.type, s.style);
  row["redop"] = schedule::reduces(r.collective) ? reduction_word(r.reduction, s.style) : "none";
  row["root"] = r.root;
  row["in_place"] = r.in_place;
  row["streams"] = r.streams;
  row["algorithm"] = r.measured.algorithm;
  if (s.device != "host") row["device"] = s.device, row["not_native"] = r.measured.not_native;
  row["iterations"] = r.measured.us.size();
  row["time_us"] = t.average;
  row["min_us"] = t.least;
  row["p50_us"] = t.percentile(50);
  row["p95_us"] = t.percentile(95);
  row["p99_us"] = t.percentile(99);
  row["max_us"] = t.most;
  row["stdev_us"] = t.deviation;
  if (s.interval) row["time_low_us"] = r.low_us, row["time_high_us"] = r.high_us;
  row["algbw_GBps"] = r.algbw_GBps(t.average);
  row["busbw_GBps"] = r.busbw_GBps(t.average);
  row["wrong"] = r.measured.checked ? Row(r.measured.wrong) : Row(nullptr);
  return row;
}

// A cell of CSV: a text with commas is quoted.
std::string cell_of(const Row& value) {
  if (value.is_null()) return "";
  if (!value.is_string()) return value.dump();
  auto text = value.get<std::string>();
  if (text.find_first_of(",\"\n") == text.npos) return text;
  for (std::size_t at = 0; (at = text.find('"', at)) != text.npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

}  // namespace

std::string bench_json(const BenchSettings& s, const std::vector<BenchResult>& results,
                       const std::string& interrupted) {
  Row whole;
  whole["results"] = Row::array();
  for (const BenchResult& r : results) whole["results"].push_back(row_of(s, r));
  if (!interrupted.empty()) whole["interrupted"] = interrupted;
  return json_text(whole);
}

std::string bench_csv(const BenchSettings& s, const std::vector<BenchResult>& results) {
  std::string text, heading;
  for (const BenchResult& r : results) {
    heading.clear();
    std::string line;
    const Row row = row_of(s, r);
    for (const auto& [key, value] : row.items()) {
      heading += (heading.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + cell_of(value);
    }
    text += line + "\n";
  }
  return origin_comment() + heading + "\n" + text;
}

}  // namespace trellis::tools
