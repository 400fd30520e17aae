#include "ccl/diagnosis/launch_record.h"

#include <limits>

#include "ccl/failure/checked_json.h"

namespace trellis::ccl {
namespace {

using nlohmann::json;

constexpr const char* part_name = "trellis_launch";
constexpr std::int64_t most_int = std::numeric_limits<int>::max();

}  // namespace

const LaunchedRank* LaunchRecord::first_failed() const {
  const LaunchedRank* first = nullptr;
  for (const LaunchedRank& r : ranks)
    if (r.failed && !r.told && (first == nullptr || r.ended_ns < first->ended_ns)) first = &r;
  return first;
}

std::string text_of(const LaunchRecord& record) {
  json ranks = json::array();
  for (const LaunchedRank& r : record.ranks)
    ranks.push_back({{"rank", r.rank},
                     {"process", r.process},
                     {"end", r.end},
                     {"ended_ns", r.ended_ns},
                     {"failed", r.failed ? 1 : 0},
                     {"told", r.told ? 1 : 0}});
  const json all = {{part_name,
                     {{"node", record.node},
                      {"nodes", record.nodes},
                      {"job_identity", record.job_identity},
                      {"began_ns", record.began_ns},
                      {"written_ns", record.written_ns},
                      {"told", record.told},
                      {"heard", record.heard},
                      {"ranks", ranks}}}};
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

bool is_launch_record(std::string_view text) {
  const json all = json::parse(text, nullptr, false);
  return all.is_object() && all.contains(part_name);
}

LaunchRecord launch_record_in(std::string_view text) {
  const json all = parsed(text);
  const CheckedJson own = CheckedJson(all).part(part_name);
  LaunchRecord record;  // assigned field by field, as in rank_dump.cpp
  record.nodes = static_cast<int>(own.number("nodes", 1, most_int));
  record.node = static_cast<int>(own.number("node", 0, record.nodes - 1));
  if (own.has("job_identity")) record.job_identity = own.words("job_identity");
  record.began_ns = own.number("began_ns", 0);
  record.written_ns = own.number("written_ns", 0);
  record.told = own.words("told");
  record.heard = own.words("heard");
  own.require_list("ranks");
  own.each("ranks", [&](const CheckedJson& r) {
    LaunchedRank one;
    one.rank = static_cast<Rank>(r.number("rank", 0, most_int));
    one.process = r.number("process", 0);
    one.end = r.words("end");
    one.ended_ns = r.number("ended_ns", 0);
    one.failed = r.number("failed", 0, 1) == 1;
    one.told = r.number("told", 0, 1) == 1;
    record.ranks.push_back(std::move(one));
  });
  return record;
}

}  // namespace trellis::ccl
