// The flags of trellis bench, those of nccl-tests and our own: their values as typed, and the settings that follow from
// all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/settings.h"
#include "tools/program/cli_app.h"

namespace trellis::tools {

struct BenchOptions {
  std::string op, style, on;

  // Flags that have no meaning here, by long name.
  std::map<std::string, std::vector<std::string>> idle;

  std::string least = "32M", most = "32M", step;
  int factor = 0;
  std::string type = "float", reduction = "sum", root, check = "1";
  int iterations = 0, warm_ups = 1, grouped = 1, repeated = 1, cycles = 1, average = -1, skipped = 0;
  int registered = 0, unaligned = 0, threads_each = 1, devices_each = 1, timeout_s = 0;
  int cpu_time = 0, timestamps = 0, memory = 0, per_iteration = 0;
  int ranks = 0, streams = 1;
  std::vector<std::string> stats, hosts;
  std::string pairs, counts_file, algorithm, transport, provider, device = "host", hosts_file, shell = "ssh",
                                                                  seed = "1", interpret_up_to = "64KB";
  std::string json, csv, plot, era;
  std::vector<std::string> what_if;
  bool show_algorithm = false, show_sizes = false, threads = false, no_pin = false, untouched = false, in_place = false;
  bool no_interval = false;
  const CLI::App* app = nullptr;
};

void add_bench_options(CLI::App&, BenchOptions&);

// Takes the operation out of a flag's values: a flag with an optional value, or several, swallows what follows it.
void find_op_behind_flags(BenchOptions&);

// Throws invalid_argument, naming the flag, its value and what was expected.
measure::BenchSettings bench_settings(BenchOptions);

}  // namespace trellis::tools
