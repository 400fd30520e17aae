// trellis train price: how long a training step takes on a simulated machine, where the time goes, whether it fits.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "sim/cluster/machine/import/machine_argument.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/noise.h"
#include "tools/answer/price_progress.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/train/config_file.h"
#include "tools/train/operation_times_option.h"
#include "tools/train/run/plugins.h"
#include "tools/train/step_price_report.h"
#include "tools/train/step_pricing.h"

namespace trellis::tools {
namespace {

struct Options {
  const CLI::App* app = nullptr;
  std::string config, figures, machine = "trn1.32xlarge", output, times = by_formulas;
  std::vector<std::string> changes, what_if, plugins;
  sim::StepOptions step;
  int ranks = 0;
  std::string order = "data", mtbf, checkpoint, save = "60s", restart = "10min";
  sim::NoiseOptions noise;
  bool json = false, whole = false;
};

void add(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(fmt::format(
      "Lays a training step out, proves it, and prices it on a machine: its time with an interval that four of five\n"
      "published steps are within, tokens a second, MFU; for each stage where the time goes and how much memory it "
      "takes;\n"
      "the exchanges; the critical path in words. Each operation has a time by its kind and shape: what Tensor, "
      "Vector,\n"
      "Scalar and DMA have to do of it (sim/cluster/operation). Micro-batches that are alike are laid out once.\n\n{}",
      sim::machine_grammar));
  app.add_option("config", o.config, "The configuration")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  add_plugins(app, o.plugins);
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-n,--ranks", o.ranks, "Ranks in all [all of the machine's]")->check(above_zero());
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_option("--figures", o.figures, figures_help);
  app.add_option("--era", o.step.era,
                 "The software's generation, for collectives: 2025, 2026-host [the machine's usual one]");
  app.add_option("--software", o.step.software,
                 "The Neuron SDK release that compiled the step, as 2.21 [the newest known]");
  add_times_option(app, o.times);
  app.add_flag("--whole", o.whole, "Lay out and price every micro-batch, also those that are alike");
  app.add_option(
         "--order", o.order,
         "Which axis comes next over the machine's ranks, after the tensor axis: data, as `trellis train` counts\n"
         "ranks, or pipeline, as a list of hosts may place them")
      ->check(CLI::IsMember({"data", "pipeline"}))
      ->capture_default_str();
  add_noise_options(app, o.noise);
  app.add_option("--host-mtbf", o.mtbf,
                 "Mean time between failures of a host, as 3000h: prints the goodput, the part of a long job's time "
                 "in steps that count");
  app.add_option("--checkpoint", o.checkpoint, "Time from a checkpoint to the next one, as 30min [the best]");
  app.add_option("--save", o.save, "Time that a checkpoint stops the steps")->capture_default_str();
  app.add_option("--restart", o.restart, "Time from a failure to the first step after it")->capture_default_str();
  app.add_option("-o,--output", o.output, timeline_help);
  app.add_flag("--json", o.json, "Print JSON");
}

// "30min", "3000h", "45s".
double seconds_of(const char* option, std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr std::array units = {Unit{"ms", 1e-3}, Unit{"min", 60}, Unit{"s", 1}, Unit{"h", 3600}, Unit{"d", 86400}};
  for (const Unit& u : units)
    if (text.ends_with(u.name))
      if (const auto value = text::number<double>(text.substr(0, text.size() - u.name.size()), 0, 1e12))
        return *value * u.seconds;
  text::refuse("{} {}: expected a time, as 45s, 30min, 3000h or 90d", option, text);
}

std::optional<sim::GoodputInputs> failures_of(const Options& o, const sim::Machine& machine, train::Rank world) {
  if (o.mtbf.empty()) {
    for (const char* option : {"--checkpoint", "--save", "--restart"})
      if (o.app->count(option) != 0) text::refuse("{} goes with --host-mtbf", option);
    return {};
  }
  const double hosts = std::ceil(static_cast<double>(world) / static_cast<double>(sim::ranks_of_host(machine)));
  sim::GoodputInputs f{.between = seconds_of("--host-mtbf", o.mtbf) / hosts,
                       .save = seconds_of("--save", o.save),
                       .restart = seconds_of("--restart", o.restart)};
  if (!(f.between > 0)) text::refuse("--host-mtbf {}: expected more than 0", o.mtbf);
  f.interval = o.checkpoint.empty() ? sim::best_interval(f) : seconds_of("--checkpoint", o.checkpoint);
  if (!(f.interval > 0)) text::refuse("--checkpoint {}: expected more than 0", o.checkpoint);
  return f;
}

int run(const Options& given) {
  Options o = given;
  expect_timeline_file(o.output);
  load_plugins(o.plugins);
  ReadConfig read = read_config(o.config, o.changes);
  const sim::Machine machine(asked_machine(o.machine, o.what_if, o.step.era, o.figures));
  const train::Rank world = o.ranks > 0 ? o.ranks : machine.ranks();
  complete_batch(read, world);
  o.step.programs = programs_for(o.times, machine);
  PriceProgress watch;
  watch.begin("a training step");
  o.step.stopped = [&](sim::Time reached, double done) { return watch.stopped(reached, done); };
  expect_noise(o.noise, machine, o.step.era);
  note_seed(o.noise);
  const std::optional<sim::GoodputInputs> failures = failures_of(o, machine, world);
  PreparedStep step(read.job.step, world, machine, o.step,
                    {.whole = o.whole, .order = o.order == "data" ? AxisOrder::data_first : AxisOrder::pipeline_first});
  PricedStep priced = step.price();
  priced.failures = failures;
  if (priced.price.time != sim::forever) priced.noisy = step.noisy(o.noise);
  watch.clear();
  if (priced.price.time == sim::forever) throw std::runtime_error("interrupted before the step was priced");
  const std::string title = fmt::format("{} on {}", read.job.step.name, machine.title());
  if (!o.output.empty())
    write_timeline(o.output, sim::timeline_of(priced.graph, priced.price),
                   {.title = title,
                    .introduction = is_page(o.output) ? step_page(priced, machine) : "",
                    .scope = fmt::format("{} of {} ranks", priced.graph.classes.size(), priced.graph.ranks),
                    .path = false});
  write_output("", o.json ? step_json(priced, machine) : step_text(priced, machine));
  return priced.fits() ? 0 : 1;
}

const RegisteredCommand prices("train price", "Prices a training step on a simulated machine",
                               "trellis train price examples/llama.yaml -m trn1.32xlarge\n"
                               "trellis train price llama70b.yaml -m \"trn2.48xlarge x 64\" --what-if efa.rate=20GB/s",
                               add, run);

}  // namespace
}  // namespace trellis::tools
