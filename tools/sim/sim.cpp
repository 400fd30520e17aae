// trellis sim: how long a collective or a workload takes on a simulated machine, and why.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "measure/bench_names.h"
#include "sim/cluster/answer/collective_answer.h"
#include "sim/cluster/machine/import/machine_argument.h"
#include "sim/cluster/machine/launch_mode.h"
#include "sim/hardware/timeline/format_quantities.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "text/words.h"
#include "tools/answer/asked_machine.h"
#include "tools/answer/noise.h"
#include "tools/answer/price_progress.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/cli_checks.h"
#include "tools/program/command.h"
#include "tools/program/output.h"
#include "tools/program/provenance.h"
#include "tools/schedule/request_options.h"
#include "tools/schedule/schedule_source.h"
#include "tools/sim/play_file.h"
#include "tools/sim/sim_report.h"

namespace trellis::tools {

using namespace measure;
namespace {

using namespace sim;

struct Options {
  const CLI::App* app = nullptr;
  std::string what, machine = "trn2.48xlarge", bytes = "1MiB", era, launch, memory, output, shown, figures;
  RequestOptions request;
  std::vector<std::string> what_if;
  std::optional<double> within;  // percent
  double tflops = 0;
  NoiseOptions noise;
  int ranks = 0;
  bool json = false, explain = false, tasks = false, no_fold = false, no_interval = false;
};

void add(CLI::App& app, Options& o) {
  o.app = &app;
  app.description(fmt::format(
      "Simulates a collective on a machine, and reports its time, its lower bounds, and an interval for what is not\n"
      "known of the hardware. Uses the fastest algorithm, or that of -a: a name, an algorithm config as tables and\n"
      "searches print it, or file:PATH. A file with a schedule is simulated likewise.\n\n"
      "A workload, or a trace of one, is simulated too: its time, its exposed communication, and its critical path.\n"
      "Its collectives share the machine with each other while computation goes on. Files are text as below, Chakra\n"
      "traces, or GOAL programs; these also on -m loggp:L=2500,o=1500,g=1000,G=6,O=0,S=65535, as LogGOPSim plays "
      "them.\n\n{}\n\n{}\n\n"
      "-o writes what ran where and when: rows for each rank's software, bytes and waiting, and for each "
      "link, HBM and\nDMA engine that it used. The page has the result beside its lower bounds, the phases, "
      "the critical path in words and\nthe machine's picture with its links as they were used. Ctrl-C ends a "
      "long run with what it has.\n\n"
      "An algorithm is proved before it is priced: up to 32 ranks as it is, above on a small machine of the same "
      "form.\n"
      "`trellis schedule verify` proves it at its own size.",
      workload_grammar, machine_grammar));
  app.add_option("collective", o.what, "all_reduce, all_gather, ...; or a file")->required();
  app.add_option("-m,--machine", o.machine, "The machine")->capture_default_str();
  app.add_option("-b,--bytes", o.bytes, "Size of the larger buffer: 8, 64KiB, 1GiB (K, M, G: of 1024)")
      ->capture_default_str();
  app.add_option("-n,--ranks", o.ranks, "Use only the first N ranks of the machine [all]")->check(above_zero());
  app.add_option("--era", o.era, "The software's generation: 2025, 2026-host [the machine's usual one]");
  app.add_option(
         "--launch", o.launch,
         "Who starts the collective: device, a step of an executable that runs; graph, a graph or wrapped kernel\n"
         "of its own; host, a framework's call. Without it (and --era) the answer is given for each")
      ->check(CLI::IsMember({"device", "graph", "host"}));
  app.add_option("--what-if", o.what_if, change_grammar);
  app.add_option("--figures", o.figures, figures_help);
  app.add_flag("--explain", o.explain, "Also print the critical path, the phases, and the figures that matter most");
  app.add_option("--within", o.within,
                 "Accept an algorithm within this many percent of the fastest: larger is quicker [0.5]")
      ->check(at_least_zero());
  app.add_flag("--no-interval", o.no_interval, "Do not compute the interval");
  add_noise_options(app, o.noise);
  app.add_flag("--unfolded", o.no_fold, "Simulate every rank, even identical ones");
  app.add_option("-o,--output", o.output, timeline_help);
  app.add_option("--show", o.shown,
                 "Ranks that the timeline of -o shows: 0-15,44 [the simulated ones, as many as fit]");
  app.add_option("--tflops", o.tflops, "For a workload: TFLOP/s of a rank [its chip's rate in bf16]")
      ->check(above_zero());
  app.add_option("--memory", o.memory,
                 "For a workload: memory bandwidth of a rank, such as 700GB/s [its share of the HBM]");
  app.add_flag("--json", o.json, "Print JSON");
  app.add_flag("--tasks", o.tasks, "For a workload: with --json, when each of its tasks ran");
  add_request_options(app, o.request);
}

bool is_auto(const Options& o) { return o.request.algorithm.empty() || o.request.algorithm == "auto"; }

// The file given in place of a collective, or by `-a file:PATH`; none: neither was given.
std::optional<FileText> given_file(const Options& o) {
  if (!collective_meant(o.what)) return typed_file(o.what);
  if (!o.request.algorithm.starts_with(schedule::file_prefix)) return {};
  return typed_file(o.request.algorithm.substr(schedule::file_prefix.size()));
}

int play(const Options& o, const FileText& file) {
  RequestOptions rest = o.request;
  rest.algorithm.clear();
  std::string stranger = first_given(rest);
  if (o.ranks > 0) stranger = "--ranks";
  if (o.app->count("--bytes") != 0) stranger = "--bytes";
  if (o.explain) stranger = "--explain";
  if (!o.shown.empty()) stranger = "--show";
  if (o.within) stranger = "--within";
  if (o.no_interval) stranger = "--no-interval";
  if (!o.launch.empty()) stranger = "--launch";
  if (!stranger.empty()) text::refuse("{} goes with a collective, and {} is a file", stranger, o.what);
  return play_file({.file = file,
                    .machine = o.machine,
                    .algorithm = is_auto(o) ? "" : o.request.algorithm,
                    .era = o.era,
                    .memory = o.memory,
                    .output = o.output,
                    .figures = o.figures,
                    .what_if = o.what_if,
                    .tflops = o.tflops,
                    .json = o.json,
                    .tasks = o.tasks,
                    .unfolded = o.no_fold,
                    .noise = o.noise});
}

std::vector<Rank> ranks_named(const std::string& text) {
  std::vector<Rank> ranks;
  if (text.empty()) return ranks;
  for (const std::string_view part : text::split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto count = [&](std::string_view word) {
      return static_cast<Rank>(text::count("--show", word, 0, most_ranks));
    };
    const Rank first = count(part.substr(0, dash));
    const Rank last = dash == part.npos ? first : count(part.substr(dash + 1));
    if (last < first) text::refuse("--show {}: expected the lower rank first", part);
    for (Rank r = first; r <= last; ++r) ranks.push_back(r);
  }
  return ranks;
}

// The question that the options ask about a collective, and how its answer is printed.
class Pricing {
 public:
  Pricing(const Options& o, MachineSpec spec) : o_(o), priced_(std::move(spec), &watch_) {
    const std::string era = o.launch.empty() ? o.era : era_launched(machine(), o.era, o.launch);
    expect_noise(o.noise, machine(), era);
    note_seed(o.noise);
    note_origin("era", era.empty() ? machine().spec().era : era);
    question_.settings = {.era = era, .fold = !o.no_fold};
    question_.group = first_in_a_row(machine(), o.ranks);
    question_.noise = o.noise;
    question_.interval = question_.launches = !o.no_interval;
    question_.path = question_.phases = o.explain || !o.output.empty();
    question_.timeline = !o.output.empty();
    question_.shown = ranks_named(o.shown);
  }

  int run(const std::optional<FileText>& file) {
    std::string collective = o_.what;
    if (file) {
      read(*file);
      collective = schedule::name(given_->task.operation.collective);
    } else {
      ask();
    }
    std::string words = collective;
    if (schedule::carries_data(schedule::collective_named(collective))) {
      question_.bytes = static_cast<double>(parse_bytes(o_.bytes));
      words += " of " + bytes_text(parse_bytes(o_.bytes));
    } else if (o_.app->count("--bytes") != 0) {
      text::refuse("--bytes {}: {} moves no data", o_.bytes, collective);
    }
    SimReport report{.collective = collective,
                     .words = words,
                     .ranks = question_.group.ranks(),
                     .answer = answer(question_, priced_)};
    CollectiveAnswer& a = report.answer;
    if (given_)
      a.config = {.algorithm = fmt::format("{}{}", schedule::file_prefix, file->path), .dims = question_.group.dims};
    report.explain = o_.explain;
    if (a.config.algorithm.empty()) throw std::runtime_error("interrupted before any algorithm was priced");
    if (a.price.time == forever) return tell_of_interruption(report);
    expect_seen(a);
    watch_.clear();
    if (a.seen) write(report);
    write_output("", o_.json ? sim_json(report, machine()) : sim_text(report, machine()));
    return a.interrupted.empty() ? 0 : 1;
  }

 private:
  const Machine& machine() const { return priced_.machine(); }

  // Uses a schedule from a file instead of an algorithm, on as many of the machine's ranks as it has.
  void read(const FileText& file) {
    RequestOptions rest = o_.request;
    if (is_auto(o_) || collective_meant(o_.what)) rest.algorithm.clear();
    rest.in_place = false;
    if (const std::string option = first_given(rest); !option.empty())
      text::refuse("{}: the file {} already defines the schedule", option, file.path);
    if (o_.within) text::refuse("--within {}: the file {} already defines the schedule", *o_.within, file.path);
    given_ = proved(file, o_.request.in_place);
    const schedule::Task& task = given_->task;
    if (o_.request.algorithm.starts_with(schedule::file_prefix) && o_.what != schedule::name(task.operation.collective))
      text::refuse("{} is a schedule of {}, not of {}", file.path, schedule::name(task.operation.collective), o_.what);
    if (task.ranks > machine().ranks() || (o_.ranks > 0 && o_.ranks != task.ranks))
      text::refuse("{} is for {} ranks: {} has {}{}", file.path, task.ranks, machine().name(), machine().ranks(),
                   o_.ranks > 0 ? fmt::format(", and -n says {}", o_.ranks) : "");
    question_.group = first_in_a_row(machine(), task.ranks);
    question_.settings.operation.collective = task.operation.collective;
    question_.schedule = &*given_;
  }

  // The request where no algorithm is named: all algorithms and shapes are compared. Refuses options that only a named
  // algorithm reads.
  schedule::Request request() const {
    RequestOptions rest = o_.request;
    rest.algorithm.clear(), rest.root.reset(), rest.peer.reset(), rest.pairs.clear(), rest.in_place = false;
    if (const std::string option = first_given(rest); !option.empty())
      text::refuse("{} needs --algorithm: without it all algorithms and shapes are compared", option);
    return request_of(schedule::collective_named(o_.what), o_.request, question_.group.dims);
  }

  // The request where --algorithm names the algorithm.
  schedule::Request request_by_algorithm() {
    if (o_.within)
      throw std::invalid_argument("--within can't be combined with --algorithm, which leaves nothing to choose");
    RequestOptions request = with_config(o_.request);
    const Rank ranks = question_.group.ranks();
    if (request.dims.empty()) request.dims = shape_text(usual_dims(request.algorithm, machine(), ranks));
    const auto [algorithm, wanted] = asked(schedule::collective_named(o_.what), request);
    if (wanted.ranks() != ranks)
      text::refuse("--dims {} are {} ranks: expected {}", request.dims, wanted.ranks(), ranks);
    question_.config = {algorithm->name, wanted.channels, wanted.segments, wanted.levels,
                        wanted.dims,     wanted.order,    wanted.numbering};
    return wanted;
  }

  void ask() {
    question_.within = o_.within ? *o_.within / 100 : usual_within;
    if (question_.within >= 1) text::refuse("--within {}: expected percent, below 100", *o_.within);
    question_.settings.operation = (is_auto(o_) ? request() : request_by_algorithm()).operation;
  }

  int tell_of_interruption(const SimReport& report) {
    watch_.clear();
    const double done = watch_.done(), reached = static_cast<double>(watch_.reached());
    write_output(
        "", fmt::format(
                "interrupted: {} by {} takes longer than {}; {:.1f}% of its moves were done{}\n", report.words,
                report.answer.config.algorithm, time_words(watch_.reached()), 100 * done,
                done > 0 ? fmt::format(", so about {} in all", time_words(static_cast<Time>(reached / done))) : ""));
    return 1;
  }

  void expect_seen(const CollectiveAnswer& a) const {
    if (a.moves > 0 && !o_.output.empty())
      text::refuse(
          "-o {}: {:.0f} million moves are simulated, and at most {} million can be shown: fewer ranks (-n), an "
          "algorithm with fewer steps, or a machine without defects, which folds",
          o_.output, a.moves * 1e-6, most_traced / 1'000'000);
  }

  void write(SimReport& report) const {
    const RunTimeline& seen = *report.answer.seen;
    std::vector<std::string>& notes = report.notes;
    const Rank all = question_.group.ranks();
    if (seen.gone_through < all)
      notes.push_back(
          fmt::format("{} of {} ranks were simulated; each stands for those that schedule and machine "
                      "cannot tell apart from it. --unfolded goes through all.",
                      seen.gone_through, all));
    if (std::ssize(seen.shown) < seen.gone_through)
      notes.push_back(
          fmt::format("The timeline shows {} ranks of {}, and its critical path is theirs; --show 0-15,44 "
                      "chooses others.",
                      seen.shown.size(), seen.gone_through));
    const std::string title =
        fmt::format("{} on {} by {}", report.words, machine().title(), report.answer.config.algorithm);
    const std::string page = is_page(o_.output) ? sim_page(report, machine()) : "";
    const std::string scope =
        seen.gone_through < all ? fmt::format("{} of {} ranks", seen.gone_through, all) : std::string();
    write_timeline(o_.output, seen.timeline, {.title = title, .introduction = page, .scope = scope, .path = false});
  }

  const Options& o_;
  PriceProgress watch_;
  PricingSession priced_;
  std::optional<schedule::Schedule> given_;
  CollectiveQuestion question_;
};

int run(const Options& o) {
  const std::optional<FileText> file = given_file(o);
  if (file && !collective_meant(o.what) && !holds_schedule(*file)) return play(o, *file);
  for (const auto& [given, option] :
       {std::pair(o.tflops > 0, "--tflops"), {!o.memory.empty(), "--memory"}, {o.tasks, "--tasks"}})
    if (given) text::refuse("{} goes with a file, and {} is a collective", option, o.what);
  if (!o.shown.empty() && o.output.empty()) throw std::invalid_argument("--show goes with -o");
  ranks_named(o.shown);  // throws when they are wrong
  expect_timeline_file(o.output);
  return Pricing(o, asked_machine(o.machine, o.what_if, o.era, o.figures)).run(file);
}

constexpr const char* examples =
    "trellis sim all_reduce --machine trn2.48xlarge --bytes 64MiB --explain\n"
    "trellis sim all_reduce --machine \"trn2.48xlarge x 4\" --bytes 1GiB -o all_reduce.html\n"
    "trellis sim all_reduce --machine torus:16x32x32 -a torus --bytes 1GiB\n"
    "trellis sim all_gather --machine \"trn2.48xlarge x 4\" --bytes 16MiB --json\n"
    "trellis sim all_reduce --machine torus:4x4x4 -a torus --what-if slow:0-1:0.5\n"
    "trellis sim allreduce.xml --machine full:8 --bytes 64MiB\n"
    "trellis sim step.txt --machine torus:4x4 --tflops 80 -o step.html\n"
    "trellis sim trace.0.et --machine network.yml --json\n"
    "trellis sim program.goal --machine loggp:L=2500,o=1500,g=1000,G=6";

const RegisteredCommand simulate("sim", "Prices a collective or a workload on a simulated machine", examples, add, run);

}  // namespace
}  // namespace trellis::tools
