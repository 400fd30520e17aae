#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "ccl/config.h"
#include "ccl/process_device.h"
#include "ccl/rendezvous/environment.h"
#include "ccl/transports/registry.h"
#include "device/backends.h"
#include "schedule/collective_traits.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/bench/flags.h"
#include "tools/bench/options.h"
#include "tools/bench/pairs_and_weights.h"

namespace trellis::tools {

using namespace measure;
namespace {

constexpr std::size_t most_sizes = 100'000;
constexpr std::chrono::hours for_ever{24 * 365 * 50};  // a time that clocks can still represent

std::string value_of(const std::vector<std::string>& values) { return values.empty() ? "" : values.front(); }

// Refuses a flag that has no meaning here, unless its value changes nothing.
void refuse(std::string_view name, const Flag& f, const std::string& value) {
  if (std::ranges::find(f.allowed, value) != f.allowed.end()) return;
  text::refuse("{} {}: expected {}; {}", name, value, fmt::join(f.allowed, " or "), f.why);
}

void refuse_idle(const BenchOptions& o) {
  for (const Flag& f : bench_flags())
    if (const std::string name(f.long_name()); f.section == Section::idle && o.app->count(name) != 0)
      refuse(name, f, value_of(o.idle.at(name)));
}

void expect_place(const BenchOptions& o) {
  for (const char* flag : {"--era", "--what-if", "--no-interval"})
    if (o.on.empty() && o.app->count(flag) != 0) text::refuse("{} goes with --on sim:MACHINE", flag);
  if (o.app->count("--rsh") != 0) text::refuse("--rsh {} goes with --hosts", o.shell);
}

void set_device(BenchSettings& s, const BenchOptions& o) {
  const bool typed = o.app->count("--device") != 0;
  if (typed && !o.on.empty() && o.device != "host")
    text::refuse("--device {} goes with ranks that run, and --on simulates them", o.device);
  if (!o.on.empty()) return;
  s.device = typed ? o.device : ccl::device_from_environment();
  const std::string source = typed ? fmt::format("--device {}", o.device) : fmt::format("TRELLIS_DEVICE={}", s.device);
  try {
    device::backend_named(s.device);  // throws for an unknown one
  } catch (const std::invalid_argument& e) {
    throw std::invalid_argument(typed ? e.what() : fmt::format("{}: {}", source, e.what()));
  }
  if (s.device == "host") return;
  if (s.cpu_time && s.device.starts_with("sim:")) text::refuse("--report_cputime: the time of {} is simulated", source);
  s.device_memory = true;
}

BenchStyle style_named(const std::string& name) {
  if (name.empty() || name == "nccl") return BenchStyle::nccl;
  if (name == "nccom") return BenchStyle::nccom;
  text::refuse("--style {}: expected nccl or nccom", name);
}

// Refuses options that only the other table has.
void refuse_columns(const BenchOptions& o, BenchStyle style) {
  const bool nccl = style == BenchStyle::nccl;
  for (const Flag& f : bench_flags())
    if (f.table.value_or(style) != style && o.app->count(std::string(f.long_name())) != 0)
      text::refuse("{}: the table of {} has it: --style {}", f.long_name(), nccl ? "nccom-test" : "nccl-tests",
                   nccl ? "nccom" : "nccl");
}

void set_checks(BenchSettings& s, const std::string& check) {
  constexpr std::int64_t most_passes = 1'000'000;
  s.all_ones = check == "all_ones";
  s.check_passes = 1;
  if (check.empty() || check == "random" || s.all_ones) return;
  const auto passes = text::number<std::int64_t>(check, 0, most_passes);
  if (!passes)
    text::refuse("--check {}: expected a number of passes from 0 to {}, random or all_ones", check, most_passes);
  s.check_passes = static_cast<int>(*passes);
}

std::vector<std::string> stats_of(const std::vector<std::string>& asked, bool simulated) {
  std::vector<std::string> stats = asked;
  if (asked.empty()) stats = {"avg"};
  if (asked.empty() && !simulated) stats.insert(stats.end(), {"p50", "p99"});
  for (const std::string& s : stats)
    if (s != "avg" && !(s.starts_with("p") && text::number<int>(std::string_view(s).substr(1), 0, 100)))
      text::refuse("--stats {}: expected avg or p0 to p100", s);
  return stats;
}

void set_sizes(BenchSettings& s, const BenchOptions& o) {
  const std::uint64_t least = parse_bytes(o.least), most = parse_bytes(o.most);
  if (least > most) text::refuse("-b {} -e {}: expected the first to be the smaller", o.least, o.most);
  if (most > most_bytes) text::refuse("-e {}: expected at most 16T", o.most);
  if (o.app->count("-f") != 0 && o.factor < 2) text::refuse("-f {}: expected at least 2", o.factor);
  const std::uint64_t step = o.step.empty() ? std::uint64_t{1} << 20 : parse_bytes(o.step);
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
    if (s.sizes.size() == most_sizes) text::refuse("-b {} -e {}: more than {} sizes", o.least, o.most, most_sizes);
    s.sizes.push_back(bytes);
    if (factor != 0 && bytes > most / factor) break;  // else the product could exceed 64 bits
  }
}

void set_kinds(BenchSettings& s, const BenchOptions& o) {
  if (o.type == "all")
    s.types.assign(kernels::dtypes().begin(), kernels::dtypes().end());
  else
    s.types = {bench_type(o.type, BenchStyle::nccl)};
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
    s.roots = {static_cast<ccl::Rank>(text::count("--root", o.root, 0, 1 << 24))};
  if (!root) s.roots = {0};
}

void set_ranks(BenchSettings& s, const BenchOptions& o) {
  const int each = o.threads_each * o.devices_each;
  s.ranks = o.ranks;
  if (each > 1 && s.ranks != 0 && s.ranks != each)
    text::refuse("{} ranks and {} threads: expected one of them", s.ranks, each);
  // In a launched job, -t 1 -g 1 means one rank in each process. Where no job was launched, there is one process.
  const bool said = o.app->count("--nthreads") + o.app->count("-g") != 0;
  if (each > 1 || (said && s.ranks == 0 && o.on.empty() && ccl::launched_from_environment().by.empty())) s.ranks = each;
  s.threads = o.threads || each > 1;
  s.streams = o.streams;
  s.pin = !o.no_pin && o.streams == 1;
  s.timeout = ccl::config_from_environment().timeout;
  if (o.app->count("-T") != 0) s.timeout = o.timeout_s == 0 ? for_ever : std::chrono::seconds(o.timeout_s);
}

void check_numbers(const BenchOptions& o) {
  for (const Flag& f : bench_flags()) {
    const auto* const number = std::get_if<int BenchOptions::*>(&f.target);
    if (number == nullptr || f.least > f.most) continue;
    const std::string name(f.short_name());
    const std::int64_t value = o.*(*number);
    if (o.app->count(name) != 0 && (value < f.least || value > f.most))
      text::refuse("{} {}: expected {}", name, value, text::range_text(f.least, f.most));
  }
  if (const int least = o.app->count("-n") != 0 ? o.iterations : least_iterations; o.skipped >= least)
    text::refuse("-K {}: expected fewer than the {} iterations of each size", o.skipped, least);
}

std::uint64_t seed_in(const std::string& text) {
  if (const auto seed = text::number<std::uint64_t>(text)) return *seed;
  text::refuse("--seed {}: expected a whole number from 0 to {}", text, ~std::uint64_t{0});
}

// Sets the lists that only some operations use, and refuses them for other operations.
void set_lists(BenchSettings& s, const BenchOptions& o) {
  const auto refuse = [&](const char* flag, const std::string& value, const char* whose) {
    text::refuse("{} {}: {}, and this is {}", flag, value, whose, schedule::name(s.op.collective));
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

void find_op_behind_flags(BenchOptions& o) {
  const auto look = [&](std::vector<std::string>& values) {
    if (!o.op.empty() || values.empty() || !is_bench_op(values.back())) return;
    o.op = values.back();
    values.pop_back();
  };
  look(o.stats);
  look(o.hosts);
  if (o.op.empty() && is_bench_op(o.check)) o.op = std::exchange(o.check, "");
}

BenchSettings bench_settings(BenchOptions o) {
  find_op_behind_flags(o);
  refuse_idle(o);
  expect_place(o);
  if (o.op.empty())
    throw std::invalid_argument("no operation: trellis bench all_reduce, trellis bench all_reduce_perf, ...");
  BenchSettings s;
  s.op = bench_op(o.op);
  s.style = style_named(o.style);
  refuse_columns(o, s.style);
  check_numbers(o);
  set_checks(s, o.check);
  set_sizes(s, o);
  set_kinds(s, o);
  set_ranks(s, o);
  s.iterations = o.iterations;
  s.warm_ups = o.warm_ups;
  s.grouped = o.grouped;
  s.repeated = o.repeated;
  s.cycles = o.cycles;
  s.merge = o.average < 0 ? TimeMerge::slowest : static_cast<TimeMerge>(o.average);
  s.untouched = o.untouched;
  s.cpu_time = o.cpu_time != 0;
  s.seed = seed_in(o.seed);
  s.interpret_up_to = parse_bytes(o.interpret_up_to);
  s.in_place = s.style == BenchStyle::nccl || o.in_place;
  s.device_memory = o.registered != 0;
  set_device(s, o);
  s.unaligned = o.unaligned;
  s.per_iteration = o.per_iteration != 0;
  s.skipped = o.skipped;
  s.timestamps = o.timestamps != 0;
  s.memory_report = o.memory != 0;
  s.show_algorithm = o.show_algorithm;
  s.show_sizes = o.show_sizes;
  s.simulated = !o.on.empty();
  s.stats = stats_of(o.stats, s.simulated);
  s.algorithm = o.algorithm;
  if (!o.transport.empty()) s.transport = ccl::transport_named(o.transport).name;
  s.provider = o.provider;
  if (!o.algorithm.empty() && o.on.empty() && s.op.collective == schedule::Collective::send_recv)
    text::refuse("--algorithm {}: {} goes by none", o.algorithm, o.op);
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
