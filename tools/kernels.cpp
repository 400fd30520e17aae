#include <fmt/format.h>

#include "kernels/speed.h"
#include "kernels/trial.h"
#include "tools/command.h"
#include "tools/output.h"
#include "tools/table.h"

namespace trellis::tools {
namespace {

constexpr int rounds = 5;

struct Options {
  std::string only;
  bool check = false, speed = false, json = false;
};

void add(CLI::App& app, Options& o) {
  app.add_option("kernel", o.only, "Only the kernels whose names begin so");
  app.add_flag("--check", o.check, "Hold every fast twin that runs here against the scalar truth");
  app.add_flag("--speed", o.speed, "Time the kernels against plain loops that move as many bytes");
  app.add_flag("--json", o.json, "Print JSON, values in SI units");
}

Table speeds(const Options& o) {
  Table table("kernels", {{.name = "name", .align = Align::left},
                          {.name = "sources"},
                          {.name = "regime", .align = Align::left},
                          {.name = "threads"},
                          {.name = "speed", .unit = "B/s"},
                          {.name = "limit", .unit = "B/s"},
                          {.name = "fraction of limit"},
                          {.name = "limit loop", .align = Align::left}});
  for (const kernels::Subject& subject : kernels::speed_subjects()) {
    if (!subject.kernel->name.starts_with(o.only)) continue;
    for (kernels::Regime regime : kernels::regimes)
      for (int threads : {1, kernels::cpu().cores}) {
        if (threads > 1 && regime != kernels::Regime::memory) continue;
        const kernels::Speed s = kernels::speed_of(subject, regime, threads, rounds);
        table.add({subject.kernel->name, std::int64_t{subject.sources}, std::string(name(regime)),
                   std::int64_t{threads}, s.bytes_per_s, s.limit_bytes_per_s, s.fraction_of_limit,
                   std::string(s.limit)});
        if (kernels::cpu().cores == 1) break;
      }
  }
  return table;
}

// Sets `right` to whether all that were checked agree.
Table listed(const Options& o, bool& right) {
  std::vector<Column> columns = {{.name = "name", .align = Align::left}, {.name = "uses", .align = Align::left}};
  if (o.check) columns.push_back({.name = "agrees", .align = Align::left});
  Table table("kernels", columns);
  for (const auto& [name, kernel] : kernels::kernels()) {
    if (!name.starts_with(o.only)) continue;
    std::vector<Cell> row = {name, std::string(kernel.chosen_name())};
    if (o.check) {
      const bool agrees = kernels::agrees(kernel);
      right = right && agrees;
      row.emplace_back(agrees);
    }
    table.add(std::move(row));
  }
  return table;
}

std::string heading() {
  const kernels::Cpu& cpu = kernels::cpu();
  return fmt::format("{}: {} cores, L1 {} KiB, L2 {} KiB, L3 {} KiB; twins for {}\n\n", cpu.model, cpu.cores,
                     cpu.l1_bytes >> 10, cpu.l2_bytes >> 10, cpu.l3_bytes >> 10, name(cpu.best));
}

int run(const Options& o) {
  if (!o.only.empty() && kernels::kernels().lower_bound(o.only) == kernels::kernels().end())
    kernels::kernel_named(o.only);
  bool right = true;
  const Table table = o.speed && !o.check ? speeds(o) : listed(o, right);
  write_output("", o.json ? table.json() : heading() + table.text());
  if (o.speed && o.check && right) write_output("", o.json ? speeds(o).json() : "\n" + speeds(o).text());
  return right ? 0 : 1;
}

const Registered kernels_command(command("kernels", "Lists, checks and times the arithmetic that this machine will use",
                                         "trellis kernels\n"
                                         "trellis kernels cast.f32 --check\n"
                                         "trellis kernels --speed --json",
                                         add, run));

}  // namespace
}  // namespace trellis::tools
