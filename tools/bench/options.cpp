#include "tools/bench/options.h"

#include <fmt/format.h>

#include <string_view>

#include "tools/answer/machine_typed.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr const char* description =
    "Times collectives between ranks, with the flags and tables of nccl-tests and of nccom-test.\n\n"
    "An operation's name that ends in _perf (all_reduce_perf) selects the grammar and the table of nccl-tests; any\n"
    "other (all_reduce, allr) those of nccom-test. The same letter can mean different things there:\n"
    "        nccl-tests                          nccom-test\n"
    "  -r    root, or all                        number of ranks\n"
    "  -N    times to go through it, 0: for ever number of nodes\n"
    "  -I    1: times of each iteration          operations timed as one\n"
    "  -S    1: a column of timestamps           Slurm mode\n"
    "  -t    ranks, as threads                   columns: avg, p50, p99\n"
    "  -u    elements that buffers are unaligned CPUs of a Slurm node\n"
    "  -c    passes of checking, 0 for none      random (the default) or all_ones\n"
    "and the defaults differ: -i 1M or a tenth of the range, -d float or uint8, -w 1 or 5, -c 1 or none.\n\n"
    "Without more it starts its own ranks as processes, one for each core; --ranks (or -r of nccom-test) tells how\n"
    "many. Under trellis launch, mpirun or srun it is one of the ranks that these started.\n\n"
    "An iteration takes as long as its slowest rank (-a). Between iterations each rank writes its input anew and "
    "reads\n"
    "its output, as a program does, and the ranks meet; operations of up to 4 KiB follow each other directly.\n"
    "-n iterations; without -n at least 20, and up to 1000 of what is short.\n\n"
    "Checked are random numbers against the schedule's interpreter, bit for bit, and above --interpret-up-to, or for\n"
    "schedules of more than a million chunks, whole numbers against what must come out.\n"
    "Exit status: 1 when an element was wrong.";

struct Flag {
  const char* names;
  const char* text;
};

constexpr std::array<Flag, 14> idle_flags{{{"-p,--parallel_init", "nccl-tests"},
                                           {"-z,--blocking", "nccl-tests"},
                                           {"-y,--stream_null", "nccl-tests"},
                                           {"-G,--cudagraph", "nccl-tests"},
                                           {"-x,--cta_policy", "nccl-tests"},
                                           {"-D,--device_implementation", "nccl-tests"},
                                           {"-V,--device_cta_count", "nccl-tests"},
                                           {"-W,--warmup_inside", "nccom-test"},
                                           {"--nnodes", "nccom-test"},
                                           {"--coalesced-cc-size-ratio", "nccom-test"},
                                           {"--data-parallel-dimension", "nccom-test"},
                                           {"--vcpu-pin-mode", "nccom-test"},
                                           {"--data-collector-port", "nccom-test"},
                                           {"--data-collector-host", "nccom-test"}}};

constexpr std::array<Flag, 15> refused_flags{{{"-s,--hosts", "nccom-test"},
                                              {"--hosts-file", "nccom-test"},
                                              {"--mpi-log-dir", "nccom-test"},
                                              {"--slurm-mode", "nccom-test"},
                                              {"--slurm-vcpus-per-node", "nccom-test"},
                                              {"--slurm-setup-script", "nccom-test"},
                                              {"--slurm-job-id", "nccom-test"},
                                              {"--slurm-use-head-node-neuron-bench", "nccom-test"},
                                              {"--streams-json", "nccom-test"},
                                              {"--custom-replica-groups", "nccom-test"},
                                              {"--unique-buff", "nccom-test"},
                                              {"--shared-output-buff", "nccom-test"},
                                              {"--sb2sb", "nccom-test"},
                                              {"--input-shape,--output-shape", "nccom-test"},
                                              {"--cc-dim", "nccom-test"}}};

std::string key_of(std::string_view names) {
  const std::size_t comma = names.find(',');
  return std::string(comma == std::string_view::npos || names.starts_with("--") ? names.substr(0, comma)
                                                                                : names.substr(comma + 1));
}

void add_clashing(CLI::App& app, BenchOptions& o) {
  const auto add = [&](char letter, const char* names, const char* text, int least, int most) {
    app.add_option(names, o.clashing[letter], text)
        ->expected(least, most)
        ->allow_extra_args(most != 1)
        ->group("Letters with two meanings");
  };
  add('r', "-r", "Root, or all | ranks", 1, 1);
  add('N', "-N", "Cycles | nodes", 1, 1);
  add('I', "-I", "1: times of each iteration | operations timed as one", 1, 1);
  add('S', "-S", "1: timestamps | Slurm mode", 0, 1);
  add('t', "-t,--stats", "Ranks, as threads | columns: avg, p50, p99", 1, -1);
  add('u', "-u", "Unaligned elements | CPUs of a Slurm node", 1, 1);
  add('c', "-c,--check", "Passes | random or all_ones", 0, 1);
}

void add_sweep(CLI::App& app, BenchOptions& o) {
  const auto with = [](CLI::Option* option) { return option->group("What is measured"); };
  with(app.add_option("-b,--minbytes", o.least, "Smallest size: 8, 64KB, 1M, 2GiB"))->capture_default_str();
  with(app.add_option("-e,--maxbytes", o.most, "Largest size"))->capture_default_str();
  with(app.add_option("-i,--stepbytes", o.step, "From size to size"));
  with(app.add_option("-f,--stepfactor", o.factor, "From size to size as a factor"));
  with(app.add_option("-d,--datatype", o.type, "Type, as float, bf16 or int8, or all [float | uint8]"));
  with(app.add_option("-o,--op", o.reduction, "sum, prod, min, max, avg, mulsum, or all"))->capture_default_str();
  with(app.add_option("--root", o.root, "Root of what has one, or all [0]"));
  with(app.add_option("-n,--iters", o.iterations, "Iterations"));
  with(app.add_option("-w,--warmup_iters", o.warm_ups, "Iterations before, which do not count"));
  with(app.add_option("-m,--agg_iters", o.grouped, "Operations in a group"))->capture_default_str();
  with(app.add_option("--inside", o.repeated, "Operations timed as one, as -I of nccom-test"))->capture_default_str();
  with(app.add_option("--run_cycles", o.cycles, "Times to go through all of it, 0: for ever"))->capture_default_str();
  with(app.add_option("-R,--local_register", o.registered, "1, 2: memory of the device, which peers read directly"));
  with(app.add_option("--unalign", o.unaligned, "Elements past an aligned address where buffers begin"));
  with(app.add_option("--custom-src-target-pairs", o.pairs, "Of permute: 0:1,1:0 or [[0,1],[1,0]]"));
  with(app.add_option("--variable-size-op-metadata", o.counts_file,
                      "The name of a file of JSON with the counts of the _v forms, {\"counts\": [1, 2]} or a list for "
                      "each sender [[1, 2], [2, 1]]; they are scaled to each size"));
  with(app.add_option("--algorithm", o.algorithm, "One for all sizes: ring*2/4 [by the selection table]"));
  with(app.add_flag("--in-place", o.in_place, "Measure in place, too (as nccl-tests does anyway)"));
  with(app.add_flag("--untouched", o.untouched, "Leave buffers alone between iterations"));
}

void add_place(CLI::App& app, BenchOptions& o) {
  const auto with = [](CLI::Option* option) { return option->group("On a simulated machine"); };
  with(app.add_option("--on", o.on, "The machine: sim:trn2.48xlarge, sim:torus:4x4"));
  with(app.add_option("--era", o.era, "The software's generation [the machine's usual one]"));
  with(app.add_option("--what-if", o.what_if, change_grammar));
  with(app.add_flag("--no-interval", o.no_interval,
                    "Leave out between what each time lies, by the figures that are not documented"));
}

void add_ranks(CLI::App& app, BenchOptions& o) {
  const auto with = [](CLI::Option* option) { return option->group("Ranks"); };
  with(app.add_option("--ranks", o.ranks, "Ranks"));
  with(app.add_option("--nworkers", o.workers, "The same"));
  with(app.add_option("--nthreads", o.threads_each, "Ranks, as threads"));
  with(app.add_option("-g,--ngpus", o.devices_each, "Ranks a thread"));
  with(app.add_flag("--threads", o.threads, "Ranks are threads of one process"));
  with(app.add_option("--transport", o.transport, "As TRELLIS_TRANSPORT: shared_memory, libfabric, hybrid"));
  with(app.add_option("--provider", o.provider, "As TRELLIS_PROVIDER: libfabric's, such as efa or tcp"));
  with(app.add_flag("--no-pin", o.no_pin, "Do not keep ranks on cores of their own"));
  with(app.add_option("--streams", o.streams, "Operations at a time, each on a stream and communicator of its own"));
  with(app.add_option("-T,--timeout", o.timeout_s,
                      "Seconds that a rank waits for another, 0: as long as it takes [30]"));
}

void add_output(CLI::App& app, BenchOptions& o) {
  const auto with = [](CLI::Option* option) { return option->group("Checks and output"); };
  with(app.add_option("--style", o.style, "Whose flags and table: nccl or nccom"));
  with(app.add_option("-a,--average", o.average, "An iteration's time: 0 rank 0's, 1 mean, 2 least, 3 most [3]"));
  with(app.add_option("-C,--report_cputime", o.cpu_time, "1: CPU time instead of time"));
  with(app.add_option("--report_timestamps", o.timestamps, "1: when each size was done"));
  with(app.add_option("-M,--memory", o.memory, "1: memory that communicators use"));
  with(app.add_option("--per_iter_timing", o.per_iteration, "1: min, max, p99, cv of the iterations"));
  with(app.add_option("-K,--per_iter_skip", o.skipped, "Iterations that these leave out, fewer than there are"));
  with(app.add_option("--seed", o.seed, "Of random data"))->capture_default_str();
  with(app.add_option("--interpret-up-to", o.interpret_up_to, "Size that is checked with random numbers"))
      ->capture_default_str();
  with(app.add_flag("--show-algorithm", o.show_algorithm, "A column with the algorithm"));
  with(app.add_flag("--show-input-output-size", o.show_sizes, "Columns with the bytes of all inputs and outputs"));
  with(app.add_option("-J,--output_file,--json,--report-to-json-file", o.json, "Write results as JSON"));
  with(app.add_option("--csv", o.csv, "Write results as comma-separated values"));
  with(app.add_option("--plot", o.plot, "Draw time and bandwidth against size as SVG"))->check(svg_file());
}

}  // namespace

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.description(description);
  o.app = &app;
  app.add_option("op", o.op, "all_reduce, all_gather, ..., sendrecv; or all_reduce_perf, ...");
  add_sweep(app, o);
  add_place(app, o);
  add_ranks(app, o);
  add_output(app, o);
  add_clashing(app, o);
  for (const Flag& f : idle_flags)
    app.add_option(f.names, o.idle[key_of(f.names)], fmt::format("Of {}; only what it is by default", f.text))
        ->expected(1)
        ->allow_extra_args(false)
        ->group("Known, but without meaning here");
  for (const Flag& f : refused_flags)
    app.add_option(f.names, o.idle[key_of(f.names)], fmt::format("Of {}; refused", f.text))
        ->expected(0, 1)
        ->group("Known, but without meaning here");
  std::vector<std::string>& ignored = o.idle["--non-interactive"];
  app.add_option("--non-interactive,--debug", ignored, "Of nccom-test; nothing is ever asked")
      ->expected(0)
      ->group("Known, but without meaning here");
}

}  // namespace trellis::tools
