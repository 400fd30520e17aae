#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "ccl/rendezvous/environment.h"
#include "ccl/transports/registry.h"
#include "schedule/traits.h"
#include "tools/bench/lists.h"
#include "tools/bench/options.h"
#include "tools/program/cli_checks.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr std::size_t most_sizes = 100'000;
constexpr std::int64_t most_iterations_asked = 100'000'000, most_cycles = 1 << 30;
constexpr std::int64_t most_ranks_asked = 1 << 20, most_threads = 1024;
constexpr std::int64_t most_seconds = 10'000'000;      // same limit as TRELLIS_TIMEOUT
constexpr std::chrono::hours for_ever{24 * 365 * 50};  // a time that clocks can still represent

constexpr const char* several_nodes = "for several nodes, run it under trellis launch, mpirun or srun";

struct Idle {
  std::string_view flag;
  std::vector<std::string_view> allowed;  // empty: any value is refused
  std::string_view why;
};

const std::vector<Idle>& idle_flags() {
  static const std::vector<Idle> all = {
      {"--parallel_init", {"0", "1"}, "ranks always begin side by side"},
      {"--blocking", {"0", "1"}, "a call without a stream returns when it is done, which is 1"},
      {"--stream_null", {"0", "1"}, "with one stream it is always the null stream, which is the calling thread"},
      {"--cudagraph", {"0"}, "there are no graphs: plans are kept by themselves"},
      {"--cta_policy", {"0"}, "there are no thread blocks on this device"},
      {"--device_implementation", {"0"}, "there are no kernels that communicate on this device"},
      {"--device_cta_count", {"0", "16"}, "there are no thread blocks on this device"},
      {"--warmup_inside", {"0"}, "there is no executable to warm up within: use -w"},
      {"--nnodes", {"1"}, several_nodes},
      {"--coalesced-cc-size-ratio", {"1"}, "operations of one group have one size: use -m for a group"},
      {"--data-parallel-dimension", {"1"}, "all ranks form one group"},
      {"--vcpu-pin-mode", {"0", "none"}, "ranks are pinned when there are cores enough; --no-pin turns it off"},
      {"--data-collector-port", {"60006"}, "results are collected over the communicator itself"},
      {"--data-collector-host", {}, "results are collected over the communicator itself"},
      {"--hosts", {}, "run it under trellis launch, mpirun or srun on the hosts"},
      {"--hosts-file", {}, "run it under trellis launch, mpirun or srun on the hosts"},
      {"--mpi-log-dir", {}, "what starts the ranks has their output: mpirun --output-filename"},
      {"--slurm-mode", {}, "run it under srun, which starts the ranks"},
      {"--slurm-vcpus-per-node", {}, "run it under srun, which knows the nodes' CPUs"},
      {"--slurm-setup-script", {}, "run it under srun, after the script"},
      {"--slurm-job-id", {}, "run it under srun --jobid"},
      {"--slurm-use-head-node-neuron-bench", {}, "run it under srun"},
      {"--streams-json", {}, "streams are alike here: use --streams N"},
      {"--custom-replica-groups", {}, "all ranks form one group"},
      {"--unique-buff", {}, "an operation uses the same buffers each time"},
      {"--shared-output-buff", {}, "an operation uses the same buffers each time"},
      {"--sb2sb", {}, "there is no SBUF on this device"},
      {"--input-shape", {}, "buffers are flat here: use -b and -e"},
      {"--cc-dim", {}, "buffers are flat here"}};
  return all;
}

void refuse_idle(const BenchOptions& o) {
  for (const Idle& idle : idle_flags()) {
    const auto found = o.idle.find(std::string(idle.flag));
    if (found == o.idle.end() || o.app->count(std::string(idle.flag)) == 0) continue;
    const std::string value = found->second.empty() ? "" : found->second.front();
    if (std::ranges::find(idle.allowed, value) != idle.allowed.end()) continue;
    const std::string expected =
        idle.allowed.empty() ? "" : fmt::format("expected {}; ", fmt::join(idle.allowed, " or "));
    throw std::invalid_argument(
        fmt::format("{}{}{}: {}{}", idle.flag, value.empty() ? "" : " ", value, expected, idle.why));
  }
}

void expect_place(const BenchOptions& o) {
  for (const char* flag : {"--era", "--what-if", "--no-interval"})
    if (o.on.empty() && o.app->count(flag) != 0)
      throw std::invalid_argument(fmt::format("{} goes with --on sim:MACHINE", flag));
}

// A flag with an optional value, or with several values, swallows the operation that follows it.
void find_op_behind_flags(BenchOptions& o) {
  for (auto& [letter, values] : o.clashing)
    if (o.op.empty() && !values.empty() && is_bench_op(values.back())) {
      o.op = values.back();
      values.pop_back();
    }
}

Style style_of(const BenchOptions& o) {
  if (o.style.empty()) return o.op.ends_with("_perf") ? Style::nccl : Style::nccom;
  if (o.style == "nccl") return Style::nccl;
  if (o.style == "nccom") return Style::nccom;
  throw std::invalid_argument(fmt::format("--style {}: expected nccl or nccom", o.style));
}

// Options that only the other grammar's table has.
void refuse_columns(const BenchOptions& o, Style style) {
  const bool nccl = style == Style::nccl;
  const std::vector<const char*> flags =
      nccl ? std::vector<const char*>{"--show-input-output-size"}
           : std::vector<const char*>{"--report_timestamps", "--memory", "--per_iter_timing", "--per_iter_skip"};
  for (const char* flag : flags)
    if (o.app->count(flag) != 0)
      throw std::invalid_argument(fmt::format("{}: the table of {} has it: --style {}", flag,
                                              nccl ? "nccom-test" : "nccl-tests", nccl ? "nccom" : "nccl"));
}

int small(std::string_view flag, const std::vector<std::string>& values, std::int64_t least, std::int64_t most) {
  return static_cast<int>(parse_count(flag, values.empty() ? "" : values.front(), least, most));
}

void read_nccl(BenchOptions& o) {
  const auto given = [&](char letter) { return !o.clashing[letter].empty() && !o.clashing[letter].front().empty(); };
  if (given('r')) o.root = o.clashing['r'].front();
  if (given('N')) o.cycles = small("-N", o.clashing['N'], 0, most_cycles);
  if (given('I')) o.per_iteration = small("-I", o.clashing['I'], 0, 1);
  if (given('S')) o.timestamps = small("-S", o.clashing['S'], 0, 1);
  if (given('u')) o.unaligned = small("-u", o.clashing['u'], 0, 1 << 20);
  if (o.clashing['t'].size() > 1)
    throw std::invalid_argument(fmt::format("-t {} {}: in the grammar of nccl-tests it takes one number of threads",
                                            o.clashing['t'][0], o.clashing['t'][1]));
  if (given('t')) o.threads_each = small("-t", o.clashing['t'], 1, most_threads);
  o.passes = given('c') ? small("-c", o.clashing['c'], 0, 1'000'000) : 1;
  if (o.clashing['c'].empty() && o.app->count("-c") != 0) o.passes = 1;
}

void expect_same(const char* flag, int value, const char* other, int of_other) {
  if (value != of_other)
    throw std::invalid_argument(fmt::format("{} {} {} {}: expected one of them", flag, value, other, of_other));
}

void read_nccom(BenchOptions& o, bool& all_ones) {
  const auto value = [&](char letter) { return o.clashing[letter].empty() ? "" : o.clashing[letter].front(); };
  const auto given = [&](char letter) { return !value(letter).empty(); };
  if (given('r')) {
    const int ranks = small("-r", o.clashing['r'], 1, most_ranks_asked);
    if (o.app->count("--nworkers") != 0) expect_same("-r", ranks, "--nworkers", o.workers);
    o.workers = ranks;
  }
  if (given('N') && value('N') != "1")
    throw std::invalid_argument(fmt::format("-N {}: expected 1; {}", value('N'), several_nodes));
  if (given('I')) o.repeated = small("-I", o.clashing['I'], 1, 1'000'000);
  if (o.app->count("-S") != 0) throw std::invalid_argument("-S: run it under srun, which starts the ranks");
  if (given('u')) throw std::invalid_argument("-u: run it under srun, which knows the nodes' CPUs");
  o.stats = o.clashing['t'];
  o.passes = o.app->count("-c") != 0 ? 1 : 0;
  if (value('c') == "all_ones")
    all_ones = true;
  else if (given('c') && value('c') == "0")
    o.passes = 0;
  else if (given('c') && value('c') != "random" && value('c') != "1")
    throw std::invalid_argument(fmt::format("--check {}: expected random or all_ones", value('c')));
}

std::vector<std::string> stats_of(const std::vector<std::string>& asked) {
  std::vector<std::string> stats = asked.empty() ? std::vector<std::string>{"avg"} : asked;
  for (const std::string& s : stats)
    if (s != "avg") {
      int percent = -1;
      const char* const end = s.data() + s.size();
      if (!s.starts_with("p") || std::from_chars(s.data() + 1, end, percent).ptr != end || percent < 0 || percent > 100)
        throw std::invalid_argument(fmt::format("-t {}: expected avg or p0 to p100", s));
    }
  return stats;
}

void set_sizes(BenchSettings& s, const BenchOptions& o) {
  const std::uint64_t least = parse_bytes(o.least), most = parse_bytes(o.most);
  if (least > most)
    throw std::invalid_argument(fmt::format("-b {} -e {}: expected the first to be the smaller", o.least, o.most));
  if (most > most_bytes) throw std::invalid_argument(fmt::format("-e {}: expected at most 16T", o.most));
  if (o.app->count("-f") != 0 && o.factor < 2)
    throw std::invalid_argument(fmt::format("-f {}: expected at least 2", o.factor));
  std::uint64_t step =
      s.style == Style::nccl ? std::uint64_t{1} << 20 : std::max<std::uint64_t>((most - least) / 10, 1);
  if (!o.step.empty()) step = parse_bytes(o.step);
  if (step == 0) throw std::invalid_argument("-i 0: expected at least 1");
  s.step_text = o.factor != 0 ? fmt::format("step: {}(factor)", o.factor) : fmt::format("step: {}(bytes)", step);
  s.most_bytes = most;
  if (!schedule::carries_data(s.op.collective)) {
    s.sizes = {0};
    return;
  }
  if (o.factor != 0 && least == 0) throw std::invalid_argument("-b 0 -f: expected a first size that can be multiplied");
  const auto factor = static_cast<std::uint64_t>(o.factor);
  for (std::uint64_t bytes = least; bytes <= most; bytes = factor != 0 ? bytes * factor : bytes + step) {
    if (s.sizes.size() == most_sizes)
      throw std::invalid_argument(fmt::format("-b {} -e {}: more than {} sizes", o.least, o.most, most_sizes));
    s.sizes.push_back(bytes);
    if (factor != 0 && bytes > most / factor) break;  // else the product could exceed 64 bits
  }
}

void set_kinds(BenchSettings& s, const BenchOptions& o) {
  if (o.type == "all")
    s.types.assign(kernels::dtypes().begin(), kernels::dtypes().end());
  else
    s.types = {o.type.empty() ? (s.style == Style::nccl ? kernels::DType::f32 : kernels::DType::u8)
                              : bench_type(o.type, s.style)};
  if (o.reduction == "all" && schedule::reduces(s.op.collective))
    for (std::size_t i = 0; i < kernels::reduction_count; ++i)
      s.reductions.push_back(static_cast<kernels::Reduction>(i));
  else
    s.reductions = {o.reduction == "all" ? kernels::Reduction::sum : bench_reduction(o.reduction)};
  const bool root = schedule::rooted(s.op.collective) || s.op.collective == schedule::Collective::send_recv;
  s.roots = {0};
  if (o.root == "all" && root)
    s.roots.clear();
  else if (o.root != "all" && !o.root.empty())
    s.roots = {static_cast<ccl::Rank>(parse_count("--root", o.root, 0, 1 << 24))};
  if (!root) s.roots = {0};
}

void set_ranks(BenchSettings& s, const BenchOptions& o) {
  const int each = o.threads_each * o.devices_each;
  if (o.ranks != 0 && o.workers != 0) expect_same("--ranks", o.ranks, "--nworkers", o.workers);
  s.ranks = o.ranks != 0 ? o.ranks : o.workers;
  if (each > 1 && s.ranks != 0 && s.ranks != each)
    throw std::invalid_argument(fmt::format("{} ranks and {} threads: expected one of them", s.ranks, each));
  // In a launched job, -t 1 -g 1 means one rank in each process. Where no job was launched, there is one process.
  const bool said =
      o.app->count("--nthreads") + o.app->count("-g") != 0 || (s.style == Style::nccl && o.app->count("-t") != 0);
  if (each > 1 || (said && s.ranks == 0 && o.on.empty() && ccl::launched_from_environment().by.empty())) s.ranks = each;
  s.threads = o.threads || each > 1;
  s.streams = o.streams;
  s.pin = !o.no_pin && o.streams == 1;
  if (o.app->count("-T") != 0) s.timeout = o.timeout_s == 0 ? for_ever : std::chrono::seconds(o.timeout_s);
}

void check_numbers(const BenchOptions& o) {
  const auto within = [](const char* flag, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most)
      throw std::invalid_argument(fmt::format("{} {}: expected {}", flag, value, range_text(least, most)));
  };
  if (o.app->count("-n") != 0) within("-n", o.iterations, 1, most_iterations_asked);
  if (o.app->count("-w") != 0) within("-w", o.warm_ups, 0, most_iterations_asked);
  within("-m", o.grouped, 1, 4096);
  within("--inside", o.repeated, 1, 1'000'000);
  within("-R", o.registered, 0, 2);
  if (o.app->count("-a") != 0) within("-a", o.average, 0, 3);
  within("-K", o.skipped, 0, most_iterations_asked);
  if (const int least = o.app->count("-n") != 0 ? o.iterations : least_iterations; o.skipped >= least)
    throw std::invalid_argument(
        fmt::format("-K {}: expected fewer than the {} iterations of each size", o.skipped, least));
  within("--unalign", o.unaligned, 0, 1 << 20);
  within("--run_cycles", o.cycles, 0, most_cycles);
  if (o.app->count("--ranks") != 0) within("--ranks", o.ranks, 1, most_ranks_asked);
  if (o.app->count("--nworkers") != 0) within("--nworkers", o.workers, 1, most_ranks_asked);
  within("--nthreads", o.threads_each, 1, most_threads);
  within("-g", o.devices_each, 1, most_threads);
  within("--streams", o.streams, 1, 64);
  within("-T", o.timeout_s, 0, most_seconds);
  for (const auto& [flag, value] :
       {std::pair{"-C", o.cpu_time}, {"-S", o.timestamps}, {"-M", o.memory}, {"-I", o.per_iteration}})
    within(flag, value, 0, 1);
}

std::uint64_t seed_in(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument(
        fmt::format("--seed {}: expected a whole number from 0 to {}", text, ~std::uint64_t{0}));
  return seed;
}

// Options with lists that only some operations use.
void set_lists(BenchSettings& s, const BenchOptions& o) {
  const auto refuse = [&](const char* flag, const std::string& value, const char* whose) {
    throw std::invalid_argument(
        fmt::format("{} {}: {}, and this is {}", flag, value, whose, schedule::name(s.op.collective)));
  };
  constexpr const char *pairs = "--custom-src-target-pairs", *counts = "--variable-size-op-metadata";
  s.pairs = bench_pairs(o.pairs);
  if (!s.pairs.empty() && s.op.collective != schedule::Collective::permute)
    refuse(pairs, o.pairs, "only permute has pairs");
  s.weights = bench_weights(o.counts_file);
  if (!s.weights.empty() && !schedule::uneven(s.op.collective))
    refuse(counts, o.counts_file, "only the _v forms have counts");
  if (s.weights.size() > 1 && !schedule::counts_by_pair(s.op.collective))
    refuse(counts, o.counts_file, "only all_to_all_v has a list for each sender");
}

}  // namespace

BenchSettings bench_settings(BenchOptions o) {
  expect_plain_values(*o.app);
  find_op_behind_flags(o);
  refuse_idle(o);
  expect_place(o);
  if (o.op.empty())
    throw std::invalid_argument("no operation: trellis bench all_reduce, trellis bench all_reduce_perf, ...");
  BenchSettings s;
  s.op = bench_op(o.op);
  s.style = style_of(o);
  refuse_columns(o, s.style);
  s.style == Style::nccl ? read_nccl(o) : read_nccom(o, s.all_ones);
  check_numbers(o);
  set_sizes(s, o);
  set_kinds(s, o);
  set_ranks(s, o);
  s.iterations = o.iterations;
  s.warm_ups = o.warm_ups >= 0 ? o.warm_ups : s.style == Style::nccl ? 1 : 5;
  s.grouped = o.grouped;
  s.repeated = o.repeated;
  s.cycles = o.cycles;
  s.merge = o.average < 0 ? Merge::slowest : static_cast<Merge>(o.average);
  s.untouched = o.untouched;
  s.cpu_time = o.cpu_time != 0;
  s.check_passes = o.passes;
  s.seed = seed_in(o.seed);
  s.interpret_up_to = parse_bytes(o.interpret_up_to);
  s.in_place = s.style == Style::nccl || o.in_place;
  s.device_memory = o.registered != 0;
  s.unaligned = o.unaligned;
  s.per_iteration = o.per_iteration != 0;
  s.skipped = o.skipped;
  s.timestamps = o.timestamps != 0;
  s.memory_report = o.memory != 0;
  s.show_algorithm = o.show_algorithm;
  s.show_sizes = o.show_sizes;
  s.stats = stats_of(o.stats);
  s.algorithm = o.algorithm;
  if (!o.transport.empty()) s.transport = ccl::transport_named(o.transport).name;
  s.provider = o.provider;
  if (!o.algorithm.empty() && o.on.empty() && s.op.collective == schedule::Collective::send_recv)
    throw std::invalid_argument(fmt::format("--algorithm {}: {} goes by none", o.algorithm, o.op));
  set_lists(s, o);
  if (!o.plot.empty() && s.sizes.back() == 0) throw std::invalid_argument("--plot: expected a size above 0");
  s.era = o.era;
  s.what_if = o.what_if;
  s.interval = !o.on.empty() && !o.no_interval;
  s.json = o.json;
  s.csv = o.csv;
  s.plot = o.plot;
  return s;
}

}  // namespace trellis::tools
