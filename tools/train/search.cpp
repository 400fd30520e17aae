// trellis train search: the layouts of a model on a machine, which fit, which is fastest.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/cluster/machine/import/typed.h"
#include "sim/hardware/timeline/summary_words.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/price_progress.h"
#include "tools/program/command.h"
#include "tools/program/json_text.h"
#include "tools/program/output.h"
#include "tools/program/table.h"
#include "tools/train/config_file.h"
#include "tools/train/layout_search.h"

namespace trellis::tools {
namespace {

struct Options {
  std::string config, machine = "trn1.32xlarge";
  std::vector<std::string> changes, what_if;
  sim::StepOptions step;
  std::size_t global_batch = 0, most = 12;
  bool json = false;
};

void add(CLI::App& app, Options& o) {
  app.description(fmt::format(
      "Tries the layouts of a model on all ranks of a machine: tensor and pipeline sizes, chunks a rank, "
      "micro-batches,\n"
      "ZeRO-1, recomputation; sequence parallelism wherever there is a tensor axis. Those that need more memory than "
      "a\n"
      "rank has are ruled out, and so are those that cannot win by a bound, a layout's computation and the filling of\n"
      "its pipeline; the others are priced as `trellis train price` does.\n"
      "Prints the fastest that fit, and the front of time and memory. Ctrl-C prints what is known by then.\n\n{}",
      sim::machine_grammar));
  app.add_option("config", o.config, "The configuration: its model, sequence length, precision")->required();
  app.add_option("--set", o.changes, "Changes a key: data.seq_length=128");
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-g,--global-batch", o.global_batch, "Sequences a step [the configuration's]");
  app.add_option("--what-if", o.what_if, sim::change_grammar);
  app.add_option("--software", o.step.software, "The release that compiled the step, as 2.21 [the newest known]");
  app.add_option("--most", o.most, "Layouts to print")->capture_default_str();
  app.add_flag("--json", o.json, "Print JSON");
}

Table table_of(const std::string& name, const std::vector<const PricedLayout*>& layouts) {
  Table table(name, {{.name = "layout", .align = Align::left},
                     {.name = "step", .unit = "s"},
                     {.name = "MFU"},
                     {.name = "exposed"},
                     {.name = "idle"},
                     {.name = "memory", .unit = "B"},
                     {.name = "fits"},
                     {.name = "bound", .unit = "s"}});
  const auto percent = [](double part) { return fmt::format("{:.1f}%", 100 * part); };
  for (const PricedLayout* l : layouts)
    table.add({words_of(l->layout), sim::in_seconds(l->time), percent(l->mfu), percent(l->exposed), percent(l->bubble),
               l->memory, l->fits, sim::in_seconds(l->bound)});
  return table;
}

// What a search reports in which nothing fits.
std::string least_of(const LayoutSearch& search) {
  const auto least = std::ranges::min_element(search.layouts, {}, &PricedLayout::memory);
  std::string out = fmt::format("  best           none fits into {} a rank", sim::bytes_words(search.memory_of_rank));
  if (least != search.layouts.end() && least->memory > 0)
    out += fmt::format("; the smallest, {}, needs {}", words_of(least->layout), sim::bytes_words(least->memory));
  return out + "\n";
}

std::string text_of(const LayoutSearch& search, const std::vector<const PricedLayout*>& first,
                    const sim::Machine& machine, const train::Config& config) {
  std::string out =
      fmt::format("{} on {}, {} sequences a step: {} layouts, {} too large, {} priced{}\n", config.name, machine.name(),
                  config.global_batch_size, search.layouts.size(), search.too_large, search.priced,
                  search.stopped ? "; stopped before all were looked at" : ", the others ruled out");
  const PricedLayout* const best = search.best();
  if (best == nullptr)
    out += least_of(search);
  else
    out +=
        fmt::format("  best           {}: {}, {} of {} a rank\n", words_of(best->layout), sim::time_words(best->time),
                    sim::bytes_words(best->memory), sim::bytes_words(search.memory_of_rank));
  return out + "\n" + table_of("layouts", first).text() + "\nno other is faster in less memory:\n" +
         table_of("front", search.front()).text();
}

int run(const Options& given) {
  Options o = given;
  const ReadConfig read = read_config(o.config, o.changes);
  train::Config config = read.job.step;
  if (o.global_batch > 0) config.global_batch_size = o.global_batch;
  const sim::Machine machine(asked_machine(o.machine, o.what_if));
  PriceProgress watch;
  watch.begin("layouts");
  double part = 0;  // of them that are decided
  const auto stopped = [&] { return watch.stopped(0, part); };
  o.step.stopped = [&](sim::Time, double) { return stopped(); };
  const LayoutSearch search = search_layouts(config, machine, o.step, [&](std::size_t done, std::size_t of) {
    part = static_cast<double>(done) / static_cast<double>(of);
    watch.decided(part);
    return stopped();
  });
  watch.clear();
  std::vector<const PricedLayout*> first;
  for (const PricedLayout& l : search.layouts)
    if (l.time > 0 && first.size() < o.most) first.push_back(&l);
  if (o.json) {
    nlohmann::ordered_json out{{"layouts_possible", search.layouts.size()},
                               {"too_large", search.too_large},
                               {"priced", search.priced},
                               {"stopped", search.stopped},
                               {"memory_of_rank_bytes", search.memory_of_rank}};
    out["layouts"] = table_of("layouts", first).object()["layouts"];
    out["front"] = table_of("front", search.front()).object()["front"];
    write_output("", json_text(out, 1));
  } else {
    write_output("", text_of(search, first, machine, config));
  }
  return search.best() == nullptr || search.stopped ? 1 : 0;
}

const Registered searches(command("train search", "Searches the layouts of a model on a simulated machine",
                                  "trellis train search llama7b.yaml -m \"trn1.32xlarge x 4\" --global-batch 256", add,
                                  run));

}  // namespace
}  // namespace trellis::tools
