// trellis train price: how long a training step takes on a simulated machine, where the time goes, whether it fits.
#include <fmt/format.h>

#include "sim/cluster/machine/import/typed.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/train/config_file.h"
#include "tools/train/run/plugins.h"
#include "tools/train/step_pricing.h"
#include "tools/train/step_words.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config, machine = "trn1.32xlarge", output;
  std::vector<std::string> changes, what_if, plugins;
  sim::StepOptions step;
  int ranks = 0;
  bool json = false, whole = false;
};

void add(CLI::App& app, Options& o) {
  app.description(fmt::format(
      "Lays a training step out, proves it, and prices it on a machine: its time with an interval that four of five\n"
      "published steps are within, tokens a second, MFU; for each stage where the time goes and how much memory it "
      "takes;\n"
      "the exchanges; the critical path in words. Each operation has a time by its kind and shape: what Tensor, "
      "Vector,\n"
      "Scalar and DMA have to do of it (sim/cluster/operation). A pipeline's steady state is priced once.\n\n{}",
      sim::machine_grammar));
  app.add_option("config", o.config, "The configuration")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  add_plugins(app, o.plugins);
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-n,--ranks", o.ranks, "Ranks in all [all of the machine's]")->check(above_zero());
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_option("--era", o.step.era, "The software's generation, for collectives [the machine's usual one]");
  app.add_option("--software", o.step.software, "The release that compiled the step, as 2.21 [the newest known]");
  app.add_flag("--whole", o.whole, "Lay out and price every micro-batch, also where the steady state repeats");
  app.add_option("-o,--output", o.output, timeline_help);
  app.add_flag("--json", o.json, "Print JSON");
}

int run(const Options& given) {
  Options o = given;
  expect_timeline_file(o.output);
  load_plugins(o.plugins);
  const ReadConfig read = read_config(o.config, o.changes);
  const sim::Machine machine(asked_machine(o.machine, o.what_if, o.step.era));
  const train::Rank world = o.ranks > 0 ? o.ranks : machine.ranks();
  PriceProgress watch;
  watch.begin("a training step");
  o.step.stopped = [&](sim::Time reached, double done) { return watch.stopped(reached, done); };
  const PricedStep priced = price_of(read.job.step, world, machine, o.step, o.whole);
  watch.clear();
  if (priced.time == sim::forever) throw std::runtime_error("interrupted before the step was priced");
  const std::string title = fmt::format("{} on {}", read.job.step.name, machine.name());
  if (!o.output.empty())
    write_timeline(o.output, sim::timeline_of(priced.graph, priced.price),
                   {.title = title,
                    .introduction = is_page(o.output) ? step_page(priced, machine) : "",
                    .scope = fmt::format("{} of {} ranks", priced.graph.classes.size(), priced.graph.ranks),
                    .path = false});
  write_output("", o.json ? step_json(priced, machine) : step_text(priced, machine));
  return priced.fits() ? 0 : 1;
}

const Registered prices(command("train price", "Prices a training step on a simulated machine",
                                "trellis train price examples/llama.yaml -m trn1.32xlarge\n"
                                "trellis train price llama70b.yaml -m \"trn2.48xlarge x 64\" --what-if efa.rate=20GB/s",
                                add, run));

}  // namespace
}  // namespace trellis::tools
