// trellis play: a workload, a trace of one, or a schedule from a file, on a simulated machine.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "schedule/verify.h"
#include "sim/chakra.h"
#include "sim/chrome.h"
#include "sim/figure_units.h"
#include "sim/import_machine.h"
#include "sim/perfetto.h"
#include "sim/price.h"
#include "sim/report.h"
#include "sim/workload_play.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/subject.h"
#include "tools/table.h"

namespace trellis::tools {
namespace {

using namespace sim;

struct Options {
  std::string file, machine = "trn2.48xlarge", bytes = "1MiB", algorithm, era, memory, output;
  std::vector<std::string> what_if;
  double tflops = 0;
  bool json = false, packets = false, in_place = false;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Plays a file on a simulated machine: what it takes, how much of the communication nothing hides, what the time\n"
      "hangs on. Collectives share the machine with each other while computation goes on.\n\n"
      "A name that ends in .et is a Chakra trace, one file a rank (step.0.et stands for step.1.et and so on, too); in\n"
      ".xml an MSCCL algorithm, and in .json an MSCCL++ plan, proved before it runs on --bytes; any other is a "
      "workload,\n"
      "a task a line:\n"
      "  ranks 16\n"
      "  group tp 0-3 4-7 8-11 12-15\n"
      "  compute forward 1.2TFLOP 300MB\n"
      "  all_reduce sums 64MB on tp after forward\n"
      "  compute backward 240us after sums\n"
      "  all_reduce gradients 512MiB after backward stream data\n"
      "Further words of a task: `by ALGORITHM`, `root RANK`, `from RANK to RANK` (send_recv), `stream NAME`: a rank "
      "does\n"
      "the tasks of one stream in order.\n\n"
      "The machine is one of sim/machines, a shape like torus:4x4, or a file: ours, an ASTRA-sim network (.yml), a\n"
      "SimGrid platform, an NCCL or hwloc topology (.xml).");
  app.add_option("file", o.file, "What to play")->required();
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-b,--bytes", o.bytes, "Of a schedule's larger buffer: 8, 64KiB, 1GiB")->capture_default_str();
  app.add_option("-a,--algorithm", o.algorithm, "Of collectives that name none [the best by price]");
  app.add_option("--era", o.era, "The software's generation [the machine's usual one]");
  app.add_option("--what-if", o.what_if, "KEY=VALUE, dead:0-1, slow:0-1:0.5, straggler:RANK:0.5; repeatable");
  app.add_option("--tflops", o.tflops, "That a rank computes in a second [as its chip does in bf16]")
      ->check(CLI::PositiveNumber);
  app.add_option("--memory", o.memory, "What a rank reads and writes: 700GB/s [its part of the chip's HBM]");
  app.add_flag("--packets", o.packets, "Packet by packet and not as flows: slow");
  app.add_flag("--in-place", o.in_place, "The reading in place of an MSCCL file that can be read both ways");
  app.add_option("-o,--output", o.output, "FILE.html, FILE.pftrace or FILE.json (Chrome's trace events)");
  app.add_flag("--json", o.json, "Print JSON");
}

double measure(const std::string& text, Dimension dimension, const char* expected) {
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, text.data() + text.size());
  const Unit* unit = rest.empty() && dimension == Dimension::bytes ? &own_unit(dimension) : find_unit(rest);
  if (error != std::errc{} || !(value >= 0 && value < 1e18) || unit == nullptr || unit->dimension != dimension)
    throw std::invalid_argument(fmt::format("'{}': expected {}", text, expected));
  return in_own_unit(value, *unit);
}

// step.0.et and its brothers, or the one file.
std::vector<std::string> trace_paths(const std::string& path) {
  const std::string stem = path.substr(0, path.size() - 3);
  const std::size_t dot = stem.rfind('.');
  if (dot == stem.npos || stem.substr(dot + 1).find_first_not_of("0123456789") != stem.npos) return {path};
  std::vector<std::string> paths;
  while (true) {
    const std::string next = fmt::format("{}.{}.et", stem.substr(0, dot), paths.size());
    if (!std::filesystem::exists(next)) break;
    paths.push_back(next);
  }
  return paths.empty() ? std::vector<std::string>{path} : paths;
}

Workload trace(const Options& o) {
  std::vector<std::string> texts;
  const std::vector<std::string> paths = trace_paths(o.file);
  for (const std::string& path : paths) texts.push_back(read_input(path));
  std::vector<ChakraFile> files;
  for (std::size_t i = 0; i < paths.size(); ++i) files.push_back({paths[i], texts[i]});
  return read_chakra(o.file, files);
}

Workload given_schedule(const Options& o) {
  auto schedule = std::make_shared<schedule::Schedule>(read_schedule(o.file, o.in_place));
  if (const schedule::Report report = schedule::verify(*schedule); !report.ok())
    throw std::runtime_error(fmt::format("{}: {}", o.file, report.text()));
  Workload workload{.name = o.file, .ranks = schedule->ranks(), .cells = {}, .parts = {}};
  sim::Cell& all = workload.cells.emplace_back();
  all.ranks.resize(static_cast<std::size_t>(schedule->ranks()));
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  Part part;
  part.kind = Part::Kind::collective;
  part.name = schedule->algorithm.empty() ? "schedule" : schedule->algorithm;
  part.stream = "comm", part.cells = {0};
  part.collective = schedule->task.collective;
  part.bytes = measure(o.bytes, Dimension::bytes, "a size like 8, 64KiB or 1GB");
  part.schedule = std::move(schedule);
  workload.parts.push_back(std::move(part));
  return workload;
}

Workload workload_of(const Options& o) {
  const std::string ending = std::filesystem::path(o.file).extension();
  if (ending == ".et") return trace(o);
  if (ending == ".xml" || ending == ".json") return given_schedule(o);
  return read_workload(o.file, read_input(o.file));
}

Machine machine_of(const Options& o) {
  MachineSpec spec = std::filesystem::is_regular_file(o.machine) ? import_machine(o.machine, read_input(o.machine))
                                                                 : machine_spec(o.machine);
  for (const std::string& each : o.what_if) what_if(spec, each);
  return Machine(std::move(spec));
}

std::string time_text(Time t) {
  const double s = in_seconds(t);
  if (s < 1e-3) return fmt::format("{:.2f} us", s * 1e6);
  return s < 1 ? fmt::format("{:.3f} ms", s * 1e3) : fmt::format("{:.3f} s", s);
}

std::string share(Time part, Time whole) {
  return fmt::format("{:.1f}%", whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
}

// Tasks of one name together, those first that most of the critical path lies in.
struct Row {
  std::string what, algorithm;
  std::int64_t parts = 0;
  Time first = forever, last = 0, path = 0;
};

Table rows_of(const Workload& workload, const Played& played) {
  std::map<std::string, Row> by_name;
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    const Part& part = workload.parts[i];
    Row& row = by_name[part.name];
    row.what = part.kind == Part::Kind::compute ? "compute" : text(workload, part);
    row.algorithm = played.parts[i].algorithm;
    ++row.parts;
    row.first = std::min(row.first, played.parts[i].start);
    row.last = std::max(row.last, played.parts[i].end);
  }
  for (std::uint32_t i : played.path)
    by_name[workload.parts[i].name].path += played.parts[i].end - played.parts[i].start;
  std::vector<std::pair<std::string, Row>> rows(by_name.begin(), by_name.end());
  std::ranges::stable_sort(rows, std::greater{},
                           [](const auto& r) { return std::pair(r.second.path, -r.second.first); });
  constexpr std::size_t most = 20;
  if (rows.size() > most) rows.resize(most);
  Table table("tasks", {{.name = "task", .align = Align::left},
                        {.name = "what", .align = Align::left},
                        {.name = "algorithm", .align = Align::left},
                        {.name = "times"},
                        {.name = "from", .unit = "s"},
                        {.name = "to", .unit = "s"},
                        {.name = "on the path"}});
  for (const auto& [name, row] : rows)
    table.add({name, row.what, row.algorithm, row.parts, in_seconds(row.first), in_seconds(row.last),
               share(row.path, played.time)});
  return table;
}

std::string text_of(const Workload& workload, const Machine& machine, const Played& played) {
  std::string out = fmt::format("{} on {}: {}\n", workload.name, machine.name(), time_text(played.time));
  Time on_path = 0;
  for (std::uint32_t i : played.path)
    if (workload.parts[i].kind == Part::Kind::collective) on_path += played.parts[i].end - played.parts[i].start;
  const auto mean = static_cast<Time>(played.exposed_mean);
  out += fmt::format("  communication  exposed for {} in the mean ({}), {} at most ({})\n", time_text(mean),
                     share(mean, played.time), time_text(played.exposed_most), share(played.exposed_most, played.time));
  out += fmt::format("  critical path  {} tasks, {} of it communication\n", played.path.size(),
                     share(on_path, played.time));
  if (workload.parts.size() == 1 && workload.parts[0].schedule && played.time > 0) {
    const double algbw = workload.parts[0].bytes / in_seconds(played.time);
    out += fmt::format("  algbw, busbw   {:.3f} GB/s, {:.3f} GB/s\n", algbw * 1e-9,
                       algbw * bus_factor(workload.parts[0].schedule->task) * 1e-9);
  }
  return out + "\n" + rows_of(workload, played).text();
}

std::string json_of(const Workload& workload, const Machine& machine, const Played& played) {
  nlohmann::ordered_json out{{"workload", workload.name},
                             {"machine", machine.name()},
                             {"ranks", workload.ranks},
                             {"time_us", in_us(played.time)},
                             {"time_ps", played.time},
                             {"exposed_mean_us", played.exposed_mean * 1e-6},
                             {"exposed_most_us", in_us(played.exposed_most)}};
  out["tasks"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    const Part& part = workload.parts[i];
    const bool compute = part.kind == Part::Kind::compute;
    nlohmann::ordered_json task{{"task", part.name},
                                {"what", compute ? "compute" : name(part.collective)},
                                {"rank", workload.cells[part.cells.front()].ranks.front()},
                                {"start_ps", played.parts[i].start},
                                {"end_ps", played.parts[i].end}};
    if (!compute) task["bytes"] = part.bytes, task["algorithm"] = played.parts[i].algorithm;
    out["tasks"].push_back(std::move(task));
  }
  out["path"] = played.path;
  return out.dump(1) + "\n";
}

void write_trace(const Options& o, const Workload& workload, const Played& played) {
  const Timeline timeline = timeline_of(workload, played);
  const std::string ending = std::filesystem::path(o.output).extension();
  if (ending == ".html")
    write_output(o.output, html_report(timeline, {.title = fmt::format("{} on {}", workload.name, o.machine)}));
  if (ending == ".pftrace") write_output(o.output, perfetto(timeline));
  if (ending == ".json") write_output(o.output, chrome_trace(timeline));
}

int run(const Options& o) {
  const std::string ending = std::filesystem::path(o.output).extension();
  if (!o.output.empty() && ending != ".html" && ending != ".pftrace" && ending != ".json")
    throw std::invalid_argument(fmt::format("-o {}: expected a name that ends in .html, .pftrace or .json", o.output));
  if (!o.output.empty()) expect_writable(o.output);
  PlayOptions options{.era = o.era, .algorithm = o.algorithm, .flops = o.tflops * 1e12, .packets = o.packets};
  if (!o.memory.empty()) options.memory = measure(o.memory, Dimension::rate, "a rate like 700GB/s");
  const Machine machine = machine_of(o);
  const Workload workload = workload_of(o);
  const Played played = play(workload, machine, options);
  if (!o.output.empty()) write_trace(o, workload, played);
  write_output("", o.json ? json_of(workload, machine, played) : text_of(workload, machine, played));
  return 0;
}

const Registered plays(command<Options>("play", "Plays a training step or a trace of one on a simulated machine",
                                        "trellis play step.txt --machine trn2.48xlarge\n"
                                        "trellis play step.txt --machine torus:4x4 --tflops 80 -o step.html\n"
                                        "trellis play trace.0.et --machine network.yml --json\n"
                                        "trellis play allreduce.xml --machine full:8 --bytes 64MiB",
                                        add, run));

}  // namespace
}  // namespace trellis::tools
