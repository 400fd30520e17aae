// trellis train search: the layouts of a model on a machine, which fit, which is fastest, and what it costs.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "net/sha256.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/tune/sweep.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/layouts/layout_journal.h"
#include "tools/layouts/layout_search_report.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/train/config_file.h"
#include "tools/train/operation_times_option.h"
#include "train/cache/proof.h"
#include "train/config/canonical.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config, figures, prices, points, output, times = by_formulas;
  std::vector<std::string> changes, what_if, machines = {"trn1.32xlarge"};
  sim::StepOptions step;
  std::size_t global_batch = 0, most = 12;
  train::Rank most_context = 8;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(fmt::format(
      "Tries the layouts of a model on all ranks of a machine: tensor and pipeline sizes, chunks a rank, schedules,\n"
      "micro-batches, ZeRO-1, recomputation, experts' ranks, ranks that share a sequence, orders of axes; sequence\n"
      "parallelism wherever there is a tensor axis.\n"
      "Those that need more memory than a rank has are ruled out, and so are those that cannot win by a bound: a\n"
      "layout's computation and tensor exchanges, and the filling of its pipeline. The others are priced as\n"
      "`trellis train price` does, and the best is proved. Prints the fastest that fit, why the first wins, and the\n"
      "front of time and memory. Ctrl-C prints what is known by then; with --points a later search goes on there.\n"
      "Several -m are searched one after the other, and with --prices their best layouts are held against each "
      "other.\n\n"
      "{}",
      sim::machine_grammar));
  app.add_option("config", o.config, "The configuration: its model, sequence length, precision")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  app.add_option("-m,--machine", o.machines, "The machine, or several")->capture_default_str();
  app.add_option("-g,--global-batch", o.global_batch, "Sequences a step [the configuration's]")->check(above_zero());
  app.add_option("--most-context", o.most_context,
                 "Ranks that share a sequence, at most (context_parallel_size); 1: each has sequences of its own")
      ->capture_default_str()
      ->check(above_zero());
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_option("--figures", o.figures, figures_help);
  app.add_option("--software", o.step.software,
                 "The Neuron SDK release that compiled the step, as 2.21 [the newest known]");
  add_times_option(app, o.times);
  app.add_option("--prices", o.prices,
                 "A file of prices of a host, a line each: trn1.32xlarge = 21.5 | documented | dollars an hour");
  app.add_option("--points", o.points, "Keep what is priced in this file, and go on from it");
  app.add_option("--most", o.most, "Layouts to print")->capture_default_str();
  app.add_option("-o,--output", o.output, "Draw the memory and time of all priced layouts, as SVG")
      ->check(svg_file())
      ->check(output_file());
  app.add_flag("--json", o.json, "Print JSON");
}

// What a host of the machine costs an hour; none where no price is asked for.
std::optional<double> price_of_host(const Options& o, const std::string& machine) {
  if (o.prices.empty()) return {};
  const std::string name = machine.substr(0, machine.find(' '));
  try {
    const sim::Figures prices = sim::Figures::read(read_input(o.prices));
    if (!prices.has(name)) text::refuse("no price of {}: expected a line for it", name);
    const double price = prices.number(name);
    if (!(price > 0))
      text::refuse("line {}: {} = {}: expected dollars an hour above 0", prices.at(name).line, name, price);
    return price;
  } catch (const std::invalid_argument& e) {
    text::refuse("{}: {}", o.prices, e.what());
  }
}

std::string fingerprint_of(const train::StepConfig& config, const sim::MachineSpec& spec,
                           const sim::StepOptions& options) {
  std::string text = train::canonical(config, 1) + sim::fingerprint(spec, options.era) + options.software;
  if (options.programs) text += " programs";
  return net::short_digest(text);
}

// The journal of one of several machines: the file of --points with the name of the machine. A machine may be a path,
// whose slashes are replaced.
std::string points_of(const std::string& points, std::string machine) {
  std::ranges::replace(machine, '/', '_');
  return fmt::format("{}.{}", points, machine);
}

SearchedMachine searched(const Options& o, const train::StepConfig& config, const std::string& name,
                         PriceProgress& watch) {
  const sim::Machine machine(asked_machine(name, o.what_if, o.step.era, o.figures));
  SearchedMachine m{.name = machine.name(), .config = config, .price = price_of_host(o, name)};
  m.hosts = static_cast<double>(machine.ranks()) / static_cast<double>(sim::ranks_of_host(machine));
  sim::StepOptions options = o.step;
  options.programs = programs_for(o.times, machine);
  LayoutJournal points(o.points.empty() || o.machines.size() == 1 ? o.points : points_of(o.points, name),
                       fingerprint_of(config, machine.spec(), options));
  double part = 0;  // fraction of the layouts that are decided
  const auto stopped = [&] { return watch.stopped(0, part); };
  options.stopped = [&](sim::Time, double) { return stopped(); };
  watch.begin(fmt::format("layouts on {}", name));
  m.search = search_layouts(config, machine, options,
                            {.most_context = o.most_context,
                             .stopped =
                                 [&](std::size_t done, std::size_t of) {
                                   part = static_cast<double>(done) / static_cast<double>(of);
                                   watch.decided(part);
                                   return stopped();
                                 },
                             .known = [&](PricedLayout& l) { return points.known(l); },
                             .found = [&](const PricedLayout& l) { points.keep(l); }});
  if (m.search.best() == nullptr || m.search.stopped) return m;
  constexpr std::size_t rivals = 4;
  std::vector<StepLayout> others;
  for (const PricedLayout& l : m.search.layouts)
    if (&l != m.search.best() && l.time > 0 && l.fits && others.size() < rivals) others.push_back(l.layout);
  m.reversals = reversals(config, machine, options, m.search.best()->layout, others);
  return m;
}

int run(const Options& o) {
  const ReadConfig read = read_config(o.config, o.changes);
  train::StepConfig config = read.job.step;
  if (o.global_batch > 0) config.global_batch_size = o.global_batch;
  PriceProgress watch;
  std::vector<SearchedMachine> all;
  bool whole = true;
  for (const std::string& name : o.machines) {
    all.push_back(searched(o, config, name, watch));
    whole = whole && all.back().search.best() != nullptr && !all.back().search.stopped;
    if (all.back().search.stopped) break;
  }
  watch.clear();
  std::string text;
  if (o.json) {
    text = search_json(all, o.most);
  } else {
    for (const SearchedMachine& m : all) text += (text.empty() ? "" : "\n") + search_text(m, o.most);
    if (all.size() > 1) text += "\nno other is faster and cheaper where the front is yes:\n" + machines_text(all);
  }
  write_output("", text);
  if (!o.output.empty()) write_output(o.output, front_picture(all));
  return whole ? 0 : 1;
}

const RegisteredCommand searches("train search", "Searches the layouts of a model on a simulated machine",
                                 "trellis train search llama7b.yaml -m \"trn1.32xlarge x 4\" --global-batch 256\n"
                                 "trellis train search llama7b.yaml -m \"trn1.32xlarge x 4\" -m \"trn1.32xlarge x 8\" "
                                 "--prices examples/prices.txt -o front.svg",
                                 add, run);

}  // namespace
}  // namespace trellis::tools
