// trellis doctor: explains what the dumps of a job's ranks say together.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <system_error>

#include "ccl/diagnosis/diagnosis.h"
#include "ccl/print_to_stderr.h"
#include "launch/launch_on_hosts.h"
#include "launch/remote_shell.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"

namespace trellis::tools {
namespace {

using ccl::Diagnosis;
using nlohmann::json;

struct Options {
  std::vector<std::string> dumps;
  std::string shell = "ssh";
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Reads what the flight recorders of a job's ranks have written, and says in its first line what went wrong "
      "first:\n"
      "who never came, died, stands still, called something else, aborted. Then it tells where each rank is.\n"
      "Ranks write with TRELLIS_DUMP=FOLDER in their environment: when a communicator fails, can't be made or "
      "divided,\n"
      "or is aborted, and when SIGUSR2, SIGTERM or SIGINT comes. A dump tells of the first trouble or of the signal, "
      "and\n"
      "not of what followed. trellis launch, started with TRELLIS_DUMP, adds there how ranks ended, if any failed.\n\n"
      "Exit status: 0, all is well; 1, something went wrong, or a file was left out; 2, there is no dump.");
  app.add_option("dumps", o.dumps,
                 "Files that the flight recorder wrote, or folders of them; on other hosts: node0:/tmp/dumps")
      ->required();
  app.add_option("--rsh", o.shell, "Command that runs a program on another host")->capture_default_str();
  app.add_flag("--json", o.json, "Print JSON");
}

struct Read {
  ccl::CollectedEvidence evidence = {};
  std::map<std::string, std::string> left_out = {};  // files, and why they were left out
};

struct Dump {
  std::string name, text;
};

constexpr std::string_view nothing_there = "nothing-there";

// The dumps at a place such as "node0:/tmp/dumps": all .json files of that folder, or the one file.
std::vector<Dump> dumps_on_host(const std::string& shell, const std::string& place) {
  const std::size_t colon = place.find(':');
  const std::string host = launch::hosts_in_list(place.substr(0, colon)).front().host,
                    path = launch::shell_word(place.substr(colon + 1));
  const std::string text = launch::output_on_host(
      shell, host,
      fmt::format("[ -e {0} ] || {{ echo {1}; exit; }}; for f in {0} {0}/*.json; do [ ! -f \"$f\" ] || "
                  "{{ printf '%s\\n%s\\n' \"$f\" $(wc -c <\"$f\"); cat \"$f\"; }}; done",
                  path, nothing_there));
  if (text == fmt::format("{}\n", nothing_there)) text::refuse("{}: there is no such file or folder", place);
  std::vector<Dump> dumps;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t name_ends = text.find('\n', at), bytes_end = text.find('\n', name_ends + 1);
    const auto bytes =
        bytes_end == std::string::npos
            ? std::nullopt
            : text::number<std::size_t>(std::string_view(text).substr(name_ends + 1, bytes_end - name_ends - 1), 0,
                                        text.size() - bytes_end - 1);
    if (!bytes) throw std::runtime_error(fmt::format("host {}: what came of its dumps is cut off", host));
    dumps.push_back({host + ":" + text.substr(at, name_ends - at), text.substr(bytes_end + 1, *bytes)});
    at = bytes_end + 1 + *bytes;
  }
  return dumps;
}

bool is_on_host(const std::string& path) { return !std::filesystem::exists(path) && path.find(':') < path.find('/'); }

std::vector<Dump> dumps_of(const Options& o) {
  std::vector<Dump> dumps;
  std::set<std::string> seen;  // a file that is named twice, or with its folder, is read once
  const auto add_file = [&](const std::filesystem::path& file) {
    std::error_code error;
    const auto place = std::filesystem::weakly_canonical(file, error);
    if (seen.insert(error ? file : place).second) dumps.push_back({file, read_input(file)});
  };
  for (const std::string& path : o.dumps) {
    if (is_on_host(path)) {
      for (Dump& d : dumps_on_host(o.shell, path))
        if (seen.insert(d.name).second) dumps.push_back(std::move(d));
    } else if (!std::filesystem::is_directory(path)) {
      add_file(path);
    } else {
      for (const auto& entry : std::filesystem::directory_iterator(path))
        if (entry.path().extension() == ".json") add_file(entry.path());
    }
  }
  std::ranges::sort(dumps, {}, &Dump::name);
  if (dumps.empty()) throw std::invalid_argument("no dump among what was named: expected files ending in .json");
  return dumps;
}

Read read_all(const Options& o) {
  Read read;
  for (const auto& [file, text] : dumps_of(o)) try {
      if (ccl::is_launch_record(text))
        read.evidence.add(ccl::launch_record_in(text));
      else
        read.evidence.add(ccl::rank_dump_in(text));
    } catch (const std::invalid_argument& e) {
      read.left_out[file] = fmt::format("this is no dump of a flight recorder: {}", e.what());
    }
  if (read.evidence.empty()) {
    const auto& [file, why] = *read.left_out.begin();
    text::refuse("{}: {}", file, why);
  }
  return read;
}

std::string time_of(std::int64_t ns) {
  const std::chrono::sys_time<std::chrono::seconds> when{std::chrono::seconds(ns / 1'000'000'000)};
  return fmt::format("{:%F %T} UTC", when);
}

std::string text_of(const Diagnosis& d, bool alone) {
  std::string text = alone ? "" : fmt::format("a job of {}:\n", time_of(d.moment_ns));
  if (!d.cause.empty()) text += d.cause + "\n";
  for (const Diagnosis::Part& part : d.parts) {
    if (d.parts.size() > 1) text += fmt::format("{}:\n", part.name);
    for (const std::string& line : part.lines) text += line + "\n";
    for (const auto& [rank, error] : part.errors) text += fmt::format("rank {} said: {}\n", rank, error);
    for (const std::string& line : part.later) text += line + "\n";
  }
  for (const std::string& line : d.ends) text += line + "\n";
  return text;
}

json json_of(const Diagnosis& d) {
  json communicators = json::array();
  for (const Diagnosis::Part& part : d.parts) {
    json errors = json::object();
    for (const auto& [rank, error] : part.errors) errors[std::to_string(rank)] = error;
    communicators.push_back({{"communicator", part.communicator},
                             {"ranks", part.ranks},
                             {"findings", part.lines},
                             {"errors", errors},
                             {"later", part.later}});
  }
  return {{"cause", d.cause}, {"time_ns", d.moment_ns}, {"communicators", communicators}, {"ends", d.ends}};
}

bool is_well(const Diagnosis& d) {
  return d.cause.empty() && std::ranges::all_of(d.parts, [](const auto& part) { return part.errors.empty(); });
}

int run(const Options& o) {
  const Read read = read_all(o);
  const std::vector<Diagnosis> jobs = ccl::diagnose(read.evidence);
  bool well = read.left_out.empty();
  json all = json::array();
  std::string text;
  for (const Diagnosis& d : jobs) {
    well = well && is_well(d);
    text += fmt::format("{}{}", text.empty() ? "" : "\n", text_of(d, jobs.size() == 1));
    all.push_back(json_of(d));
  }
  for (const auto& [file, why] : read.left_out) ccl::tell("trellis: {}: left out: {}\n", file, why);
  write_output("", o.json ? json_text(json{{"jobs", all}, {"left_out", read.left_out}}) : text);
  return well ? 0 : 1;
}

const RegisteredCommand doctor("doctor",
                               "Says from the dumps of a job's ranks what went wrong first, and where each is",
                               "trellis doctor /tmp/dumps\n"
                               "trellis doctor node0:/tmp/dumps node1:/tmp/dumps\n"
                               "trellis doctor --json trellis_*_rank*.json\n"
                               "TRELLIS_DUMP=/tmp/dumps trellis launch -n 4 -- ./train",
                               add, run);

}  // namespace
}  // namespace trellis::tools
