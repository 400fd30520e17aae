// trellis doctor: what the dumps of a job's ranks say together.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tools/command.h"
#include "tools/doctor_dump.h"
#include "tools/output.h"

namespace trellis::tools {
namespace {

using nlohmann::json;

struct Options {
  std::vector<std::string> dumps;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Reads what the flight recorders of a job's ranks have written, and says who is stuck, who is missing and who\n"
      "called something else. Ranks write with TRELLIS_DUMP=FOLDER in their environment: when a communicator fails or\n"
      "is aborted, and when SIGUSR2, SIGTERM or SIGINT comes.\n\n"
      "Exit status: 0, all is well; 1, a rank is missing, behind, different or reports an error, or a file was left\n"
      "out; 2, there is no dump.");
  app.add_option("dumps", o.dumps, "Files that the flight recorder wrote, or folders of them")->required();
  app.add_flag("--json", o.json, "Print JSON");
}

using Dumps = std::map<int, RankDump>;  // of a communicator, by rank

// What the files hold, and why some of them don't.
struct Read {
  std::map<std::string, Dumps> communicators;
  std::map<std::string, std::string> left_out;
};

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

Read read_all(const std::vector<std::string>& paths) {
  Read read;
  for (const std::string& file : files_of(paths)) try {
      const RankDump dump = rank_dump_in(read_input(file));
      Dumps& others = read.communicators[dump.communicator];
      if (!others.empty() && dump.ranks != others.begin()->second.ranks)
        throw std::invalid_argument(
            fmt::format("it tells of {} ranks, and others of {}", dump.ranks, others.begin()->second.ranks));
      const auto [at, is_new] = others.emplace(dump.rank, dump);
      if (!is_new && at->second.written_ns < dump.written_ns) at->second = dump;
    } catch (const std::invalid_argument& e) {
      read.left_out[file] = fmt::format("this is no dump of a flight recorder: {}", e.what());
    }
  if (read.communicators.empty()) {
    const auto& [file, why] = *read.left_out.begin();
    throw std::invalid_argument(fmt::format("{}: {}", file, why));
  }
  return read;
}

std::string list_of(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string where(const RankDump& d) {
  if (d.points) return fmt::format("{} after operation {}", d.call, d.operation);
  return fmt::format("operation {}, {}", d.operation, d.call);
}

// Those that called something else than most as the last operation.
void find_different(const Dumps& dumps, std::uint64_t furthest, std::vector<std::string>& found) {
  std::map<std::string, std::vector<int>> calls;
  for (const auto& [rank, d] : dumps)
    if (d.operation == furthest && !d.points && !d.call.empty()) calls[d.call].push_back(rank);
  if (calls.size() < 2) return;
  const auto most = std::ranges::max_element(calls, {}, [](const auto& c) { return c.second.size(); });
  for (const auto& [call, who] : calls)
    if (call != most->first)
      found.push_back(fmt::format("{} called {} as operation {}, where {} called {}", list_of(who), call, furthest,
                                  list_of(most->second), most->first));
}

void find_absent(const Dumps& dumps, std::uint64_t furthest, std::vector<std::string>& found) {
  std::vector<int> missing;
  std::map<std::uint64_t, std::vector<int>> behind;
  std::string call;
  for (const auto& [rank, d] : dumps)
    if (d.operation == furthest && !d.points) call = ", " + d.call;
  for (int r = 0; r < dumps.begin()->second.ranks; ++r) {
    const auto at = dumps.find(r);
    if (at == dumps.end())
      missing.push_back(r);
    else if (at->second.operation < furthest && !at->second.under_way)
      behind[at->second.operation].push_back(r);
  }
  for (const auto& [last, who] : behind)
    found.push_back(
        fmt::format("{} never came to operation {}{}; the last was operation {}", list_of(who), furthest, call, last));
  if (!missing.empty())
    found.push_back(fmt::format("{} left no dump: killed, frozen, ended before, or never started", list_of(missing)));
}

// Ranks of which each waits for the next.
void find_circles(const Dumps& dumps, std::vector<std::string>& found) {
  for (const auto& [first, d] : dumps) {
    std::vector<int> way;
    int r = first;
    for (auto at = dumps.find(r); at != dumps.end() && at->second.under_way && at->second.waits_for >= 0;
         at = dumps.find(r = at->second.waits_for)) {
      if (!way.empty() && (r == first || way.size() > dumps.size())) break;
      way.push_back(r);
    }
    // Each circle once, from its least rank.
    if (r == first && way.size() > 1 && std::ranges::min(way) == first)
      found.push_back(fmt::format("{} wait for each other in a circle", list_of(way)));
  }
}

struct Findings {
  std::vector<std::string> lines = {};
  bool well = true;
};

Findings findings(const Dumps& dumps) {
  std::vector<std::string> found;
  std::uint64_t furthest = 0;
  for (const auto& [rank, d] : dumps) furthest = std::max(furthest, d.operation);
  find_different(dumps, furthest, found);
  find_absent(dumps, furthest, found);
  find_circles(dumps, found);
  const bool well = found.empty();
  for (const auto& [rank, d] : dumps)
    if (d.under_way)
      found.push_back(fmt::format("rank {} is {} {}{}{}", rank, d.error.empty() ? "in" : "stuck in", where(d),
                                  d.step < 0 ? "" : fmt::format(", at step {}", d.step),
                                  d.waits_for < 0 ? "" : fmt::format(", waiting for rank {}", d.waits_for)));
  if (found.empty())
    found.push_back(fmt::format("all {} ranks have finished operation {}", dumps.begin()->second.ranks, furthest));
  return {std::move(found), well};
}

std::int64_t written_ns(const Dumps& dumps) {
  std::int64_t first = dumps.begin()->second.written_ns;
  for (const auto& [rank, d] : dumps) first = std::min(first, d.written_ns);
  return first;
}

std::string heading(const std::string& communicator, const Dumps& dumps) {
  const std::chrono::sys_time<std::chrono::seconds> when{std::chrono::seconds(written_ns(dumps) / 1'000'000'000)};
  return fmt::format("communicator {} of {} ranks, written {:%F %T} UTC:", communicator, dumps.begin()->second.ranks,
                     when);
}

int run(const Options& o) {
  const Read read = read_all(o.dumps);
  json all = json::array();
  std::string text;
  bool well = read.left_out.empty();
  std::vector<std::pair<std::string, Dumps>> in_time(read.communicators.begin(), read.communicators.end());
  std::ranges::stable_sort(in_time, {}, [](const auto& one) { return written_ns(one.second); });
  for (const auto& [communicator, dumps] : in_time) {
    if (read.communicators.size() > 1)
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", heading(communicator, dumps));
    const Findings found = findings(dumps);
    well = well && found.well;
    json one = {{"communicator", communicator},
                {"ranks", dumps.begin()->second.ranks},
                {"findings", found.lines},
                {"errors", json::object()}};
    for (const std::string& line : found.lines) text += line + "\n";
    for (const auto& [rank, d] : dumps) {
      if (d.error.empty()) continue;
      well = false;
      one["errors"][std::to_string(rank)] = d.error;
      text += fmt::format("rank {} said: {}\n", rank, d.error);
    }
    all.push_back(std::move(one));
  }
  for (const auto& [file, why] : read.left_out) fmt::print(stderr, "trellis: {}: left out: {}\n", file, why);
  write_output("", o.json ? json{{"communicators", all}, {"left_out", read.left_out}}.dump(2) + "\n" : text);
  return well ? 0 : 1;
}

const Registered doctor(command("doctor",
                                "Says from the dumps of a job's ranks who is stuck, who is missing, who differs",
                                "trellis launch -n 4 -- env TRELLIS_DUMP=/tmp/dumps ./train\n"
                                "trellis doctor /tmp/dumps\n"
                                "trellis doctor --json trellis_*_rank*.json",
                                add, run));

}  // namespace
}  // namespace trellis::tools
