#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <thread>

#include "schedule/text.h"
#include "schedule/verify.h"
#include "sim/tuner_search.h"
#include "tools/bench_progress.h"
#include "tools/bench_words.h"
#include "tools/command.h"
#include "tools/machine_stop.h"
#include "tools/machine_tune_chart.h"
#include "tools/machine_typed.h"
#include "tools/output.h"
#include "tools/table.h"

namespace trellis::tools {
namespace {

using sim::Cost;
using sim::Machine;
using sim::Pricer;
using sim::Way;

struct Options {
  std::string machine, collective, bytes = "1MB", group = "all", era, output;
  std::vector<std::string> algorithms, what_if;
  std::size_t levels = 3, finalists = 6, shown = 5;
  int threads = 0;
};

void add(CLI::App& app, Options& o) {
  app.description(
      "Looks for a schedule that beats the algorithms as they are: hierarchies of any algorithms, over every way of\n"
      "taking the machine's dimensions together or apart. Each is priced; the fastest are tried with several lanes "
      "and\n"
      "parts; what is reported was proved right first.");
  app.add_option("machine", o.machine, "A machine's name, a shape like torus:4x4, or a file")->required();
  app.add_option("op", o.collective, "The collective")->required();
  app.add_option("--bytes", o.bytes, "Size of the larger buffer")->capture_default_str();
  app.add_option("--group", o.group, "Of ranks: all, inner-16, across-4")->capture_default_str();
  app.add_option("--algorithms", o.algorithms, "Only these at the levels")->delimiter(',');
  app.add_option("--levels", o.levels, "At most so many")->check(CLI::Range(2, 8))->capture_default_str();
  app.add_option("--finalists", o.finalists, "That are tried with lanes and parts")->capture_default_str();
  app.add_option("--show", o.shown, "Lines of each table")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--era", o.era, "Of the machine's software; its usual one");
  app.add_option("--what-if", o.what_if, "Another figure or a defect: \"efa.rate=12 GB/s\", dead:0-1");
  app.add_option("--threads", o.threads, "To price with; as many as there are processors");
  app.add_option("-o,--output", o.output, "The schedule found, as text");
}

std::string table_text(const char* name, const std::vector<Cost>& costs, std::size_t shown) {
  Table table(name, {{.name = name, .align = Align::left}, {.name = "time", .unit = "s"}});
  for (std::size_t i = 0; i < std::min(shown, costs.size()); ++i)
    table.add({text_of(costs[i].way), sim::in_seconds(costs[i].time)});
  return table.text();
}

// The first that is proved right; what fails is our own fault, and said.
std::optional<schedule::Schedule> proved(const Pricer& pricer, const Way& way, std::string& text) {
  schedule::Schedule s = make(schedule::algorithm_named(way.algorithm), pricer.request(way));
  const schedule::Report report = schedule::verify(s);
  text += fmt::format("{}: {}\n", text_of(way), report.text());
  if (!report.ok()) return std::nullopt;
  return s;
}

std::string reproduced_by(const Options& o, const Pricer& pricer, const Way& way) {
  const schedule::Request r = pricer.request(way);
  return fmt::format("trellis schedule verify {} -a {} --dims {} --levels {} --channels {} --segments {}\n",
                     o.collective, way.algorithm, fmt::join(r.dims, "x"), fmt::join(r.levels, ","), r.channels,
                     r.segments);
}

int run(const Options& o) {
  const Machine machine(typed_machine(o.machine, o.what_if));
  const sim::Group group = sim::group_named(machine, o.group);
  const Pricer::Settings settings{.collective = bench_op(o.collective).collective, .era = o.era};
  const double bytes = static_cast<double>(parse_bytes(o.bytes));
  if (!o.output.empty()) expect_writable(o.output);
  const Interrupts interrupts;
  BenchProgress progress(0, true);
  sim::SweepControl control{.threads = o.threads};
  if (o.threads <= 0) control.threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  control.stopped = [&] { return interrupts.asked(); };
  control.found = [&](const Cost& c) { progress.next(text_of(c.way)); };
  const sim::SearchResult result =
      sim::search(machine, group, settings, bytes,
                  {.algorithms = o.algorithms, .most_levels = o.levels, .finalists = o.finalists}, control);
  progress.clear();
  if (result.fixed.empty() || result.found.empty())
    throw std::invalid_argument(fmt::format("nothing was found for {} on {} ranks", o.collective, group.ranks()));
  std::string text =
      fmt::format("{} of {} on {} ranks of {}: {} compositions priced{}\n\n", o.collective, sim_bytes_text(bytes),
                  group.ranks(), machine.name(), result.found.size(), interrupts.asked() ? ", then interrupted" : "");
  text += table_text("fixed", result.fixed, o.shown) + "\n" + table_text("found", result.found, o.shown) + "\n";
  Pricer pricer(machine, group, settings);
  const Way &fixed = result.fixed.front().way, &found = result.found.front().way;
  const auto schedule = proved(pricer, found, text);
  if (schedule && !o.output.empty()) write_output(o.output, schedule::print(*schedule));
  for (const Way& way : {fixed, found}) {
    const sim::Price p = pricer.price(way, bytes, true);
    text += fmt::format("{}: {}; {}, {:.0f}% of the time\n", text_of(way), sim::path_in_words(p, machine),
                        p.busiest_name, 100 * p.busiest_share);
  }
  const double gain =
      1 - static_cast<double>(result.found.front().time) / static_cast<double>(result.fixed.front().time);
  text += gain > 0 ? fmt::format("found: {:.1f}% less time than the best as they are\n", 100 * gain)
                   : fmt::format("none is better than {}\n", text_of(fixed));
  write_output("", text + reproduced_by(o, pricer, found));
  return schedule ? 0 : 1;
}

const Registered sim_search_command(
    command("machine search", "Looks for a composition that beats the best algorithm on a simulated machine",
            "trellis machine search \"trn1.32xlarge x 4\" all_reduce --bytes 64MB\n"
            "trellis machine search torus:4x4x4 all_reduce --bytes 1MB --what-if dead:0-1 -o found.txt",
            add, run));

}  // namespace
}  // namespace trellis::tools
