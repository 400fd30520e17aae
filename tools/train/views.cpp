// trellis train show, draw, export: a step without running it.
#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "schedule/graph/graph_text.h"
#include "schedule/graph/merge_computations.h"
#include "schedule/graph/peak_memory.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/table.h"
#include "tools/train/config_file.h"
#include "tools/train/memory_parts.h"
#include "tools/train/pipeline_page.h"
#include "tools/train/run/plugins.h"
#include "train/config/experts/experts_check.h"
#include "train/pipeline/simulate.h"
#include "train/whole/chakra.h"
#include "train/whole/check.h"
#include "train/whole/graph.h"
#include "train/whole/traffic.h"
#include "train/whole/zero_bubble_memory.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> changes, plugins;
  int ranks = 0;
  std::string output, chakra;
  bool json = false;
};

void add_job(CLI::App& app, Options& o) {
  app.add_option("config", o.config, "The configuration")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  add_plugins(app, o.plugins);
  app.add_option("-n,--ranks", o.ranks, "Ranks in all [trainer.devices x num_nodes, or tensor x context x pipeline]")
      ->check(above_zero());
}

train::Rank ranks_of(const Options& o, const train::JobConfig& job) {
  if (o.ranks > 0) return o.ranks;
  if (job.trainer.devices > 0) return job.trainer.devices * std::max<train::Rank>(1, job.trainer.num_nodes);
  return job.step.strategy.ranks_of_model();
}

ReadConfig read_job(const Options& o) {
  load_plugins(o.plugins);
  ReadConfig read = read_config(o.config, o.changes);
  complete_batch(read, ranks_of(o, read.job));
  return read;
}

double count_of(const std::map<train::Axis, double>& bytes, train::Axis axis) {
  const auto found = bytes.find(axis);
  return found == bytes.end() ? 0 : found->second;
}

void add_class(Table& table, const train::RankStep& step, const schedule::RankClass& of,
               const schedule::ExecutionGraph& graph) {
  double parameters = 0, flops = 0;
  for (const train::Parameter& p : step.parameters.all()) parameters += static_cast<double>(p.slice.elements());
  std::map<train::Axis, double> bytes;
  for (const train::Operation& o : step.program.operations) {
    flops += o.flops;
    if (o.kind == train::Operation::Kind::exchange) bytes[o.exchange.axis] += train::bytes_sent(step, o);
  }
  const schedule::PeakMemory peak = schedule::peak_memory(graph, of);
  std::vector<Cell> row{std::int64_t{step.place.pipeline}, static_cast<std::int64_t>(of.ranks.size()), parameters,
                        static_cast<double>(peak.bytes)};
  for (const double part : memory_parts(peak)) row.emplace_back(part);
  row.emplace_back(count_of(bytes, train::Axis::tensor) + count_of(bytes, train::Axis::kv));
  row.emplace_back(count_of(bytes, train::replica_axis(step.mesh.shape())) + count_of(bytes, train::Axis::expert_data));
  row.emplace_back(count_of(bytes, train::Axis::pipeline) + count_of(bytes, train::Axis::tied));
  row.emplace_back(flops);
  if (step.mesh.shape().context > 1) row.emplace_back(count_of(bytes, train::Axis::context));
  if (step.mesh.shape().expert > 1) row.emplace_back(count_of(bytes, train::Axis::expert_model));
  table.add(std::move(row));
}

// Simulates the pipeline schedule, in which each pass takes a time in proportion to its FLOPs in this job.
train::PipelineTiming timing_of(const train::PipelineSchedule& schedule, const std::vector<train::RankStep>& classes) {
  std::vector<train::StageCosts> costs(static_cast<std::size_t>(schedule.shape.stages()));
  for (std::int32_t p = 0; p < schedule.shape.ranks; ++p)
    for (std::int32_t chunk = 0; chunk < schedule.shape.chunks; ++chunk)
      costs[static_cast<std::size_t>(schedule.stage_of(p, chunk))] =
          classes[static_cast<std::size_t>(p)].costs[static_cast<std::size_t>(chunk)];
  return train::simulate_uneven(schedule, costs, train::MessageMode::buffered);
}

void add_show(CLI::App& app, Options& o) {
  app.description(
      "Lays a step out and proves it, without running it: what each stage's ranks hold and send in a step.\n"
      "Sent is what a rank puts on the wire: of a reduce_scatter or all_gather a shard for each other rank of the "
      "group,\n"
      "of an all_reduce both, of a pipeline's message all of it. The bubble is the pipeline's idle time over its busy\n"
      "time, of all ranks: (P-1)/M for equal stages under 1F1B.\n"
      "Memory is an accelerator's: without model.fusions.flash_attention its activations have arrays of all pairs of\n"
      "queries and keys, which `trellis train` on this machine does not hold.");
  add_job(app, o);
  app.add_flag("--json", o.json, "Print JSON");
}

int show(const Options& o) {
  const ReadConfig read = read_job(o);
  const train::StepConfig& config = read.job.step;
  const train::Rank world = ranks_of(o, read.job);
  const std::vector<train::RankStep> classes = train::classes_of(config, world);
  const schedule::ExecutionGraph graph = train::graph_of(classes);
  const std::string fault = train::check_step(config, world, classes, graph);
  std::vector<Column> columns{{"stage"}, {"ranks"}, {"parameters"}, {"memory", "B"}};
  for (const char* part : memory_part_names) columns.push_back({part, "B"});
  for (const char* sent : {"tensor sent", "data sent", "pipeline sent"}) columns.push_back({sent, "B"});
  columns.push_back({"FLOPs"});
  if (config.strategy.context > 1) columns.push_back({"context sent", "B"});
  if (config.strategy.expert > 1) columns.push_back({"experts sent", "B"});
  Table table("stages", std::move(columns));
  for (std::size_t c = 0; c < classes.size(); ++c) add_class(table, classes[c], graph.classes[c], graph);
  const train::PipelineSchedule schedule = train::schedule_of(config, train::derive(config, world));
  if (o.json) {
    write_output("", table.json());
  } else {
    const train::MeshShape& m = classes[0].mesh.shape();
    std::string notes = train::split_memory(config, world, classes, graph);
    if (!notes.empty()) notes += "\n";
    if (const std::string routing = train::routing_words(config); !routing.empty())
      notes += "experts: " + routing + "\n";
    if (!read.notes.empty()) notes += list_of(read.notes) + "\n";
    write_output(
        "",
        fmt::format(
            "{} ranks: tensor {}, pipeline {}, data {}{}; {} micro-batches; {}\nbubble: {:.1f}%, idle over busy time "
            "by the stages' FLOPs; {:.1f}% were the stages equal\n{}{}{}\n",
            world, m.tensor, m.pipeline, m.data, train::context_words(config), classes[0].micro_batches, schedule.name,
            100 * timing_of(schedule, classes).bubble(),
            100 * train::simulate(schedule, {}, train::MessageMode::buffered).bubble(), table.text(), notes,
            fault.empty() ? "proved: communication matches, and nobody waits in a circle" : "FAULT: " + fault));
  }
  return fault.empty() ? 0 : 1;
}

void add_draw(CLI::App& app, Options& o) {
  app.description(
      "Draws the pipeline schedule over time: forward passes, backward passes, gradients of weights. A page also has "
      "what\n"
      "each rank does, and which ranks work together.");
  add_job(app, o);
  app.add_option("-o,--output", o.output, "An SVG file, or a page: FILE.html [SVG on standard output]")
      ->check(output_file());
}

int draw_schedule(const Options& o) {
  const ReadConfig read = read_job(o);
  const train::Derived derived = train::derive(read.job.step, ranks_of(o, read.job));
  const train::PipelineSchedule s = train::schedule_of(read.job.step, derived);
  const train::PipelineTiming timing = train::simulate(s, {}, train::MessageMode::buffered);
  write_output(o.output, std::filesystem::path(o.output).extension() == ".html"
                             ? pipeline_page(s, timing, train::Mesh(derived.mesh, read.job.step.wiring))
                             : pipeline_picture(s, timing));
  return 0;
}

void add_export(CLI::App& app, Options& o) {
  app.description("Writes the step as a workload that `trellis sim` prices on a simulated machine.");
  add_job(app, o);
  app.add_option("--chakra", o.chakra,
                 "Instead: traces for ASTRA-sim, one a rank, NAME.0.et and so on, and their groups, NAME.groups.json");
  app.add_option("-o,--output", o.output, "A file [standard output]")->check(output_file());
}

int export_step(const Options& o) {
  const ReadConfig read = read_job(o);
  if (!o.chakra.empty()) {
    expect_writable(fmt::format("{}.0.et", o.chakra));
    const std::vector<train::RankStep> classes = train::classes_of(read.job.step, ranks_of(o, read.job));
    for (train::Rank r = 0; r < classes[0].mesh.ranks(); ++r)
      write_output(fmt::format("{}.{}.et", o.chakra, r), train::chakra_trace(classes, r));
    write_output(fmt::format("{}.groups.json", o.chakra), train::chakra_groups(classes));
    return 0;
  }
  write_output(
      o.output,
      schedule::graph_text(schedule::merged(train::graph_of(train::classes_of(read.job.step, ranks_of(o, read.job))))));
  return 0;
}

const RegisteredCommand shows("train show", "Lays a step out and proves it",
                              "trellis train show examples/llama.yaml --ranks 2", add_show, show);
const RegisteredCommand draws("train draw", "Draws the pipeline schedule",
                              "trellis train draw examples/llama.yaml --ranks 4 --set "
                              "distributed_strategy.pipeline_model_parallel_size=4 -o pipeline.svg",
                              add_draw, draw_schedule);
const RegisteredCommand exports("train export", "Writes the step as a workload for trellis sim",
                                "trellis train export examples/llama.yaml --ranks 2 -o step.txt", add_export,
                                export_step);

}  // namespace
}  // namespace trellis::tools
