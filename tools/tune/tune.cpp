#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "ccl/config.h"
#include "ccl/plan/call_check.h"
#include "ccl/plan/host/host_algorithm_chooser.h"
#include "ccl/print_to_stderr.h"
#include "ccl/rendezvous/environment.h"
#include "kernels/dispatch/cpu.h"
#include "launch/run_on_ranks.h"
#include "measure/selection_rules.h"
#include "text/refuse.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/output.h"
#include "tools/program/output_option.h"
#include "tools/program/progress.h"
#include "tools/program/provenance.h"
#include "tools/program/table.h"
#include "tools/schedule/request_options.h"
#include "tools/tune/host_prediction.h"
#include "tools/tune/measured_rules.h"

namespace trellis::tools {

using namespace launch;
using namespace measure;
namespace {

using schedule::Collective;

constexpr const char* description =
    "Measures which algorithm serves which collective best on this machine, and writes a selection table.\n\n"
    "For each collective, number of ranks and size, every algorithm that serves it, with 1, 2 and 4 channels and\n"
    "segments, runs in turn with the others; the slower half drops out of each round. Neighbouring sizes with one\n"
    "winner become one rule, and a winner must be better by 3% to take over from its smaller neighbour. The table's "
    "first\n"
    "lines say what it gains over what the library selects today. The table is\n"
    "used where TRELLIS_SELECTIONS names it, by who calls the machine as the table does (TRELLIS_MACHINE, else host).\n"
    "Tables may stand in one file one after another; each ends with a line `end`, and one without is refused as cut "
    "off.\n"
    "Ctrl-C prints the rules of what was measured, and writes no table.\n"
    "With --machine '*' it is for every machine that has no rules of its own, where as many ranks have no more cores\n"
    "together than here: one each, or all that there are. Such a table is built in, as ccl/selections/host.txt.\n\n"
    "With --explain it says which algorithm the table in force selects for a collective and a size, why, and what the\n"
    "others cost: measured now, each algorithm with the channels and segments that suit it best, the cheapest "
    "first.\n\n"
    "With --predict nothing runs: it says what is selected on a host with so many --cores, --threads, --sockets\n"
    "and --caches, and the times that the library's model of a host predicts for each algorithm: where peers can read\n"
    "the call's memory, and where it goes through slots. The model selects where ranks have more cores than the table\n"
    "in force was measured with.";

struct Options {
  std::string ranks = "2,4,8", sizes = "8..16MB";
  std::vector<std::string> collectives, explain, predict;
  int cores = 0, threads = 0, sockets = 1, caches = 0;
  std::string type, output, machine;
  bool all = false, json = false;
  const CLI::App* app = nullptr;
};

void add(CLI::App& app, Options& o) {
  app.description(description);
  o.app = &app;
  app.add_option("-n,--ranks", o.ranks,
                 "Numbers of ranks: 2,4,8 or 2..4; with --explain or --predict one number, 2 if not given")
      ->capture_default_str();
  app.add_option("--sizes", o.sizes, "Sizes of the larger buffer: 8..16MB by powers of two; 64KB,1MB")
      ->capture_default_str();
  app.add_option("--collectives", o.collectives, "Collectives to tune [all that have several algorithms]")
      ->delimiter(',');
  app.add_option("-d,--type", o.type, "Type to measure; the rules are for it alone [fp32, with rules for all types]");
  app.add_option("--explain", o.explain, "A collective and a size: explain the choice")->expected(2);
  app.add_option("--predict", o.predict, "A collective and a size: predict the choice")->expected(2);
  app.add_option("--cores", o.cores, "With --predict: physical cores that the ranks have together [one each]")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--threads", o.threads, "With --predict: hardware threads of these cores, together [one each]")
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--sockets", o.sockets, "With --predict: sockets that the ranks fill in order")
      ->capture_default_str()
      ->check(CLI::Range(1, 64));
  app.add_option("--caches", o.caches,
                 "With --predict: L3 caches of these cores, together, each as large as one here [one a socket]")
      ->check(CLI::Range(1, 1 << 12));
  app.add_option("--machine", o.machine,
                 "The machine that the rules are for, * for any; else TRELLIS_MACHINE, or host");
  app.add_option("-o,--output", o.output, "The table's file [standard output]")->check(output_file());
  app.add_flag("--all", o.all, "With --explain or --predict: every choice, not only the best of each algorithm");
  app.add_flag("--json", o.json, "With --explain or --predict: JSON, values in SI units");
}

// Collectives that a table has rules for. Each other one has only one algorithm, or differs from call to call.
std::vector<Collective> tuned_collectives(const std::vector<std::string>& names) {
  std::vector<Collective> all;
  for (const std::string& name : names)
    if (const Collective c = bench_op(name).collective; std::ranges::find(all, c) == all.end()) all.push_back(c);
  if (!all.empty()) return all;
  for (const Collective c : schedule::collectives())
    if (c != Collective::permute && c != Collective::send_recv && !schedule::uneven(c)) all.push_back(c);
  return all;
}

kernels::DType type_of(const Options& o) {
  return o.type.empty() ? kernels::DType::f32 : bench_type(o.type, BenchStyle::nccom);
}

std::vector<ccl::Rank> rank_counts(const std::string& text) {
  std::vector<ccl::Rank> counts = parse_rank_counts(text);
  for (const ccl::Rank ranks : counts)
    if (ranks > most_ranks_started) text::refuse("-n {}: expected at most {} ranks", text, most_ranks_started);
  return counts;
}

// An option that has no effect is a mistake.
void expect_meaning(const Options& o) {
  for (const char* flag : {"--cores", "--threads", "--sockets", "--caches"})
    if (o.app->count(flag) != 0 && o.predict.empty()) text::refuse("{} goes with --predict", flag);
  if (!o.predict.empty() && !o.explain.empty()) throw std::invalid_argument("--explain goes without --predict");
  if (!o.predict.empty() && !o.machine.empty()) throw std::invalid_argument("--machine goes without --predict");
  const bool explains = !o.explain.empty() || !o.predict.empty();
  const std::vector<const char*> others = explains ? std::vector<const char*>{"--sizes", "--collectives", "--output"}
                                                   : std::vector<const char*>{"--all", "--json"};
  for (const char* flag : others)
    if (o.app->count(flag) != 0)
      text::refuse("{} goes {} {}", flag, explains ? "without" : "with", o.predict.empty() ? "--explain" : "--predict");
}

// Throws when the largest buffers need more than the available memory.
void expect_room(Collective c, ccl::Rank ranks, kernels::DType type, std::uint64_t bytes, const char* flag) {
  std::uint64_t most = 0;
  const auto calls = calls_for(settings_for(c), bytes, type, kernels::Reduction::sum, 0, ranks);
  for (std::size_t r = 0; r < calls.size(); ++r) {
    const ccl::BufferBytes e = ccl::extents_of(calls[r], static_cast<ccl::Rank>(r), ranks);
    most = std::max<std::uint64_t>(most, std::max(e.input, e.output) + e.output);
  }
  refuse_too_large(most, ranks, 1, flag);
}

// Where some rules are missing no table is written: the library would choose by it as by a whole one. Standard output
// may be a file of tables, so the rules that are there go to standard error.
[[noreturn]] void tell_of_interruption(const Options& o, const std::string& gains, const ccl::SelectionTable& table) {
  ccl::tell("{}", gains);
  for (const ccl::SelectionRule& rule : table.rules()) ccl::tell("{}\n", text_of(rule));
  const std::string unwritten = o.output.empty() ? "no table was written" : o.output + " was not written";
  throw std::runtime_error(table.rules().empty()
                               ? fmt::format("interrupted before anything was measured: {}", unwritten)
                               : fmt::format("interrupted: {}, as rules are missing", unwritten));
}

int tune(const Options& o) {
  const InterruptPoller interrupts;
  const std::vector<Collective> collectives = tuned_collectives(o.collectives);
  const std::vector<std::uint64_t> sizes = parse_sizes(o.sizes);
  const std::vector<ccl::Rank> counts = rank_counts(o.ranks);
  if (const std::string by = ccl::launched_from_environment().by; !by.empty())
    text::refuse("this is a rank of a job, by {}: trellis tune starts its ranks itself, in several numbers", by);
  const std::string machine = o.machine.empty() ? ccl::config_from_environment().machine : o.machine;
  ccl::expect_machine(machine);
  for (const Collective c : collectives)
    for (const ccl::Rank ranks : counts) expect_room(c, ranks, type_of(o), sizes.back(), "--sizes");
  Progress progress(collectives.size() * counts.size() * sizes.size(), true);
  ccl::SelectionTable table;
  std::string gains;
  for (const Collective c : collectives)
    for (const ccl::Rank ranks : counts) {
      if (interrupts.asked()) break;
      const std::vector<std::uint64_t> some = schedule::carries_data(c) ? sizes : std::vector<std::uint64_t>{0};
      const MeasuredRules found = measured_rules(c, ranks, type_of(o), some, progress, interrupts);
      if (!found.gain.empty()) gains += found.gain + "\n";
      for (ccl::SelectionRule rule : found.rules) {
        rule.machine = machine;
        if (machine == ccl::any_machine) rule.cores = std::min(kernels::cpu().cores, static_cast<int>(ranks));
        if (!o.type.empty()) rule.type = type_of(o);
        table.add(rule);
      }
    }
  progress.clear();
  if (interrupts.asked()) tell_of_interruption(o, gains, table);
  write_output(o.output, origin_comment() + gains + table.text());
  return 0;
}

ccl::SelectionTable table_in_force(const ccl::Config& config) {
  return config.selections.empty() ? ccl::SelectionTable::built_in()
                                   : ccl::SelectionTable::from_file(config.selections);
}

std::string source_of(const ccl::Config& config) {
  return config.selections.empty() ? "the built-in table" : "the table " + config.selections;
}

// The reason, when the configuration chooses the algorithm; empty when the table does.
std::string by_configuration(const ccl::Config& config) {
  return config.algorithm.empty() ? ""
                                  : fmt::format("selected by TRELLIS_ALGORITHM={}, not by the table", config.algorithm);
}

void print_explanation(const Options& o, const BenchContext& bench, const ccl::Call& call, std::uint64_t bytes,
                       const std::vector<CandidateCost>& costs) {
  const ccl::Config config = ccl::config_from_environment();
  const ccl::Selected chosen = bench.work.front()->selected(call);
  const ccl::AlgorithmConfig selected = schedule::algorithm_config_named(chosen.algorithm);
  std::string why = by_configuration(config);
  if (why.empty())
    why = source_of(config) + ": " +
          reason(table_in_force(config), call.operation.collective, bench.ranks(), bytes, call.type,
                 o.machine.empty() ? config.machine : o.machine, chosen);
  Table table("costs", {left("algorithm"), {"time", "s"}, {"of the cheapest"}, {"samples"}, {"selected"}});
  std::vector<CandidateCost> sorted = costs;
  std::ranges::stable_sort(sorted, {}, &CandidateCost::time);
  std::set<std::string> seen;
  for (const CandidateCost& c : sorted)
    if (seen.insert(c.config.algorithm).second || o.all || c.config == selected)
      table.add({text_of(c.config), c.time * 1e-6, c.time / sorted.front().time, std::int64_t{c.samples},
                 c.config == selected});
  if (o.json) return write_output("", table.json());
  const std::string of =
      schedule::carries_data(call.operation.collective) ? fmt::format(" of {}", bytes_text(bytes)) : "";
  write_output("", fmt::format("{}{} on {} ranks: {}\n{}\n\n{}", schedule::name(call.operation.collective), of,
                               bench.ranks(), text_of(selected), why, table.text()));
}

// What --explain and --predict are asked about.
struct OneCall {
  Collective collective;
  std::uint64_t bytes;
  ccl::Rank ranks;
};
OneCall one_call(const Options& o, std::string_view flag, const std::vector<std::string>& words) {
  const Collective c = bench_op(words[0]).collective;
  const std::uint64_t bytes = parse_bytes(words[1]);
  const std::vector<ccl::Rank> counts = o.app->count("-n") == 0 ? std::vector<ccl::Rank>{2} : rank_counts(o.ranks);
  if (counts.size() != 1) text::refuse("-n {}: expected one number of ranks with {}", o.ranks, flag);
  if (bytes > most_bytes) text::refuse("{} {} {}: expected at most 16T", flag, words[0], words[1]);
  return {c, bytes, counts.front()};
}

int explain(const Options& o) {
  const auto [c, bytes, ranks] = one_call(o, "--explain", o.explain);
  if (!o.machine.empty()) ccl::expect_machine(o.machine);
  expect_room(c, ranks, type_of(o), bytes, "size");
  const std::vector<ccl::AlgorithmConfig> choices = candidates(c, ranks);
  const BenchSettings s = settings_for(c);
  return run_on_ranks({.ranks = ranks, .timeout = s.timeout}, [&, c = c, bytes = bytes](const RankContext& context) {
    BenchContext bench(s, context);
    try {
      AlgorithmContest contest(bench, context, c, type_of(o), choices);
      const std::vector<CandidateCost> costs = contest.run(bytes, nullptr);
      ccl::Call call = calls_for(s, bytes, type_of(o), kernels::Reduction::sum, 0, context.ranks).front();
      const ccl::BufferBytes e = ccl::extents_of(call, 0, context.ranks);
      const BenchBuffers buffers(bench.control->device(), false, e.input, e.output, 0);
      buffers.place(call, 0, context.ranks, false);
      if (context.rank == 0) print_explanation(o, bench, call, bytes, costs);
      bench.control->barrier();
    } catch (...) {
      bench.abort();
      throw;
    }
    return 0;
  });
}

int predict(const Options& o) {
  const auto [c, bytes, ranks] = one_call(o, "--predict", o.predict);
  if (!ccl::modelled(c)) text::refuse("--predict {}: the model of a host does not know it", schedule::name(c));
  const auto calls = calls_for(settings_for(c), bytes, type_of(o), kernels::Reduction::sum, 0, ranks);
  const int cores = o.cores == 0 ? static_cast<int>(ranks) : o.cores;
  if (o.threads != 0 && o.threads < cores)
    text::refuse("--threads {}: expected at least one for each of {} cores", o.threads, cores);
  write_output("", prediction_text({.call = calls.front(),
                                    .bytes = bytes,
                                    .ranks = ranks,
                                    .cores = cores,
                                    .threads = o.threads == 0 ? cores : o.threads,
                                    .sockets = o.sockets,
                                    .caches = o.caches == 0 ? o.sockets : o.caches,
                                    .all = o.all,
                                    .json = o.json}));
  return 0;
}

int run(const Options& o) {
  expect_meaning(o);
  if (!o.predict.empty()) return predict(o);
  return o.explain.empty() ? tune(o) : explain(o);
}

const RegisteredCommand tune_command("tune", "Measures which algorithm is best for what on this machine",
                                     "trellis tune -o host.txt\n"
                                     "trellis tune -d bf16 --collectives all_reduce >> host.txt\n"
                                     "trellis tune --ranks 2,4 --sizes 1KB..4MB --collectives all_reduce,all_gather\n"
                                     "TRELLIS_SELECTIONS=host.txt trellis bench all_reduce --show-algorithm\n"
                                     "trellis tune --explain all_reduce 64KB -n 8\n"
                                     "trellis tune --predict all_reduce 64KB -n 64 --cores 64 --sockets 2",
                                     add, run);

}  // namespace
}  // namespace trellis::tools
