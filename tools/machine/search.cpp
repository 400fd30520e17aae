#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "measure/bench_names.h"
#include "schedule/formats/msccl_xml.h"
#include "schedule/formats/text.h"
#include "schedule/proof/verify.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/tune/search.h"
#include "sim/cluster/tune/synthesis.h"
#include "sim/hardware/thread_pool.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/crossover_chart.h"
#include "tools/machine/sweep_journal.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/table.h"

namespace trellis::tools {

using namespace measure;
namespace {

using sim::AlgorithmConfig;
using sim::ConfigCost;
using sim::Machine;
using sim::Pricer;

struct Options {
  const CLI::App* app = nullptr;
  std::string machine, collective, bytes = "1MB", group = "all", era, points, output;
  std::vector<std::string> algorithms, what_if;
  std::size_t levels = 3, finalists = 6, shown = 5;
  std::int64_t most_moves = sim::SearchOptions{}.most_moves;
  int threads = 0;
  bool synthesise = false;
};

void add(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(
      "Searches for a schedule that is faster than every plain algorithm. Tries every hierarchy of algorithms over\n"
      "merged or separate dimensions of the machine, every order of the dimensions, and two algorithms at once that\n"
      "share the data; prices each, and tries the fastest with several channels and segments. The baseline is the\n"
      "fastest plain algorithm, the choice of `trellis sim` included.\n\n"
      "--synthesise builds schedules for this very machine, with its dead and slow links: step by step, it puts on\n"
      "each idle link a chunk that the receiver still needs. Every schedule is proved before it is reported.\n\n"
      "Ctrl-C stops the search and prints the fastest result so far, unproved. --points keeps finished points in a\n"
      "file, so that an interrupted search can be resumed. `machine tune` and other searches of the same machine can\n"
      "share the file.\n\n"
      "The library runs the file: TRELLIS_ALGORITHM=all_reduce=file:found.schedule, or trellis bench --algorithm\n"
      "file:found.schedule.");
  app.add_option("machine", o.machine, "A machine's name, a shape like torus:4x4, or a file")->required();
  app.add_option("op", o.collective, "The collective")->required();
  app.add_option("--bytes", o.bytes, "Size of the larger buffer")->capture_default_str();
  app.add_option("--group", o.group, "Group of ranks: all, inner-16, across-4")->capture_default_str();
  app.add_option("--algorithms", o.algorithms, "Use only these algorithms at the levels")->delimiter(',');
  app.add_option("--levels", o.levels, "Most levels of a hierarchy")->check(CLI::Range(2, 8))->capture_default_str();
  app.add_option("--finalists", o.finalists,
                 "Number of fastest candidates that are also tried with other channels and segments")
      ->capture_default_str();
  app.add_option("--show", o.shown, "Lines of each table")->check(above_zero())->capture_default_str();
  app.add_option("--moves", o.most_moves,
                 "Most moves (local steps and transfers) to simulate for each kind of candidate, most promising first: "
                 "more takes longer")
      ->check(above_zero())
      ->capture_default_str();
  app.add_option("--era", o.era, "The software's generation: 2025, 2026-host [the machine's usual one]");
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_option("--threads", o.threads, "Number of threads [one per processor]")->check(CLI::Range(0, 1024));
  app.add_option("--points", o.points, "Keep finished points in this file, and go on from it");
  app.add_flag("--synthesise", o.synthesise, "Make schedules for the machine's links, too");
  app.add_option("-o,--output", o.output, "The fastest schedule, as text; as MSCCL's XML where the name ends in .xml");
}

std::string table_text(const char* name, const std::vector<ConfigCost>& costs, std::size_t shown) {
  Table table(name, {left(name), {"time", "s"}});
  for (std::size_t i = 0; i < std::min(shown, costs.size()); ++i)
    table.add({text_of(costs[i].config), sim::in_seconds(costs[i].time)});
  return table.text();
}

// The fastest candidate of the search: an algorithm's config, or a synthesised schedule.
struct Found {
  std::string name;
  sim::Time time = 0;
  schedule::Schedule schedule;
  std::string again;  // the command that makes the schedule again; empty for a synthesised one
};

std::string reproduced_by(const Pricer& pricer, const AlgorithmConfig& config) {
  const schedule::Request r = pricer.request(config);
  std::string text = fmt::format("trellis schedule verify {} -a {} --dims {} --channels {} --segments {}",
                                 schedule::name(r.operation.collective), config.algorithm, fmt::join(r.dims, "x"),
                                 r.channels, r.segments);
  const bool quoted = std::ranges::any_of(r.levels, [](const auto& l) { return l.find('(') != l.npos; });
  if (!r.levels.empty()) text += fmt::format(" --levels {1}{0}{1}", fmt::join(r.levels, ","), quoted ? "'" : "");
  if (!r.order.empty()) text += fmt::format(" --order {}", fmt::join(r.order, "."));
  return text + "\n";
}

Found best_of(const Pricer& pricer, double bytes, const std::vector<ConfigCost>& found,
              const std::vector<sim::SynthesisResult>& made) {
  if (!made.empty() && (found.empty() || made.front().time < found.front().time))
    return {text_of(made.front().how), made.front().time,
            synthesised(pricer.machine(), pricer.group(), pricer.settings(), bytes, made.front().how), ""};
  const AlgorithmConfig& config = found.front().config;
  return {text_of(config), found.front().time,
          make(schedule::algorithm_named(config.algorithm), pricer.request(config)), reproduced_by(pricer, config)};
}

// The fraction of the fixed algorithm's time that the found one saves.
double gain_over(const ConfigCost& fixed, sim::Time found) {
  return 1 - static_cast<double>(found) / static_cast<double>(fixed.time);
}

std::string gain_text(const Options& o, const Machine& machine, double gain, const ConfigCost& fixed) {
  const auto found = static_cast<sim::Time>(static_cast<double>(fixed.time) * (1 - gain));
  if (gain > 0)
    return fmt::format("found: {:.1f}% less time than the best as they are{}\n", 100 * gain,
                       sim::is_draw(machine, o.era, found, fixed.time) ? "; a draw, by the model's own error" : "");
  return fmt::format("none is better than {}{}\n", text_of(fixed.config),
                     o.output.empty() ? "" : fmt::format(", which is what {} holds", o.output));
}

std::string where_it_goes(const Machine& machine, const std::string& name, const sim::Price& p) {
  return fmt::format("{}: {}; {}, {:.0f}% of the time\n", name, sim::path_in_words(p, machine), p.busiest_name,
                     100 * p.busiest_share);
}

void write_schedule(const std::string& path, const schedule::Schedule& s) {
  if (path.empty()) return;
  write_output(path, path.ends_with(".xml") ? schedule::export_msccl(s) : schedule::print(s));
}

std::string made_text(const std::vector<sim::SynthesisResult>& made, std::size_t shown) {
  Table table("made", {left("made"), {"time", "s"}});
  for (std::size_t i = 0; i < std::min(shown, made.size()); ++i)
    table.add({text_of(made[i].how), sim::in_seconds(made[i].time)});
  return table.text() + "\n";
}

// The candidates that were priced until the search ended or was interrupted.
struct Looked {
  sim::SearchResult result;
  std::vector<sim::SynthesisResult> made;
  bool interrupted = false;
};

Looked look(const Options& o, const Machine& machine, const sim::RankGroup& group, const Pricer::Settings& settings,
            double bytes) {
  SweepJournal points(o.points, machine, o.era, {});
  const InterruptPoller interrupts;
  Progress progress(0, true);
  sim::SweepControl control{.threads = o.threads};
  if (o.threads <= 0) control.threads = sim::processors();
  control.stopped = [&] { return interrupts.asked(); };
  const sim::SweepSpec kept{.group = group, .settings = settings};
  control.known = points.known(kept), control.slower = points.slower(kept);
  control.found = [&](const ConfigCost& c) { progress.next(text_of(c.config)), points.keep(kept, c); };
  control.given_up = [&](const ConfigCost& c) { progress.next(text_of(c.config)), points.keep_slower(kept, c); };
  Looked found{.result = sim::search(machine, group, settings, bytes,
                                     {.algorithms = o.algorithms,
                                      .most_levels = o.levels,
                                      .finalists = o.finalists,
                                      .shown = o.shown,
                                      .most_moves = o.most_moves},
                                     control),
               .made = {}};
  if (o.synthesise) found.made = sim::syntheses(machine, group, settings, bytes, control);
  found.interrupted = interrupts.asked();
  const bool nothing = found.result.fixed.empty() || (found.result.found.empty() && found.made.empty());
  if (nothing && !found.interrupted) text::refuse("nothing was found for {} on {} ranks", o.collective, group.ranks());
  return found;
}

std::string heading(const Options& o, const Machine& machine, const sim::RankGroup& group, double bytes,
                    const Looked& l) {
  const bool carries = schedule::carries_data(bench_op(o.collective).collective);
  std::string text =
      fmt::format("{}{} on {} ranks of {}: {} compositions{} tried{}{}\n", o.collective,
                  carries ? " of " + sim_bytes_text(bytes) : "", group.ranks(), machine.name(), l.result.tried,
                  l.made.empty() ? "" : fmt::format(" and {} syntheses", l.made.size()),
                  l.result.untried > 0 ? fmt::format(", {} left out: see --moves", l.result.untried) : "",
                  l.interrupted ? ", then interrupted" : "");
  std::set<std::string> told;
  for (const sim::RejectedConfig& left : l.result.left_out)
    if (told.insert(left.config.algorithm).second)
      text += fmt::format("left out {}: {}\n", text_of(left.config), left.why);
  return text + "\n";
}

// Reports what was priced before the interruption. None of it is proved, so no schedule is written.
int tell_of_interruption(const Options& o, const Looked& l, std::string text) {
  if (l.result.fixed.empty() && l.result.found.empty() && l.made.empty())
    throw std::runtime_error("interrupted before anything was priced");
  if (!l.result.fixed.empty()) text += table_text("fixed", l.result.fixed, o.shown) + "\n";
  if (!l.result.found.empty()) text += table_text("found", l.result.found, o.shown) + "\n";
  if (!l.made.empty()) text += made_text(l.made, o.shown);
  text += fmt::format("interrupted: these are the fastest so far, and not proved{}\n",
                      o.output.empty() ? "" : fmt::format("; {} was not written", o.output));
  write_output("", text);
  return 1;
}

int run(const Options& o) {
  const Machine machine(asked_machine(o.machine, o.what_if, o.era));
  const sim::RankGroup group = sim::group_named(machine, o.group);
  const Pricer::Settings settings{
      .operation = {.collective = bench_op(o.collective).collective, .peer = sim::last_rank}, .era = o.era};
  if (o.app->count("--bytes") != 0 && !schedule::carries_data(settings.operation.collective))
    text::refuse("--bytes {}: {} moves no data", o.bytes, o.collective);
  const auto bytes = static_cast<double>(parse_bytes(o.bytes));
  if (!o.output.empty()) expect_writable(o.output);
  if (o.synthesise) sim::expect_synthesises(settings.operation.collective);
  const Looked looked = look(o, machine, group, settings, bytes);
  std::string text = heading(o, machine, group, bytes, looked);
  if (looked.interrupted) return tell_of_interruption(o, looked, std::move(text));
  const auto& [result, made, interrupted] = looked;
  text += table_text("fixed", result.fixed, o.shown) + "\n" + table_text("found", result.found, o.shown) + "\n";
  if (!made.empty()) text += made_text(made, o.shown);
  Pricer pricer(machine, group, settings);
  const Found best = best_of(pricer, bytes, result.found, made);
  const schedule::Report report = schedule::verify(best.schedule);
  text += fmt::format("{}: {}\n", best.name, report.text());
  const ConfigCost& fixed = result.fixed.front();
  const double gain = gain_over(fixed, best.time);
  if (report.ok())
    write_schedule(o.output,
                   gain > 0 ? best.schedule
                            : make(schedule::algorithm_named(fixed.config.algorithm), pricer.request(fixed.config)));
  sim::PricingSession priced(machine.spec());
  sim::CollectiveQuestion question = sim::question_for({.group = group, .settings = settings}, fixed.config, bytes);
  question.path = true;
  text += where_it_goes(machine, text_of(fixed.config), answer(question, priced).price);
  question.config.reset(), question.schedule = &best.schedule;
  text += where_it_goes(machine, best.name, answer(question, priced).price);
  write_output("", text + gain_text(o, machine, gain, fixed) + best.again);
  return report.ok() ? 0 : 1;
}

const RegisteredCommand sim_search_command(
    "machine search", "Looks for a composition that beats the best algorithm on a simulated machine",
    "trellis machine search \"trn1.32xlarge x 4\" all_reduce --bytes 64MB\n"
    "trellis machine search torus:4x4x4 all_reduce --bytes 64MB --what-if dead:0-1 --synthesise -o "
    "found.schedule\n"
    "trellis machine search trn2u all_gather --points search.points",
    add, run);

}  // namespace
}  // namespace trellis::tools
