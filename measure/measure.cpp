#include "measure/measure.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <stdexcept>

#include "ccl/config.h"
#include "ccl/group.h"
#include "ccl/plan/call_check.h"
#include "ccl/process_device.h"
#include "device/capabilities.h"
#include "device/simulated_time.h"
#include "measure/expected_results.h"

namespace trellis::measure {
namespace {

using ccl::Call;
using ccl::Communicator;
using Micros = std::chrono::duration<double, std::micro>;

constexpr const char* native = "native";
constexpr double enough_us = 50'000;  // time of all iterations, if the settings do not give their number

double wall_us() { return Micros(ccl::Clock::now().time_since_epoch()).count(); }

double cpu_us() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) * 1e-3;
}

double cost_of_clock(const BenchContext& bench) {
  double least = 1e9;
  for (int i = 0; i < 1000; ++i) {
    const double before = bench.now_us();
    least = std::min(least, bench.now_us() - before);
  }
  return least;
}

// If the job was started here, all its ranks are on this host.
int local_rank(const launch::RankContext& context) {
  return context.by.empty() ? context.rank : ccl::launched_from_environment().local_rank;
}

// This rank's calls of the subject, one for each stream.
class Work {
 public:
  Work(BenchContext& bench, const BenchCase& subject) : bench_(bench), settings_(bench.settings) {
    for (const auto& buffers : subject.buffers) {
      calls_.push_back(subject.calls[static_cast<std::size_t>(bench.rank())]);
      buffers->place(calls_.back(), bench.rank(), bench.ranks(), subject.in_place);
    }
    extents_ = ccl::extents_of(calls_.front(), bench.rank(), bench.ranks());
  }

  const Call& call() const { return calls_.front(); }

  // The part that an iteration times.
  void run() {
    for (int i = 0; i < settings_.repeated; ++i) {
      if (settings_.grouped == 1) {
        issue();
        continue;
      }
      ccl::Group group;
      for (int g = 0; g < settings_.grouped; ++g) issue();
      group.end();
    }
    synchronize();
  }
  // A single operation, for checks: in place, a second one would read the result of the first.
  void run_once() {
    issue();
    synchronize();
  }
  double operations() const { return static_cast<double>(settings_.repeated) * settings_.grouped; }

  // What a user does between operations: write the input, read the output.
  void touch(DataPattern& pattern) {
    if (settings_.untouched) return;
    for (const Call& c : calls_) {
      look_through(c.output, extents_.output);
      pattern.fill(const_cast<void*>(c.input));
    }
  }

  std::vector<Call>& calls() { return calls_; }
  const ccl::BufferBytes& extents() const { return extents_; }

 private:
  void synchronize() {
    for (const auto& stream : bench_.streams) stream->synchronize();
  }
  void issue() {
    if (bench_.streams.empty()) return bench_.work.front()->run(calls_.front());
    for (std::size_t i = 0; i < calls_.size(); ++i) bench_.work[i]->run(calls_[i], bench_.streams[i].get());
  }

  BenchContext& bench_;
  const BenchSettings& settings_;
  std::vector<Call> calls_;
  ccl::BufferBytes extents_;
};

std::vector<double> times(BenchContext& bench, Work& work, DataPattern& pattern, int iterations, bool back_to_back) {
  std::vector<double> us;
  us.reserve(static_cast<std::size_t>(iterations));
  bench.control->barrier();
  for (int i = 0; i < iterations; ++i) {
    if (!back_to_back) {
      work.touch(pattern);
      bench.control->barrier();
    }
    const double before = bench.now_us();
    if (back_to_back) work.touch(pattern);
    work.run();
    us.push_back(std::max(0.0, bench.now_us() - before - bench.clock_us) / work.operations());
  }
  return bench.merged(std::move(us), bench.settings.merge);
}

// The number of iterations, agreed by all ranks.
int iterations_for(BenchContext& bench, Work& work, DataPattern& pattern, bool back_to_back) {
  if (bench.settings.iterations != 0) return bench.settings.iterations;
  const std::vector<double> some = times(bench, work, pattern, 3, back_to_back);
  const double one = *std::ranges::min_element(some) * work.operations();
  return static_cast<int>(
      std::clamp(enough_us / std::max(one, 1e-3), double{least_iterations}, double{most_iterations}));
}

std::uint64_t wrong_by_interpreter(BenchContext& bench, const BenchCase& subject, Work& work, std::uint64_t seed,
                                   const schedule::Schedule& schedule) {
  const auto rank = bench.rank();
  const std::vector<std::byte> input = random_input(work.call(), rank, bench.ranks(), seed);
  for (const Call& c : work.calls())
    std::copy(input.begin(), input.end(), static_cast<std::byte*>(const_cast<void*>(c.input)));
  work.run_once();
  const ccl::Communicator& ran = *bench.work.front();
  const auto wanted =
      true_outputs(schedule, subject.calls, seed, ran.config(), ran.operations())[static_cast<std::size_t>(rank)];
  const std::size_t size = size_of(work.call().type);
  std::uint64_t wrong = 0;
  for (const Call& c : work.calls())
    for (std::size_t at = 0; at < wanted.size(); at += size)
      wrong += std::equal(wanted.begin() + static_cast<std::ptrdiff_t>(at),
                          wanted.begin() + static_cast<std::ptrdiff_t>(at + size),
                          static_cast<const std::byte*>(c.output) + at)
                   ? 0U
                   : 1U;
  return wrong;
}

std::uint64_t check_pass(BenchContext& bench, const BenchCase& subject, Work& work, std::uint64_t seed,
                         const BenchMeasurement& ran) {
  const std::uint64_t bytes = larger_buffer_bytes(subject.calls);
  if (ran.algorithm != native && !bench.settings.all_ones && bytes <= bench.settings.interpret_up_to) {
    const auto schedule = schedule_of(work.call(), bench.ranks(), subject.in_place, ran.algorithm);
    if (interpretable(schedule)) return wrong_by_interpreter(bench, subject, work, seed, schedule);
  }
  DataPattern pattern(subject.calls, bench.rank(), seed, bench.settings.all_ones);
  for (const Call& c : work.calls()) pattern.fill(const_cast<void*>(c.input));
  work.run_once();
  std::uint64_t wrong = 0;
  for (const Call& c : work.calls()) wrong += pattern.wrong(c.output);
  return wrong;
}

}  // namespace

BenchContext::BenchContext(const BenchSettings& s, const launch::RankContext& context)
    : settings(s),
      device(ccl::device_of_rank(s.device, context.rank, local_rank(context))),
      simulated_(device->capabilities().has(device::Capability::simulated_time)) {
  ccl::Config config = ccl::config_from_environment();
  config.timeout = s.timeout;
  if (!s.transport.empty()) config.transport = s.transport;
  if (!s.provider.empty()) config.fabric.provider = s.provider;
  if (!context.transport.empty()) config.transport = context.transport;
  ccl::Config plain = config;
  plain.algorithm = plain.selections = "";
  if (!s.algorithm.empty()) config.algorithm = std::string(schedule::name(s.op.collective)) + "=" + s.algorithm;
  const auto store = [&](const char* name) { return std::make_shared<ccl::PrefixStore>(context.store, name); };
  control = Communicator::create(store("control"), context.rank, context.ranks, plain);
  work.push_back(Communicator::create(store("work"), context.rank, context.ranks, config, device));
  for (int i = 1; i < s.streams; ++i) work.push_back(work.front()->split(0, context.rank));
  if (s.streams > 1)
    for (auto& one : work) streams.push_back(one->device().stream());
  clock_us = cost_of_clock(*this);
}

double BenchContext::now_us() const {
  if (simulated_) return static_cast<double>(clock_of(*device).time) * 1e-6;
  return settings.cpu_time ? cpu_us() : wall_us();
}

void BenchContext::abort() {
  for (auto& one : work) one->abort();
  control->abort();
}

std::vector<double> BenchContext::merged(std::vector<double> mine, TimeMerge merge) {
  using kernels::Reduction;
  constexpr Reduction ops[] = {Reduction::sum, Reduction::avg, Reduction::min, Reduction::max};
  if (merge == TimeMerge::rank_0)
    control->broadcast(mine.data(), mine.data(), mine.size(), kernels::DType::f64, 0);
  else
    control->all_reduce(mine.data(), mine.data(), mine.size(), kernels::DType::f64,
                        {ops[static_cast<std::size_t>(merge)]});
  return mine;
}

std::uint64_t BenchContext::sum(std::uint64_t mine) {
  control->all_reduce(&mine, &mine, 1, kernels::DType::u64);
  return mine;
}

std::unique_ptr<BenchMeasurement> measure(BenchContext& bench, const BenchCase& subject) {
  auto result = std::make_unique<BenchMeasurement>();
  Work work(bench, subject);
  const bool points = work.call().operation.collective == schedule::Collective::send_recv;
  bool serves = true;
  try {
    result->algorithm = points ? "direct" : bench.work.front()->algorithm(work.call());
  } catch (const std::invalid_argument&) {
    if (!subject.in_place) throw;
    serves = false;
  }
  // It may be that only some ranks have no algorithm for the call in place, such as the root of a reduce, whose call
  // differs. So all ranks agree here: if one has none, all return null.
  if (subject.in_place && bench.sum(serves ? 0 : 1) != 0) return nullptr;
  const std::uint64_t bytes = larger_buffer_bytes(subject.calls);
  const bool back_to_back = bytes <= back_to_back_bytes;
  DataPattern pattern(subject.calls, bench.rank(), bench.settings.seed, bench.settings.all_ones);
  for (int i = 0; i < bench.settings.warm_ups; ++i) {
    work.touch(pattern);
    work.run();
  }
  const int iterations = iterations_for(bench, work, pattern, back_to_back);
  result->us = times(bench, work, pattern, iterations, back_to_back);
  if (const ccl::LastRun ran = bench.work.front()->last(); !points) {
    if (ran.native) result->algorithm = native;
    result->not_native = ran.not_native;
  }
  result->checked = bench.settings.check_passes != 0 && schedule::carries_data(work.call().operation.collective);
  for (int pass = 0; result->checked && pass < bench.settings.check_passes; ++pass)
    result->wrong +=
        bench.sum(check_pass(bench, subject, work, bench.settings.seed + static_cast<std::uint64_t>(pass), *result));
  return result;
}

double Statistics::percentile(double p) const {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(std::ceil(p * static_cast<double>(sorted.size()) / 100));
  return sorted[std::min(at == 0 ? 0 : at - 1, sorted.size() - 1)];
}

Statistics statistics_of(std::vector<double> values) {
  Statistics s;
  std::ranges::sort(values);
  s.sorted = std::move(values);
  if (s.sorted.empty()) return s;
  const auto n = static_cast<double>(s.sorted.size());
  for (const double v : s.sorted) s.average += v / n;
  for (const double v : s.sorted) s.deviation += (v - s.average) * (v - s.average) / n;
  s.deviation = std::sqrt(s.deviation);
  s.least = s.sorted.front();
  s.most = s.sorted.back();
  return s;
}

}  // namespace trellis::measure
