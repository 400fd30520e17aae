// trellis doctor: what the dumps of a job's ranks say together.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/command.h"
#include "tools/output.h"

namespace trellis::tools {
namespace {

using nlohmann::json;

struct Options {
  std::vector<std::string> dumps;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("dumps", o.dumps, "Files that the flight recorder wrote, or folders of them")->required();
  app.add_flag("--json", o.json, "Print JSON");
}

// What a rank was in last, as its dump has it.
struct Last {
  int rank = 0;
  int ranks = 1;
  std::uint64_t operation = 0;
  bool under_way = false;
  std::string call;  // "all_reduce of 1024 f32, sum"
  std::string error;
  int waits_for = -1;
  int step = -1;
};

std::string call_of(const json& entry) {
  const std::string name = entry.at("profiling_name").get<std::string>().substr(std::string_view("trellis:").size());
  std::string text =
      fmt::format("{} of {} {}", name, entry.at("count").get<std::uint64_t>(), entry.at("type").get<std::string>());
  if (name.find("reduce") != std::string::npos) text += ", " + entry.at("operator").get<std::string>();
  if (name == "broadcast" || name == "reduce" || name == "gather" || name == "scatter")
    text += fmt::format(", root {}", entry.at("root").get<int>());
  if (name == "send_recv") text = fmt::format("{} sends and receives", entry.at("points").get<std::uint64_t>());
  return text;
}

Last last_in(const std::string& path) {
  try {
    const json dump = json::parse(read_input(path));
    const json& own = dump.at("trellis");
    Last last{.rank = own.at("rank"),
              .ranks = own.at("ranks"),
              .error = own.at("error"),
              .waits_for = own.at("waits_for"),
              .step = own.at("step")};
    if (dump.at("entries").empty()) return last;
    const json& entry = dump.at("entries").back();
    last.operation = entry.at("collective_seq_id");
    last.under_way = entry.at("state") != "completed";
    last.call = call_of(entry);
    return last;
  } catch (const json::exception& e) {
    throw std::invalid_argument(fmt::format("{}: this is no dump of a flight recorder: {}", path, e.what()));
  }
}

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.empty()) throw std::invalid_argument("no dump among what was named: expected files ending in .json");
  return files;
}

std::string list_of(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

// What each rank's last operation was, grouped; and who is behind, different, or missing.
std::vector<std::string> findings(const std::map<int, Last>& lasts) {
  std::vector<std::string> found;
  const int ranks = lasts.begin()->second.ranks;
  std::uint64_t furthest = 0;
  for (const auto& [rank, last] : lasts) furthest = std::max(furthest, last.operation);

  std::vector<int> missing, behind;
  std::map<std::string, std::vector<int>> calls;
  for (int r = 0; r < ranks; ++r) {
    const auto at = lasts.find(r);
    if (at == lasts.end())
      missing.push_back(r);
    else if (at->second.operation < furthest && !at->second.under_way)
      behind.push_back(r);
    else if (at->second.operation == furthest)
      calls[at->second.call].push_back(r);
  }
  if (calls.size() > 1) {
    const auto most = std::ranges::max_element(calls, {}, [](const auto& c) { return c.second.size(); });
    for (const auto& [call, who] : calls)
      if (call != most->first)
        found.push_back(fmt::format("{} called {} as operation {}, where {} called {}", list_of(who), call, furthest,
                                    list_of(most->second), most->first));
  }
  if (!behind.empty())
    found.push_back(fmt::format("{} never came to operation {}, {}; the last was operation {}", list_of(behind),
                                furthest, calls.begin()->first, lasts.at(behind.front()).operation));
  if (!missing.empty())
    found.push_back(fmt::format("{} left no dump: killed, frozen, or never started", list_of(missing)));
  for (const auto& [rank, last] : lasts)
    if (last.under_way)
      found.push_back(fmt::format("rank {} is stuck in operation {}, {}, at step {}, waiting for rank {}", rank,
                                  last.operation, last.call, last.step, last.waits_for));
  if (found.empty()) found.push_back(fmt::format("all {} ranks have finished operation {}", ranks, furthest));
  return found;
}

int run(const Options& o) {
  std::map<int, Last> lasts;
  for (const std::string& file : files_of(o.dumps)) {
    const Last last = last_in(file);
    if (!lasts.empty() && last.ranks != lasts.begin()->second.ranks)
      throw std::invalid_argument(
          fmt::format("{}: a dump of {} ranks among those of {}", file, last.ranks, lasts.begin()->second.ranks));
    lasts[last.rank] = last;
  }
  const std::vector<std::string> found = findings(lasts);
  json errors = json::object();
  std::string text;
  for (const std::string& line : found) text += line + "\n";
  for (const auto& [rank, last] : lasts) {
    if (last.error.empty()) continue;
    errors[std::to_string(rank)] = last.error;
    text += fmt::format("rank {} said: {}\n", rank, last.error);
  }
  write_output("", o.json ? json{{"findings", found}, {"errors", errors}}.dump(2) + "\n" : text);
  return errors.empty() ? 0 : 1;
}

const Registered doctor(command("doctor",
                                "Says from the dumps of a job's ranks who is stuck, who is missing, who differs",
                                "trellis launch -n 4 -- env TRELLIS_DUMP=/tmp/dumps ./train\n"
                                "trellis doctor /tmp/dumps\n"
                                "trellis doctor --json trellis_*_rank*.json",
                                add, run));

}  // namespace
}  // namespace trellis::tools
