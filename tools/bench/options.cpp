#include "tools/bench/options.h"

#include <fmt/format.h>

#include "tools/bench/flags.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {
namespace {

constexpr const char* beginning =
    "Times collectives between ranks, with the flags and tables of nccl-tests and of nccom-test.\n\n"
    "An operation's name that ends in _perf (all_reduce_perf) selects the grammar and the table of nccl-tests; any\n"
    "other (all_reduce, allr) those of nccom-test. The same letter can mean different things there:\n"
    "        nccl-tests                          nccom-test\n";

constexpr const char* end =
    "Without more it starts its own ranks as processes, one for each core; --ranks (or -r of nccom-test) tells how\n"
    "many. Under trellis launch, mpirun or srun it is one of the ranks that these started.\n\n"
    "An iteration takes as long as its slowest rank (-a). Between iterations each rank writes its input anew and "
    "reads\n"
    "its output, as a program does, and the ranks meet; operations of up to 4 KiB follow each other directly.\n"
    "-n iterations; without -n at least 20, and up to 1000 of what is short.\n\n"
    "Checked are random numbers against the schedule's interpreter, bit for bit, and above --interpret-up-to, or for\n"
    "schedules of more than a million chunks, whole numbers against what must come out.\n"
    "Exit status: 1 when an element was wrong.";

// The row of a letter's other meaning: the next one.
const Flag& in_nccom(const Flag& in_nccl) { return *(&in_nccl + 1); }

bool begins_letter(const Flag& f) { return f.section == Section::letters && f.grammar == Grammar::nccl; }

std::string description() {
  std::string text = beginning, differing;
  const auto add = [&](const Flag& f, std::string_view nccl, std::string_view nccom) {
    differing += fmt::format("{}{} {} or {}", differing.empty() ? "" : ", ", f.short_name(), nccl, nccom);
  };
  for (const Flag& f : bench_flags()) {
    const std::string_view standard = f.standard == nullptr ? "" : f.standard;
    if (const std::size_t bar = standard.find(" | "); bar != std::string_view::npos)
      add(f, standard.substr(0, bar), standard.substr(bar + 3));
    if (!begins_letter(f)) continue;
    text += fmt::format("  {}    {:<36}{}\n", f.short_name(), f.help, in_nccom(f).help);
    if (!standard.empty()) add(f, standard, in_nccom(f).standard);
  }
  return fmt::format("{}and the defaults differ: {}.\n\n{}", text, differing, end);
}

const char* title(Section section) {
  switch (section) {
    case Section::measured:
      return "What is measured";
    case Section::simulated:
      return "On a simulated machine";
    case Section::ranks:
      return "Ranks";
    case Section::output:
      return "Checks and output";
    case Section::letters:
      return "Letters with two meanings";
    case Section::idle:
      break;
  }
  return "Known, but without meaning here";
}

void add_letter(CLI::App& app, BenchOptions& o, const Flag& f) {
  const bool list = std::holds_alternative<std::vector<std::string> BenchOptions::*>(in_nccom(f).target);
  // Without a value, -S and -c mean something.
  const bool optional = f.short_name() == "-S" || f.short_name() == "-c";
  app.add_option(f.names, o.letters[f.names[1]], fmt::format("{} | {}", f.help, in_nccom(f).help))
      ->expected(optional ? 0 : 1, list ? -1 : 1)
      ->allow_extra_args(list)
      ->group(title(f.section));
}

void add_idle(CLI::App& app, BenchOptions& o, const Flag& f) {
  const char* const whose = f.grammar == Grammar::nccl ? "nccl-tests" : "nccom-test";
  const std::string text = f.allowed.empty() ? fmt::format("Of {}; refused: {}", whose, f.why)
                                             : fmt::format("Of {}; only what it is by default: {}", whose, f.why);
  CLI::Option* const option = app.add_option(f.names, o.idle[std::string(f.long_name())], text);
  option->group(title(f.section));
  if (f.allowed.empty())
    option->expected(0, 1);
  else if (f.allowed.front().empty())
    option->expected(0);
  else
    option->expected(1)->allow_extra_args(false);
}

void add(CLI::App& app, BenchOptions& o, const Flag& f) {
  const std::string_view standard = f.standard == nullptr ? "" : f.standard;
  const std::string text = standard.empty() ? f.help : fmt::format("{} [{}]", f.help, standard);
  CLI::Option* option = nullptr;
  if (const auto* flag = std::get_if<bool BenchOptions::*>(&f.target))
    option = app.add_flag(f.names, o.*(*flag), text);
  else if (const auto* number = std::get_if<int BenchOptions::*>(&f.target))
    option = app.add_option(f.names, o.*(*number), text);
  else if (const auto* list = std::get_if<std::vector<std::string> BenchOptions::*>(&f.target))
    option = app.add_option(f.names, o.*(*list), text);
  else
    option = app.add_option(f.names, o.*std::get<std::string BenchOptions::*>(f.target), text);
  if (f.standard == nullptr) option->capture_default_str();
  if (f.long_name() == "--plot") option->check(svg_file());
  option->group(title(f.section));
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.description(description());
  o.app = &app;
  app.add_option("collective", o.op, "all_reduce, all_gather, ..., sendrecv; or all_reduce_perf, ...");
  for (const Flag& f : bench_flags())
    if (f.section == Section::idle)
      add_idle(app, o, f);
    else if (begins_letter(f))
      add_letter(app, o, f);
    else if (f.section != Section::letters)
      add(app, o, f);
}

}  // namespace trellis::tools
