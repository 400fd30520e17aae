#include "tools/bench/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/bench/flags.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {
namespace {

constexpr const char* description =
    "Times collectives between ranks, with the flags of nccl-tests, whether the operation is called all_reduce or\n"
    "all_reduce_perf, and its table; --style nccom prints that of nccom-test.\n\n"
    "Without more it starts its own ranks as processes, one for each core; --ranks tells how many. Under trellis "
    "launch,\n"
    "mpirun or srun it is one of the ranks that these started.\n\n"
    "An iteration takes as long as its slowest rank (-a). Between iterations each rank writes its input anew and "
    "reads\n"
    "its output, as a program does, and the ranks meet; operations of up to 4 KiB follow each other directly.\n"
    "-n iterations; without -n at least 20, and up to 1000 of what is short.\n\n"
    "Checked are random numbers against the schedule's interpreter, bit for bit, and above --interpret-up-to, or for\n"
    "schedules of more than a million chunks, whole numbers against what must come out.\n"
    "Exit status: 1 when an element was wrong.";

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
    case Section::idle:
      break;
  }
  return "Known, but without meaning here";
}

void add_idle(CLI::App& app, BenchOptions& o, const Flag& f) {
  app.add_option(f.names, o.idle[std::string(f.long_name())],
                 fmt::format("{}, without effect: {}", fmt::join(f.allowed, " or "), f.why))
      ->group(title(f.section))
      ->expected(1);
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
    option = app.add_option(f.names, o.*(*list), text)->allow_extra_args(f.section != Section::simulated);
  else
    option = app.add_option(f.names, o.*std::get<std::string BenchOptions::*>(f.target), text);
  if (f.standard == nullptr) option->capture_default_str();
  if (f.long_name() == "--plot") option->check(svg_file());
  if (f.long_name() == "--check") option->expected(0, 1);
  option->group(title(f.section));
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.description(description);
  o.app = &app;
  app.add_option("collective", o.op, "all_reduce, all_gather, ..., sendrecv; or all_reduce_perf, ...");
  for (const Flag& f : bench_flags())
    if (f.section == Section::idle)
      add_idle(app, o, f);
    else
      add(app, o, f);
}

}  // namespace trellis::tools
