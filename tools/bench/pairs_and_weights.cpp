#include "tools/bench/pairs_and_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "text/refuse.h"
#include "tools/program/output.h"
#include "tools/schedule/request_options.h"

namespace trellis::tools {
namespace {

using nlohmann::json;

constexpr const char* pairs_expected = "expected 0:1,1:0 or [[0,1],[1,0]]";
constexpr std::int64_t most_count = std::int64_t{1} << 53;  // a double holds every whole number up to here

// Shortens a list for an error message: lists may be long and deep.
std::string text_of(const json& value) {
  return value.is_structured() ? fmt::format("{} of {}", value.type_name(), value.size()) : value.dump();
}

schedule::Rank rank_in(const json& value, const std::string& text) {
  constexpr std::int64_t most = std::numeric_limits<schedule::Rank>::max();
  // An unsigned number too large for a signed one would be read as negative.
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > most)
    text::refuse("--custom-src-target-pairs {}: {} is no rank: {}", text, text_of(value), pairs_expected);
  return value.get<schedule::Rank>();
}

// A whole number may be written as 1e3 or 2.0.
double count_in(const json& value, const std::string& path) {
  const double count = value.is_number() ? value.get<double>() : -1;
  if (count >= 0 && count <= static_cast<double>(most_count) && count == std::floor(count)) return count;
  text::refuse("'{}': count {}: expected a whole number from 0 to {}", path, text_of(value), most_count);
}

std::vector<double> row_in(const json& row, const std::string& path) {
  if (!row.is_array()) text::refuse("'{}': {}: expected a list, as for other senders", path, text_of(row));
  std::vector<double> counts;
  for (const json& value : row) counts.push_back(count_in(value, path));
  return counts;
}

std::vector<std::vector<double>> counts_in(const json& whole, const std::string& path) {
  const json& counts = whole.is_object() && whole.contains("counts") ? whole["counts"] : whole;
  if (!counts.is_array()) text::refuse("'{}' holds no counts: expected [1, 2], or a list for each sender", path);
  if (counts.empty() || !counts.front().is_array()) return {row_in(counts, path)};
  std::vector<std::vector<double>> rows;
  for (const json& row : counts) rows.push_back(row_in(row, path));
  return rows;
}

}  // namespace

std::vector<schedule::Pair> bench_pairs(const std::string& text) {
  if (text.empty() || text.front() != '[') return text.empty() ? std::vector<schedule::Pair>{} : parse_pairs(text);
  const json whole = json::parse(text, nullptr, false);
  if (!whole.is_array() || whole.empty()) text::refuse("--custom-src-target-pairs {}: {}", text, pairs_expected);
  std::vector<schedule::Pair> pairs;
  for (const json& pair : whole) {
    if (!pair.is_array() || pair.size() != 2)
      text::refuse("--custom-src-target-pairs {}: {} is no pair: {}", text, text_of(pair), pairs_expected);
    pairs.push_back({rank_in(pair[0], text), rank_in(pair[1], text)});
  }
  return pairs;
}

std::vector<std::vector<double>> bench_weights(const std::string& path) {
  if (path.empty()) return {};
  json whole;
  try {
    whole = json::parse(read_input(path));
  } catch (const json::exception& e) {
    const std::string_view said = e.what();  // "[json.exception.parse_error.101] parse error at ..."
    text::refuse("'{}' holds no counts: expected [1, 2], or a list for each sender; {}", path,
                 said.substr(std::min(said.find("] ") + 2, said.size())));
  }
  std::vector<std::vector<double>> rows = counts_in(whole, path);
  double most = 0;
  for (const auto& row : rows)
    for (const double count : row) most = std::max(most, count);
  if (most == 0) text::refuse("'{}': no count above 0", path);
  for (auto& row : rows)
    for (double& count : row) count /= most;
  return rows;
}

}  // namespace trellis::tools
