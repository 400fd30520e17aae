// trellis train show, draw, export: a step without running it.
#include <fmt/format.h>

#include <array>
#include <map>

#include "tools/picture/palette.h"
#include "tools/picture/svg.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/table.h"
#include "tools/train/config_file.h"
#include "train/pipeline/simulate.h"
#include "train/step/memory_plan.h"
#include "train/whole/chakra.h"
#include "train/whole/check.h"
#include "train/whole/export.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config;
  std::vector<std::string> changes;
  int ranks = 0;
  std::string output, chakra;
  bool json = false;
};

void add_job(CLI::App& app, Options& o) {
  app.add_option("config", o.config, "The configuration")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  app.add_option("-n,--ranks", o.ranks, "Ranks in all [trainer.devices x num_nodes, or tensor x pipeline]");
}

train::Rank ranks_of(const Options& o, const train::JobConfig& job) {
  if (o.ranks > 0) return o.ranks;
  if (job.trainer.devices > 0) return job.trainer.devices * std::max<train::Rank>(1, job.trainer.num_nodes);
  return job.step.strategy.tensor * job.step.strategy.pipeline;
}

double count_of(const std::map<train::Axis, double>& bytes, train::Axis axis) {
  const auto found = bytes.find(axis);
  return found == bytes.end() ? 0 : found->second;
}

void add_stage(Table& table, std::size_t stage, const train::Step& step) {
  double parameters = 0, flops = 0;
  for (const train::Parameter& p : step.parameters.all()) parameters += static_cast<double>(p.slice.elements());
  std::map<train::Axis, double> bytes;
  for (const train::Operation& o : step.program.operations) {
    flops += o.flops;
    if (o.kind == train::Operation::Kind::exchange) bytes[o.exchange.axis] += step.program.bytes_exchanged(o);
  }
  const train::MemoryPlan plan = train::plan_memory(step.program);
  const auto category = [&](train::Category c) {
    return static_cast<double>(plan.at_peak[static_cast<std::size_t>(c)]);
  };
  table.add({static_cast<std::int64_t>(stage), parameters, static_cast<double>(plan.bytes),
             category(train::Category::parameter), category(train::Category::gradient),
             category(train::Category::master) + category(train::Category::moment),
             category(train::Category::activation) + category(train::Category::scratch),
             count_of(bytes, train::Axis::tensor), count_of(bytes, train::Axis::data),
             count_of(bytes, train::Axis::pipeline), flops});
}

void add_show(CLI::App& app, Options& o) {
  app.description(
      "Lays a step out and proves it, without running it: what each stage's ranks hold and send in a step.");
  add_job(app, o);
  app.add_flag("--json", o.json, "Print JSON");
}

int show(const Options& o) {
  const train::Config config = read_config(o.config, o.changes).job.step;
  const train::Rank world = ranks_of(o, read_config(o.config, o.changes).job);
  const std::vector<train::Step> stages = train::stages_of(config, world);
  const std::string fault = train::check_step(config, world, stages);
  Table table("stages", {{.name = "stage"},
                         {.name = "parameters"},
                         {.name = "memory", .unit = "B"},
                         {.name = "weights", .unit = "B"},
                         {.name = "gradients", .unit = "B"},
                         {.name = "optimizer", .unit = "B"},
                         {.name = "activations", .unit = "B"},
                         {.name = "tensor sent", .unit = "B"},
                         {.name = "data sent", .unit = "B"},
                         {.name = "pipeline sent", .unit = "B"},
                         {.name = "FLOPs"}});
  for (std::size_t s = 0; s < stages.size(); ++s) add_stage(table, s, stages[s]);
  const train::PipelineSchedule schedule = train::schedule_of(config, train::derive(config, world));
  const train::Timing timing = train::simulate(schedule, {}, train::Messages::buffered);
  if (o.json) {
    write_output("", table.json());
  } else {
    const train::MeshShape& m = stages[0].mesh.shape();
    write_output(
        "",
        fmt::format("{} ranks: tensor {}, pipeline {}, data {}; {} micro-batches; {}, bubble {:.1f}%\n{}{}\n", world,
                    m.tensor, m.pipeline, m.data, stages[0].micro_batches, schedule.name, 100 * timing.bubble(),
                    table.text(),
                    fault.empty() ? "proved: communication matches, and nobody waits in a circle" : "FAULT: " + fault));
  }
  return fault.empty() ? 0 : 1;
}

void add_draw(CLI::App& app, Options& o) {
  app.description("Draws the pipeline schedule over time: forward passes, backward passes, gradients of weights.");
  add_job(app, o);
  app.add_option("-o,--output", o.output, "An SVG file [standard output]");
}

std::string picture(const train::PipelineSchedule& s, const train::Timing& t) {
  constexpr double left = 70, row = 26, top = 44;
  const double unit = std::max(4.0, std::min(22.0, 1600.0 / static_cast<double>(t.end)));
  const double width = left + unit * static_cast<double>(t.end) + 20,
               height = top + row * static_cast<double>(s.ranks.size()) + 30;
  const std::string title = fmt::format("{}: {} ranks, {} stages a rank, {} micro-batches; bubble {:.1f}%", s.name,
                                        s.shape.ranks, s.shape.chunks, s.shape.micro_batches, 100 * t.bubble());
  draw::Svg svg(width, height, draw::chart_style, title);
  svg.rect({0, 0}, {width, height}, 0, R"(class="paper")");
  svg.text({12, 26}, title, R"(font-size="14" font-weight="600")");
  for (std::size_t r = 0; r < s.ranks.size(); ++r) {
    const double y = top + row * static_cast<double>(r);
    svg.text({12, y + 16}, fmt::format("rank {}", r), R"(font-size="12")");
    for (std::size_t i = 0; i < s.ranks[r].size(); ++i) {
      const train::Slot slot = s.ranks[r][i];
      if (!train::computes(slot.action)) continue;
      const auto ink = draw::ink(static_cast<std::int64_t>(slot.action));
      const double x = left + unit * static_cast<double>(t.starts[r][i]),
                   w = unit * static_cast<double>(t.ends[r][i] - t.starts[r][i]);
      svg.open("", fmt::format("{} of micro-batch {}, stage {}", train::name(slot.action), slot.micro,
                               s.stage_of(static_cast<std::int32_t>(r), slot.chunk)));
      svg.rect({x, y}, {w - 1, row - 4}, 2,
               fmt::format(R"(fill="{}" opacity="{}")", ink.colour, slot.chunk % 2 == 0 ? "1" : ".62"));
      if (w > 14)
        svg.text({x + w / 2, y + 15}, std::to_string(slot.micro),
                 fmt::format(R"(font-size="10" text-anchor="middle" style="fill:{}")", ink.text));
      svg.close();
    }
  }
  return std::move(svg).finish();
}

int draw_schedule(const Options& o) {
  const ReadConfig read = read_config(o.config, o.changes);
  const train::PipelineSchedule s =
      train::schedule_of(read.job.step, train::derive(read.job.step, ranks_of(o, read.job)));
  write_output(o.output, picture(s, train::simulate(s, {}, train::Messages::buffered)));
  return 0;
}

void add_export(CLI::App& app, Options& o) {
  app.description("Writes the step as a workload that `trellis play` prices on a simulated machine.");
  add_job(app, o);
  app.add_option("--chakra", o.chakra, "Instead: traces for ASTRA-sim, one a rank: NAME.0.et and so on");
  app.add_option("-o,--output", o.output, "A file [standard output]");
}

int export_step(const Options& o) {
  const ReadConfig read = read_config(o.config, o.changes);
  if (!o.chakra.empty()) {
    const std::vector<train::Step> stages = train::stages_of(read.job.step, ranks_of(o, read.job));
    for (train::Rank r = 0; r < stages[0].mesh.ranks(); ++r)
      write_output(fmt::format("{}.{}.et", o.chakra, r), train::chakra_trace(stages, r));
    return 0;
  }
  write_output(o.output, train::workload_text(train::stages_of(read.job.step, ranks_of(o, read.job))));
  return 0;
}

const Registered shows(command("train show", "Lays a step out and proves it",
                               "trellis train show examples/llama.yaml --ranks 8", add_show, show));
const Registered draws(command("train draw", "Draws the pipeline schedule",
                               "trellis train draw examples/llama.yaml --ranks 4 --set "
                               "distributed_strategy.pipeline_model_parallel_size=4 -o pipeline.svg",
                               add_draw, draw_schedule));
const Registered exports(command("train export", "Writes the step as a workload for trellis play",
                                 "trellis train export examples/llama.yaml --ranks 8 -o step.txt", add_export,
                                 export_step));

}  // namespace
}  // namespace trellis::tools
