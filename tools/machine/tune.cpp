#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <stdexcept>

#include "ccl/plan/selection_table.h"
#include "ccl/transports/open.h"
#include "measure/bench_names.h"
#include "measure/selection_rules.h"
#include "schedule/proof/algorithm_refutation.h"
#include "sim/cluster/choose/algorithm_choice.h"
#include "sim/cluster/choose/usual_configs.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/cluster/tune/crossover_finder.h"
#include "sim/hardware/thread_pool.h"
#include "text/refuse.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/crossover_chart.h"
#include "tools/answer/price_progress.h"
#include "tools/machine/sweep_journal.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/provenance.h"
#include "tools/program/table.h"

namespace trellis::tools {

using namespace measure;
namespace {

using schedule::Collective;
using sim::AlgorithmConfig;
using sim::BestConfigRange;
using sim::ConfigCost;
using sim::Machine;
using sim::Pricer;
using sim::RankGroup;

constexpr const char* description =
    "Prices every algorithm with several channels, and segments where --segments says so, on a simulated machine,\n"
    "over sizes and groups of its ranks, and says which is best from where on: as regions, as a chart, and as a\n"
    "selection table for ccl/. Without --algorithms what `trellis sim` chooses at each of the sizes is among them.\n"
    "Each is proved first: up to 32 ranks as it is, above on a small machine of the same form. Where the best\n"
    "changes between two sizes, prices in between say at which byte, and what wins there; times are those of the\n"
    "sizes beside them.\n\n"
    "Groups are all ranks, inner-N (the first N: a chip, a row, a host) and across-N (one of each of these). Rules of\n"
    "across groups are those of a machine of their own, NAME:across. A sweep that is interrupted prints what it has, "
    "and\n"
    "writes neither table nor chart. With --points, finished points are kept in a file, and it goes on where it "
    "ended.\n"
    "Under trellis launch, mpirun or srun the ranks share the sweep by files that all of them see: FILE of --points,\n"
    "FILE.1, FILE.2, ... TRELLIS_SELECTIONS=FILE and TRELLIS_MACHINE=NAME make the library use the table.";

struct Options {
  CLI::App* app = nullptr;
  std::string machine, sizes = "8..1GB", era, output, chart, points, name;
  std::vector<std::string> collectives = {"all_reduce", "all_gather", "reduce_scatter"}, groups = {"all"}, algorithms,
                           what_if, explain, published;
  std::vector<std::int32_t> channels = {1, 2, 4}, segments = {1};
  int threads = 0;
  bool rows = false;
};

void add(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(description);
  app.add_option("machine", o.machine, "A machine's name, a shape like torus:4x4, or a file")->required();
  app.add_option("--collectives", o.collectives, "Which collectives")->delimiter(',')->capture_default_str();
  app.add_option("--groups", o.groups, "Groups of ranks: all, inner-16, across-4, or every")->delimiter(',');
  app.add_option("--sizes", o.sizes, "Sizes of the larger buffer: 8..1GB by powers of two; 64KB,1MB")
      ->capture_default_str();
  app.add_option("--algorithms", o.algorithms, "Only these")->delimiter(',');
  app.add_option("--channels", o.channels, "Numbers of channels to try")->delimiter(',')->capture_default_str();
  app.add_option("--segments", o.segments, "Numbers of segments to try")->delimiter(',')->capture_default_str();
  app.add_option("--era", o.era, "The software's generation: 2025, 2026-host [the machine's usual one]");
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_flag("--rows", o.rows, "Arrange all ranks in one row instead of the machine's shape");
  app.add_option("--threads", o.threads, "Number of threads [one per processor]")->check(CLI::Range(0, 1024));
  app.add_option("--points", o.points, "Keep finished points in this file, and go on from it");
  app.add_option("-o,--output", o.output, "The selection table's file");
  app.add_option("--name", o.name, "Name of the machine in the table [as given here]");
  app.add_option("--chart", o.chart, "The crossover chart's file, as SVG")->check(svg_file());
  app.add_option("--published", o.published, "Regions to draw beside ours: mesh:0,rdh:1MB,kangaring:56MB")
      ->delimiter(',');
  app.add_option("--explain", o.explain, "A collective and a size: explain the choice")->expected(2);
}

Machine machine_for(const Options& o) { return Machine(asked_machine(o.machine, o.what_if, o.era)); }

std::vector<RankGroup> groups_for(const Options& o, const Machine& machine) {
  std::vector<RankGroup> groups;
  for (const std::string& name : o.groups) {
    if (name == "every") {
      groups = sim::groups_of(machine);
      break;
    }
    groups.push_back(sim::group_named(machine, name));
  }
  for (RankGroup& g : groups)
    if (o.rows) g.dims = {g.ranks()};
  return groups;
}

std::vector<PublishedSizeRange> published_in(const Options& o) {
  std::vector<PublishedSizeRange> regions;
  for (const std::string& word : o.published) {
    const std::size_t colon = std::min(word.find(':'), word.size());
    if (colon + 1 >= word.size())
      text::refuse("--published {}: expected a name and where it begins, as in rdh:1MB", word);
    const std::string from = word.substr(colon + 1);
    regions.push_back({word.substr(0, colon), from == "0" ? 0 : static_cast<double>(parse_bytes(from))});
    if (regions.size() > 1 && regions.back().from <= regions[regions.size() - 2].from)
      text::refuse("--published {}: expected each to begin above the one before", fmt::join(o.published, ","));
  }
  return regions;
}

std::vector<double> sizes_for(const Options& o) {
  const std::vector<std::uint64_t> sizes = parse_sizes(o.sizes);
  return {sizes.begin(), sizes.end()};
}

// A name that a table accepts, made from one that may have blanks and slashes.
std::string table_name(const Options& o) {
  std::string name = o.name.empty() ? o.machine : o.name;
  for (char& c : name)
    if (std::string_view(" /*=,").find(c) != std::string_view::npos) c = '-';
  ccl::expect_machine(name);
  return name;
}

// The result for one collective in one group.
struct Tuned {
  Collective collective;
  RankGroup group;
  std::vector<ConfigCost> costs;
  std::vector<ConfigCost> at_borders;     // costs priced at the borders of regions
  std::vector<BestConfigRange> regions;   // each with the fastest config, channels and segments included
  std::vector<BestConfigRange> families;  // each with the fastest algorithm, whatever its channels and segments
};

// Adds what `trellis sim` chooses at each size, which may have other channels, segments or shapes, so that no result is
// slower.
void add_choices(sim::SweepSpec& s, Pricer& pricer) {
  std::vector<double> sizes = s.sizes;
  if (!schedule::carries_data(s.settings.operation.collective)) sizes.resize(1);
  for (const double bytes : sizes) {
    const sim::AlgorithmChoice choice =
        sim::choose(pricer, sim::usual_configs(pricer, bytes), bytes, {.within = sim::usual_within});
    if (!choice.best.empty() && std::ranges::find(s.configs, choice.best.front().config) == s.configs.end())
      s.configs.push_back(choice.best.front().config);
  }
}

// Wrong algorithms are left out, with a line in `wrong`; a wrong one that the caller named is refused.
sim::SweepSpec sweep_for(const Options& o, const Machine& machine, Collective collective, const RankGroup& group,
                         std::vector<std::string>& wrong, Progress& progress) {
  sim::SweepSpec s{
      group, {.operation = {.collective = collective, .peer = sim::last_rank}, .era = o.era}, {}, sizes_for(o)};
  Pricer pricer(machine, group, s.settings);
  for (const AlgorithmConfig& config : sim::configs_of(pricer, o.algorithms, o.channels, o.segments)) try {
      if (std::ranges::find(s.configs, config) != s.configs.end()) continue;  // a value was given twice
      progress.say(fmt::format("{} of {}: is {} right?", schedule::name(collective), group.name, text_of(config)));
      pricer.expect_right(config);
      s.configs.push_back(config);
    } catch (const schedule::RefutedAlgorithm& error) {
      if (!o.algorithms.empty()) throw;
      wrong.push_back(fmt::format("left out {}: {}\n", text_of(config), error.what()));
    }
  progress.say(fmt::format("{} of {}: what sim would choose", schedule::name(collective), group.name));
  if (o.algorithms.empty()) add_choices(s, pricer);
  return s;
}

int threads_for(const Options& o) { return o.threads > 0 ? o.threads : sim::processors(); }

Tuned tuned(const Options& o, const Machine& machine, const sim::SweepSpec& s, SweepJournal& points, Progress& progress,
            const InterruptPoller& interrupts, const ccl::LaunchedProcess& launched) {
  sim::SweepControl control{.threads = threads_for(o)};
  progress.skip(points.known(s).size());
  control.stopped = [&] { return interrupts.asked(); };
  control.found = [&](const ConfigCost& c) {
    progress.next(fmt::format("{} of {} by {}", schedule::name(s.settings.operation.collective), s.group.name,
                              text_of(c.config)));
    points.keep(s, c);
  };
  Tuned t{s.settings.operation.collective, s.group, shared_sweep(machine, s, control, points, launched), {}, {}, {}};
  if (interrupts.asked() || t.costs.empty()) {
    t.regions = sim::regions_of(t.costs, false);
    t.families = sim::regions_of(t.costs, true);
    return t;
  }
  sim::CrossoverFinder borders(machine, s, t.costs, {.threads = control.threads, .stopped = control.stopped});
  t.regions = borders.regions(false);
  t.families = borders.regions(true);
  t.at_borders = borders.priced();
  return t;
}

// The exact size, printed beside the rounded one when that is not exact.
std::string exact_bytes(double bytes) {
  const auto whole = static_cast<std::uint64_t>(bytes);
  const bool said = whole < 1024 || std::has_single_bit(whole);
  return said ? "" : fmt::format("({} B)", whole);
}

std::string regions_text(const Tuned& t) {
  std::string text = fmt::format("{} on {} ranks ({} of {})\n", schedule::name(t.collective), t.group.ranks(),
                                 t.group.name, fmt::join(t.group.dims, "x"));
  for (const BestConfigRange& r : t.families)
    text += fmt::format("  from {:>10} {:>14}  {:38}  {}\n", sim_bytes_text(r.at), exact_bytes(r.at), text_of(r.config),
                        sim_time_text(r.time));
  return text;
}

// Adds the group's shape: the library does not know the machine, and sees ranks as one row.
AlgorithmConfig config_in(const RankGroup& group, AlgorithmConfig config) {
  if (config.dims.empty() && group.dims.size() > 1) config.dims = group.dims;
  return config;
}

ccl::SelectionTable table_of(const Options& o, const std::vector<Tuned>& all) {
  ccl::SelectionTable table;
  std::set<std::string> taken;  // the first of two groups of the same size gets the rules
  for (const Tuned& t : all) {
    const std::string machine = table_name(o) + (t.group.across ? ":across" : "");
    if (!taken.insert(fmt::format("{} {} {}", machine, schedule::name(t.collective), t.group.ranks())).second) continue;
    for (const BestConfigRange& r : t.regions)
      table.add({t.collective,
                 t.group.ranks(),
                 static_cast<std::uint64_t>(r.from),
                 config_in(t.group, r.config),
                 {},
                 machine});
  }
  return table;
}

// An incomplete table is not written: the library would choose by it as by a complete one.
std::string unwritten_text(const Options& o) {
  std::vector<std::string> paths;
  for (const std::string& path : {o.output, o.chart})
    if (!path.empty()) paths.push_back(path);
  if (paths.empty()) return "";
  return fmt::format("{} {} not written, as points are missing; {}\n", fmt::join(paths, " and "),
                     paths.size() == 1 ? "was" : "were",
                     o.points.empty() ? "with --points FILE the next run goes on from those that are done"
                                      : fmt::format("the same command goes on from {}", o.points));
}

int tune(const Options& o) {
  const InterruptPoller interrupts;
  std::optional<InterruptWatchdog> prompt_end(std::in_place, interrupts);  // proofs do not poll
  if (!o.published.empty() && o.chart.empty()) throw std::invalid_argument("--published goes with --chart");
  if (!o.name.empty() && o.output.empty()) text::refuse("--name {} goes with -o", o.name);
  const Machine machine = machine_for(o);
  for (const std::string& path : {o.output, o.chart})
    if (!path.empty()) expect_writable(path);
  table_name(o);
  const std::vector<PublishedSizeRange> published = published_in(o);
  std::vector<sim::SweepSpec> sweeps;
  std::vector<std::string> wrong;
  std::size_t all = 0;
  std::optional<Progress> preparing(std::in_place);
  for (const RankGroup& group : groups_for(o, machine))
    for (const std::string& name : o.collectives) {
      sweeps.push_back(sweep_for(o, machine, bench_op(name).collective, group, wrong, *preparing));
      all += sweeps.back().points();
    }
  preparing.reset();
  prompt_end.reset();
  const ccl::LaunchedProcess launched = ccl::launched_from_environment();
  if (launched.ranks > 1 && o.points.empty())
    text::refuse("{} ranks by {}: --points FILE says where they share what they have done", launched.ranks,
                 launched.by);
  SweepJournal points(o.points, machine, o.era, launched);
  Progress progress(all, true);
  std::vector<Tuned> done;
  std::size_t finished = 0;
  for (const sim::SweepSpec& s : sweeps) {
    done.push_back(tuned(o, machine, s, points, progress, interrupts, launched));
    finished += done.back().costs.size();
    if (interrupts.asked()) break;
  }
  progress.clear();
  if (launched.rank > 0) return interrupts.asked() ? 1 : 0;
  std::erase_if(done, [](const Tuned& t) { return t.costs.empty(); });
  write_output("", fmt::format("{}", fmt::join(wrong, "")));
  const bool cut_off = finished < all || interrupts.asked();
  if (cut_off)
    write_output("",
                 fmt::format("interrupted: {} of {} points are done, and what follows is of these\n", finished, all));
  std::vector<CrossoverChart> charts;
  for (const Tuned& t : done) {
    write_output("", regions_text(t));
    std::vector<ConfigCost> costs = t.costs;
    costs.insert(costs.end(), t.at_borders.begin(), t.at_borders.end());
    charts.push_back({fmt::format("{} on {} ranks ({})", schedule::name(t.collective), t.group.ranks(), t.group.name),
                      std::move(costs), t.families, published});
  }
  if (cut_off) {
    write_output("", unwritten_text(o));
    return 1;
  }
  if (!o.output.empty()) write_output(o.output, origin_comment() + table_of(o, done).text());
  if (!o.chart.empty()) write_output(o.chart, tune_chart(machine.name(), charts));
  return 0;
}

std::string where_it_goes(const Machine& machine, const AlgorithmConfig& config, const sim::Price& p) {
  std::string text =
      fmt::format("{}: {}, {}\n", text_of(config), sim_time_text(p.time), sim::path_in_words(p, machine));
  if (!p.busiest_name.empty())
    text += fmt::format("  {} is the busiest, {:.0f}% of the time\n", p.busiest_name, 100 * p.busiest_share);
  return text;
}

int explain(const Options& o) {
  for (const char* flag : {"--collectives", "--sizes", "--points", "--output", "--name", "--chart", "--published"})
    if (o.app->count(flag) != 0) text::refuse("{} goes without --explain", flag);
  if (o.groups.size() > 1) throw std::invalid_argument("--groups: expected one with --explain");
  const Machine machine = machine_for(o);
  const double bytes = static_cast<double>(parse_bytes(o.explain[1]));
  Options one = o;
  one.sizes = o.explain[1];
  const RankGroup group = groups_for(o, machine).front();
  std::vector<std::string> wrong;
  Progress progress;
  const sim::SweepSpec s = sweep_for(one, machine, bench_op(o.explain[0]).collective, group, wrong, progress);
  progress.clear();
  std::vector<ConfigCost> costs = sim::sweep(machine, s, {.threads = threads_for(o)});
  std::ranges::sort(costs, {},
                    [](const ConfigCost& c) { return std::pair(c.time, c.config); });  // whatever the number of threads
  if (costs.empty()) text::refuse("no algorithm serves {} there", o.explain[0]);
  Table table("costs", {left("algorithm"), {"time", "s"}, {"of the fastest"}});
  std::set<std::string> seen;
  std::vector<AlgorithmConfig> two;
  std::vector<std::string> draws;
  for (const ConfigCost& c : costs) {
    if (!seen.insert(sim::family_of(c.config)).second) continue;
    if (!two.empty() && sim::is_draw(machine, o.era, costs.front().time, c.time)) draws.push_back(c.config.algorithm);
    if (two.size() < 2) two.push_back(c.config);
    table.add({text_of(c.config), sim::in_seconds(c.time),
               static_cast<double>(c.time) / static_cast<double>(costs.front().time)});
  }
  sim::PricingSession priced(machine.spec());
  std::string text = fmt::format("{}{} of {} on {} ranks of {}\n", fmt::join(wrong, ""), o.explain[0],
                                 sim_bytes_text(bytes), group.ranks(), machine.name());
  sim::LowerBounds bounds;  // those of the fastest config, for the report
  for (const AlgorithmConfig& config : two) {
    sim::CollectiveQuestion question = sim::question_for(s, config, bytes);
    question.path = true;
    const sim::Price price = answer(question, priced).price;
    text += where_it_goes(machine, config, price);
    if (config == two.front()) bounds = price.bounds;
  }
  text += fmt::format("nothing is faster than {} by latency, {} by bandwidth, {} by bisection\n\n",
                      sim_time_text(bounds.latency), sim_time_text(bounds.bandwidth), sim_time_text(bounds.bisection));
  if (!draws.empty())
    text +=
        fmt::format("a draw with {}: the model's own error leaves open which is faster\n\n", fmt::join(draws, ", "));
  write_output("", text + table.text());
  return 0;
}

int run(const Options& o) { return o.explain.empty() ? tune(o) : explain(o); }

const RegisteredCommand sim_tune_command(
    "machine tune", "Finds which algorithm is best for what on a simulated machine",
    "trellis machine tune trn2.48xlarge --collectives all_reduce --chart crossover.svg\n"
    "trellis machine tune trn2.48xlarge --algorithms mesh,rdh,kangaring,ring --segments 1\n"
    "trellis machine tune \"trn1.32xlarge x 4\" --groups every --points sweep.points -o trn1x4.txt\n"
    "trellis machine tune trn2.48xlarge --explain all_reduce 64KB",
    add, run);

}  // namespace
}  // namespace trellis::tools
