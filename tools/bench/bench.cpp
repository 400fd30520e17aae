#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "ccl/config.h"
#include "ccl/plan/call_check.h"
#include "ccl/plan/schedule_file.h"
#include "device/topology.h"
#include "kernels/dispatch/sysfs_topology.h"
#include "launch/host_machine.h"
#include "text/number_parsing.h"
#include "text/refuse.h"
#include "tools/bench/on_hosts.h"
#include "tools/bench/on_simulator.h"
#include "tools/bench/options.h"
#include "tools/bench/report/result.h"
#include "tools/program/command.h"
#include "tools/program/interrupt_poller.h"
#include "tools/program/output.h"
#include "tools/program/progress.h"
#include "tools/program/provenance.h"

namespace trellis::tools {

using namespace launch;
using namespace measure;
namespace {

constexpr std::size_t most_rows_kept = 1'000'000;
constexpr std::size_t most_looked_at = 100;  // operations that are checked before the first is measured

std::vector<ccl::Rank> roots_of(const BenchSettings& s, ccl::Rank ranks) {
  std::vector<ccl::Rank> roots = s.roots;
  if (roots.empty())
    for (ccl::Rank r = 0; r < ranks; ++r) roots.push_back(r);
  return roots;
}

// Whether the algorithm is a file with a schedule that works in place only. A file that can't be read is reported
// later.
bool is_in_place_file(const std::string& algorithm) {
  if (!algorithm.starts_with(schedule::file_prefix)) return false;
  try {
    return ccl::schedule_from_file(schedule::algorithm_config_named(algorithm), false).task.operation.in_place;
  } catch (const std::exception&) {
    return false;
  }
}

// A whole benchmark on one rank; rank 0 prints.
class Sweep {
 public:
  Sweep(const BenchSettings& s, const RankContext& context, const InterruptPoller& interrupts)
      : s_(s),
        interrupts_(interrupts),
        crew_(context),
        bench_(s, context),
        only_in_place_(is_in_place_file(s.algorithm)),
        roots_(roots_of(s, context.ranks)),
        progress_(measurements(), context.rank == 0) {
    for (const ccl::Rank root : roots_)
      if (root >= context.ranks) text::refuse("root {}: expected {}", root, text::range_text(0, context.ranks - 1));
  }

  int run() {
    try {
      begin();
      run_all();
    } catch (...) {
      bench_.abort();  // else the others would wait for this rank
      if (measuring_ && interrupts_.asked()) return tell_of_interruption();
      throw;
    }
    if (prints()) report("");
    if (!interrupts_.asked()) bench_.control->barrier();  // else it may be aborted
    return totals_.wrong == 0 ? 0 : 1;
  }

 private:
  bool prints() const { return crew_.rank == 0; }
  bool measures_in_place() const { return only_in_place_ || (s_.in_place && has_in_place(s_.op.collective)); }
  bool both() const { return measures_in_place() && !only_in_place_; }
  std::size_t rows() const {
    return s_.sizes.size() * s_.types.size() * s_.reductions.size() * roots_.size() *
           static_cast<std::size_t>(std::max(s_.cycles, 1));
  }
  std::size_t measurements() const { return rows() * (both() ? 2 : 1); }
  void begin();
  void run_all();
  int tell_of_interruption();
  void report(const std::string& interrupted);
  void allocate();
  void expect_served();
  std::vector<std::string> describe_ranks();
  void run_size(std::uint64_t bytes, kernels::DType, kernels::Reduction, ccl::Rank root);
  std::unique_ptr<BenchResult> one(const std::vector<ccl::Call>& calls, bool in_place);
  void keep(const std::unique_ptr<BenchResult>&);
  template <class Visit>
  void each_kind(Visit visit) const {
    for (const kernels::DType type : s_.types)
      for (const kernels::Reduction op : s_.reductions)
        for (const ccl::Rank root : roots_) visit(type, op, root);
  }

  const BenchSettings& s_;
  const InterruptPoller& interrupts_;
  std::optional<EndedBySignals> before_rows_{std::in_place};
  const RankContext& crew_;
  BenchContext bench_;
  const bool only_in_place_;
  std::vector<ccl::Rank> roots_;
  std::vector<std::unique_ptr<BenchBuffers>> buffers_;
  std::vector<BenchResult> results_;
  BenchTotals totals_;
  std::size_t printed_ = 0;  // rows
  bool measuring_ = false;
  Progress progress_;
};

void Sweep::allocate() {
  std::size_t input = 0, output = 0;
  each_kind([&](kernels::DType type, kernels::Reduction op, ccl::Rank root) {
    const auto calls = calls_for(s_, s_.sizes.back(), type, op, root, crew_.ranks);
    const ccl::BufferBytes e = ccl::extents_of(calls[static_cast<std::size_t>(crew_.rank)], crew_.rank, crew_.ranks);
    input = std::max(input, e.input);
    output = std::max(output, e.output);
  });
  refuse_too_large(std::max(input, output) + output, crew_.by.empty() ? crew_.ranks : 1, s_.streams, "-e");
  std::size_t size = 1;
  for (const kernels::DType type : s_.types) size = std::max(size, size_of(type));
  for (int i = 0; i < s_.streams; ++i)
    buffers_.push_back(std::make_unique<BenchBuffers>(*bench_.device, s_.device_memory, input, output,
                                                      static_cast<std::size_t>(s_.unaligned) * size));
}

// Reports requests that can't be served before the heading is printed. A schedule from a file is proved only when it
// runs.
void Sweep::expect_served() {
  if (s_.op.collective == schedule::Collective::send_recv) return;  // uses no algorithm
  if (!prints()) bench_.control->barrier();                         // rank 0 checks first: it alone reports a fault
  const auto placed = [&](std::uint64_t bytes, kernels::DType type, kernels::Reduction op, ccl::Rank root) {
    ccl::Call call = calls_for(s_, bytes, type, op, root, crew_.ranks)[static_cast<std::size_t>(crew_.rank)];
    buffers_.front()->place(call, crew_.rank, crew_.ranks, only_in_place_);
    return call;
  };
  std::size_t looked_at = 0;
  each_kind([&](kernels::DType type, kernels::Reduction op, ccl::Rank root) {
    for (const std::uint64_t bytes : s_.sizes)
      if (++looked_at <= most_looked_at) bench_.work.front()->algorithm(placed(bytes, type, op, root));
    if (s_.all_ones) measure::check_ones(placed(s_.sizes.front(), type, op, root), crew_.ranks);
  });
  if (prints()) bench_.control->barrier();
  if (s_.algorithm.starts_with(schedule::file_prefix))
    bench_.work.front()->run(placed(s_.sizes.front(), s_.types.front(), s_.reductions.front(), roots_.front()));
}

// "thread 0", "threads 0-3,8"
std::string where_it_runs() {
  const std::vector<int> threads = kernels::affinity();
  return fmt::format("thread{} {}", threads.size() == 1 ? "" : "s", ranges(threads));
}

// "Rank  0 Group  0 Pid   1234 on      host device  0 [thread 1] shared_memory", for every rank.
std::vector<std::string> Sweep::describe_ranks() {
  std::array<char, 128> mine = {};
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  const bool on_host = s_.device == "host";
  const int core = on_host ? 0 : bench_.device->topology().core;
  const std::string text =
      fmt::format("Rank {:2} Group  0 Pid {:6} on {:>10.32} device {:2} [{}] {}{}{}", crew_.rank, getpid(), host, core,
                  where_it_runs(), bench_.work.front()->transport(), on_host ? "" : " ", on_host ? "" : s_.device);
  std::memcpy(mine.data(), text.data(), std::min(text.size(), mine.size() - 1));
  std::vector<char> all(mine.size() * static_cast<std::size_t>(crew_.ranks));
  bench_.control->all_gather(mine.data(), all.data(), mine.size(), kernels::DType::u8);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) lines.emplace_back(all.data() + at);
  return lines;
}

std::unique_ptr<BenchResult> Sweep::one(const std::vector<ccl::Call>& calls, bool in_place) {
  auto r = std::make_unique<BenchResult>(result_of(s_, calls, in_place));
  progress_.next(fmt::format("{} {}{}", s_.op.word, bytes_text(r->bytes), in_place ? " in place" : ""));
  auto measured = measure::measure(bench_, {calls, buffers_, in_place});
  if (!measured) return nullptr;
  r->measured = std::move(*measured);
  return r;
}

void Sweep::keep(const std::unique_ptr<BenchResult>& r) {
  if (!r) return;
  totals_.wrong += r->measured.wrong;
  totals_.checked += r->measured.checked ? 1 : 0;
  totals_.busbw_sum += r->busbw_GBps(statistics_of(r->measured.us).average);
  ++totals_.rows;
  if (!r->measured.not_native.empty()) totals_.not_native.insert(r->measured.not_native);
  const bool wanted = !s_.json.empty() || !s_.csv.empty() || !s_.plot.empty();
  if (prints() && wanted && results_.size() < most_rows_kept) results_.push_back(*r);
}

void Sweep::run_size(std::uint64_t bytes, kernels::DType type, kernels::Reduction op, ccl::Rank root) {
  const auto calls = calls_for(s_, bytes, type, op, root, crew_.ranks);
  const auto out = only_in_place_ ? nullptr : one(calls, false);
  const auto in = measures_in_place() ? one(calls, true) : nullptr;
  keep(out);
  keep(in);
  if (!prints()) return;
  progress_.clear();
  write_output("", bench_row(s_, out.get(), in.get()));
  ++printed_;
}

void Sweep::begin() {
  allocate();
  expect_served();
  const std::vector<std::string> ranks = describe_ranks();
  if (prints()) write_output("", bench_heading(s_, ranks));
  measuring_ = true;
  before_rows_.reset();
}

// A signal aborts the row that is measured, on all ranks: it could take long, or wait for a rank that hangs.
void Sweep::run_all() {
  const InterruptWatch watch(interrupts_, [this] { bench_.abort(); });
  for (int cycle = 0; s_.cycles == 0 || cycle < s_.cycles; ++cycle)
    each_kind([&](kernels::DType type, kernels::Reduction op, ccl::Rank root) {
      for (const std::uint64_t bytes : s_.sizes) run_size(bytes, type, op, root);
    });
}

int Sweep::tell_of_interruption() {
  if (!prints()) return 1;
  const std::string there = s_.cycles == 0 ? fmt::format("{} rows are there", printed_)
                                           : fmt::format("{} of {} rows are there", printed_, rows());
  report(there);
  throw std::runtime_error("interrupted: " + there);
}

void Sweep::report(const std::string& interrupted) {
  for (const auto& one : bench_.work) totals_.memory_bytes += one->memory_bytes();
  progress_.clear();
  write_output("", bench_footer(s_, totals_));
  if (!s_.json.empty()) write_output(s_.json, bench_json(s_, results_, interrupted));
  if (!s_.csv.empty()) write_output(s_.csv, bench_csv(s_, results_));
  if (!s_.plot.empty() && !results_.empty()) write_output(s_.plot, bench_plot(results_));
}

int run(const BenchOptions& options) {
  if (!options.on.empty()) return bench_on(options);
  if (!options.hosts.empty() || !options.hosts_file.empty()) return bench_on_hosts(options);
  const BenchSettings s = bench_settings(options);
  note_origin("seed", std::to_string(s.seed));
  if (ccl::launched_from_environment().rank == 0)
    for (const std::string& path : {s.json, s.csv, s.plot}) expect_writable(path);
  const InterruptPoller interrupts;
  // A rank that was launched may wait long for the others. Ranks that start here are forked, and beside no threads.
  std::optional<EndedBySignals> before_all_meet;
  if (!ccl::launched_from_environment().by.empty()) before_all_meet.emplace();
  return run_on_ranks({.ranks = s.ranks,
                       .threads = s.threads,
                       .pin = s.pin,
                       .timeout = s.timeout,
                       .interrupted = [&] { return interrupts.asked(); }},
                      [&](const RankContext& context) {
                        Sweep sweep(s, context, interrupts);
                        if (before_all_meet) before_all_meet.reset();
                        return sweep.run();
                      });
}

const RegisteredCommand bench_command(
    "bench", "Times and checks collectives between ranks, with the flags of nccl-tests",
    "trellis bench all_reduce_perf -b 8 -e 128M -f 2\n"
    "trellis bench all_reduce --ranks 4 -b 1K -e 1M -f 4 --style nccom --stats avg p50 p99   # nccom-test's table\n"
    "trellis bench all_gather --ranks 8 -b 64K -e 64K --show-algorithm\n"
    "trellis bench reduce_scatter_perf -b 1K -e 64M -f 4 -R 2 --plot bandwidth.svg --json results.json\n"
    "trellis bench all_reduce -b 64K -e 64K --algorithm ring*2/4 --streams 2\n"
    "trellis bench all_reduce --on sim:trn2.48xlarge -b 1M -e 64M\n"
    "trellis bench all_reduce --device sim:trn2.48xlarge --ranks 4   # right values, and simulated time\n"
    "trellis bench all_reduce --ranks 16 --hosts node0 node1 -b 1K -e 1G -f 4\n"
    "trellis launch -n 4 --raw -- trellis bench all_to_all_perf -b 1M -e 1M\n"
    "mpirun -n 4 trellis bench broadcast_perf -b 8 -e 1M -f 8 -r all",
    add_bench_options, run);

}  // namespace
}  // namespace trellis::tools
