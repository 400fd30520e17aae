#include "tools/sim/play_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "measure/bench_names.h"
#include "sim/cluster/answer/workload_answer.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/workload/chakra.h"
#include "sim/cluster/workload/loggopsim_goal.h"
#include "sim/hardware/figures/figure_units.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"
#include "tools/program/table.h"
#include "tools/schedule/schedule_source.h"
#include "tools/sim/sim_report.h"
#include "tools/sim/workload_page.h"

namespace trellis::tools {

using namespace measure;
namespace {

using namespace sim;

double rate_of(const std::string& text) {
  std::string_view rest = text;
  const double value = text::take_number<double>(rest).value_or(-1);
  const Unit* unit = find_unit(rest);
  if (!(value > 0 && value < 1e18) || unit == nullptr || unit->dimension != Dimension::rate)
    text::refuse("--memory {}: expected a rate above 0, like 700GB/s", text);
  return in_own_unit(value, *unit);
}

// The files of all ranks for a name like step.0.et; else the one file.
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

bool is_trace(const PlayFileOptions& o) { return std::filesystem::path(o.file.path).extension() == ".et"; }

ExecutionGraph trace(const PlayFileOptions& o) {
  std::vector<std::string> texts;
  const std::vector<std::string> paths = trace_paths(o.file.path);
  for (const std::string& path : paths) texts.push_back(read_input(path));
  std::vector<ChakraFile> files;
  for (std::size_t i = 0; i < paths.size(); ++i) files.push_back({paths[i], texts[i]});
  return read_chakra(o.file.path, files);
}

ExecutionGraph graph_of(const PlayFileOptions& o) {
  if (is_trace(o)) return trace(o);
  if (is_goal(o.file.text)) return goal_graph(read_goal(o.file.path, o.file.text));
  return read_graph(o.file.path, o.file.text);
}

// Reads the graph with one program for all ranks that do the same. Returns none if a trace has a fault, or if no two
// ranks do the same.
std::optional<ExecutionGraph> alike_graph_of(const PlayFileOptions& o) {
  if (!is_trace(o)) return graph_of(o);
  const std::vector<std::string> paths = trace_paths(o.file.path);
  return read_alike_chakra(o.file.path, paths, [&](std::size_t r) { return read_input(paths[r]); });
}

// The file's workload, folded where ranks do the same and folding is wanted.
Workload workload_of(const PlayFileOptions& o) {
  if (o.unfolded || o.noise.runs > 0) return sim::workload_of(graph_of(o));
  auto read = alike_graph_of(o);
  if (!read) return sim::workload_of(graph_of(o));
  const auto graph = std::make_shared<const ExecutionGraph>(*std::move(read));
  if (auto folded = folded_workload_of(graph)) return *std::move(folded);
  return sim::workload_of(is_trace(o) ? std::make_shared<const ExecutionGraph>(graph_of(o)) : graph);
}

// Reads the schedules of exchanges that have `file:PATH` in place of an algorithm's name.
void read_schedules(Workload& workload, const std::string& usual) {
  std::map<std::string, std::shared_ptr<const schedule::Schedule>> read;
  for (WorkloadTask& part : workload.parts) {
    const std::string& config = part.algorithm().empty() ? usual : part.algorithm();
    if (part.computes || part.schedule || !config.starts_with(schedule::file_prefix)) continue;
    auto& schedule = read[config];
    if (!schedule)
      schedule =
          std::make_shared<const schedule::Schedule>(proved(typed_file(config.substr(schedule::file_prefix.size()))));
    part.schedule = schedule;
  }
}

// The tasks of one name. The table sorts them by their time on the critical path, largest first.
struct Row {
  std::string what, algorithm;
  std::int64_t parts = 0;
  Time first = forever, last = 0, path = 0;
};

// How often a part of the workload is done: an exchange once by each group, a computation once by each of its
// EquivalentRanks.
std::int64_t times_of(const Workload& workload, const WorkloadTask& part) {
  if (part.groups) return std::ssize(*part.groups);
  if (!part.computes) return 1;
  return std::ssize(workload.cells[part.cells.front()].ranks);
}

Table rows_of(const Workload& workload, const PlayResult& played) {
  std::map<std::string, Row> by_name;
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    const WorkloadTask& part = workload.parts[i];
    Row& row = by_name[part.task->name];
    row.what = part.computes ? "compute" : sim::text(workload, part);
    row.algorithm = played.parts[i].algorithm;
    row.parts += times_of(workload, part);
    row.first = std::min(row.first, played.parts[i].start);
    row.last = std::max(row.last, played.parts[i].end);
  }
  for (std::uint32_t i : played.path)
    by_name[workload.parts[i].task->name].path += played.parts[i].end - played.parts[i].start;
  std::vector<std::pair<std::string, Row>> rows(by_name.begin(), by_name.end());
  std::ranges::stable_sort(rows, std::greater{},
                           [](const auto& r) { return std::pair(r.second.path, -r.second.first); });
  constexpr std::size_t most = 20;
  if (rows.size() > most) rows.resize(most);
  Table table("tasks",
              {left("task"), left("what"), left("algorithm"), {"times"}, {"from", "s"}, {"to", "s"}, {"on the path"}});
  for (const auto& [name, row] : rows)
    table.add({name, row.what, row.algorithm, row.parts, in_seconds(row.first), in_seconds(row.last),
               share_words(row.path, played.time)});
  return table;
}

// The number of computations and exchanges, and their times on the critical path.
struct Counts {
  std::int64_t computations = 0, exchanges = 0;
  Time computing = 0, exchanging = 0;
};

Counts counts_of(const Workload& workload, const PlayResult& played) {
  Counts counts;
  for (const WorkloadTask& part : workload.parts)
    (part.computes ? counts.computations : counts.exchanges) += times_of(workload, part);
  for (std::uint32_t i : played.path)
    (workload.parts[i].computes ? counts.computing : counts.exchanging) += played.parts[i].end - played.parts[i].start;
  return counts;
}

std::string text_of(const WorkloadReport& report) {
  const auto& [workload, machine, answer] = report;
  const auto& [played, interval, noisy, interrupted] = answer;
  std::string out = fmt::format("{} on {}: {}\n", workload.graph->name, machine.title(), time_words(played.time));
  if (!interrupted.empty()) out += fmt::format("  interrupted    {}\n", interrupted);
  if (interval.high > 0) out += fmt::format("  between        {}\n", interval_words(interval));
  if (const std::string words = rests_on(machine.spec()); !words.empty())
    out += fmt::format("  rests on       {}\n", words);
  if (!noisy.times.empty()) out += fmt::format("  with noise     {}\n", noise_words(noisy));
  for (const Sensitivity& s :
       std::span(interval.sensitivities).first(std::min<std::size_t>(3, interval.sensitivities.size())))
    out += fmt::format("  sensitive to   {}\n", sensitivity_words(s));
  const auto mean = static_cast<Time>(played.exposed_mean);
  out += fmt::format("  communication  exposed for {} in the mean ({}), {} at most ({})\n", time_words(mean),
                     share_words(mean, played.time), time_words(played.exposed_most),
                     share_words(played.exposed_most, played.time));
  out += fmt::format("  critical path  {} tasks, {} of it communication\n", played.path.size(),
                     share_words(counts_of(workload, played).exchanging, played.time));
  return out + "\n" + rows_of(workload, played).text();
}

std::string json_of(const WorkloadReport& report, bool tasks) {
  const auto& [workload, machine, answer] = report;
  const auto& [played, interval, noisy, interrupted] = answer;
  nlohmann::ordered_json out{{"workload", workload.graph->name},
                             {"machine", machine.name()},
                             {"what_if", machine.spec().changes},
                             {"ranks", workload.graph->ranks},
                             {"time_us", in_us(played.time)},
                             {"time_ps", played.time},
                             {"exposed_mean_us", played.exposed_mean * 1e-6},
                             {"exposed_most_us", in_us(played.exposed_most)},
                             {"interrupted", interrupted}};
  put_interval(out, interval);
  put_noise(out, noisy);
  const Counts counts = counts_of(workload, played);
  out["computations"] = counts.computations, out["exchanges"] = counts.exchanges;
  out["path_us"] = {{"computation", in_us(counts.computing)}, {"communication", in_us(counts.exchanging)}};
  if (!tasks) return json_text(out, 1);
  out["tasks"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    const WorkloadTask& part = workload.parts[i];
    const bool compute = part.computes;
    nlohmann::ordered_json task{{"task", part.task->name},
                                {"what", compute ? "compute" : name(part.operation().collective)},
                                {"rank", workload.cells[part.cells.front()].ranks.front()},
                                {"times", times_of(workload, part)},
                                {"start_ps", played.parts[i].start},
                                {"end_ps", played.parts[i].end}};
    if (!compute) task["bytes"] = part.task->bytes, task["algorithm"] = played.parts[i].algorithm;
    out["tasks"].push_back(std::move(task));
  }
  out["path"] = played.path;
  return json_text(out, 1);
}

// Plays the file by LogGOPS parameters, which have neither topology nor interval.
int play_loggops(const PlayFileOptions& o, const LogGops& parameters) {
  if (!is_goal(o.file.text))
    text::refuse("-m {}: {} is no GOAL file, which begins with num_ranks", o.machine, o.file.path);
  std::string stranger = !o.algorithm.empty() ? "--algorithm" : !o.era.empty() ? "--era" : "";
  if (!o.memory.empty() || o.tflops > 0) stranger = o.tflops > 0 ? "--tflops" : "--memory";
  if (!o.output.empty() || !o.what_if.empty()) stranger = o.output.empty() ? "--what-if" : "--output";
  if (!o.figures.empty()) stranger = "--figures";
  if (o.noise.runs > 0) stranger = "--noise";
  if (o.tasks || o.unfolded) stranger = o.tasks ? "--tasks" : "--unfolded";
  if (!stranger.empty()) text::refuse("{} goes with a machine, and {} are parameters alone", stranger, o.machine);
  note_origin("machine", o.machine);
  const std::vector<double> ends = play_goal(read_goal(o.file.path, o.file.text), parameters);
  const auto [first, last] = std::ranges::minmax(ends);
  const auto time = [](double nanoseconds) { return static_cast<Time>(nanoseconds * ns); };
  if (!o.json) {
    write_output("", fmt::format("{} on {}: {}\n  ranks end      from {} to {}\n", o.file.path, o.machine,
                                 time_words(time(last)), time_words(time(first)), time_words(time(last))));
    return 0;
  }
  nlohmann::ordered_json out{
      {"workload", o.file.path}, {"machine", o.machine}, {"ranks", ends.size()}, {"time_ps", time(last)}};
  for (const double end : ends) out["ends_ps"].push_back(time(end));
  write_output("", json_text(out, 1));
  return 0;
}

}  // namespace

int play_file(const PlayFileOptions& o) {
  expect_timeline_file(o.output);
  if (const auto parameters = loggops_named(o.machine)) return play_loggops(o, *parameters);
  PlayOptions options{.era = o.era, .algorithm = o.algorithm, .flops = o.tflops * 1e12};
  if (!o.memory.empty()) options.memory = rate_of(o.memory);
  PriceProgress watch;
  PricingSession priced(asked_machine(o.machine, o.what_if, o.era, o.figures), &watch);
  expect_noise(o.noise, priced.machine(), o.era);
  note_seed(o.noise);
  WorkloadReport report{.machine = priced.machine()};
  const auto play = [&](Workload w) {
    report.workload = std::move(w);
    read_schedules(report.workload, o.algorithm);
    report.answer = answer(report.workload, options, o.noise, priced);
  };
  try {
    play(workload_of(o));
  } catch (const FoldedRanksDiffer&) {
    play(sim::workload_of(graph_of(o)));
  }
  const Workload& workload = report.workload;
  if (report.answer.played.time == forever) throw std::runtime_error("interrupted before the end was reached");
  watch.clear();
  if (!o.output.empty())
    write_timeline(o.output, timeline_of(workload, report.answer.played),
                   {.title = fmt::format("{} on {}", workload.graph->name, priced.machine().title()),
                    .introduction = is_page(o.output) ? play_page(report) : "",
                    .scope = workload.cells.size() < static_cast<std::size_t>(workload.graph->ranks)
                                 ? fmt::format("{} of {} ranks", workload.cells.size(), workload.graph->ranks)
                                 : "",
                    .path = false});
  write_output("", o.json ? json_of(report, o.tasks) : text_of(report));
  return report.answer.interrupted.empty() ? 0 : 1;
}

}  // namespace trellis::tools
