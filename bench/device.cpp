// Measures copies against memcpy, the cost of a stream's operation, and what a simulated device adds to sim/core.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>

#include "device/device.h"
#include "device/neff/neff.h"
#include "device/program.h"
#include "sim/core/program/assembler.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"

namespace {

using namespace trellis;
using Clock = std::chrono::steady_clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

// Alternates with memcpy, so that changes of the machine's speed affect both. of_memcpy: memcpy's time over the copy's.
void copy(benchmark::State& state) {
  const auto device = device::open("host");
  const auto bytes = static_cast<std::size_t>(state.range(0));
  void *const a = device->allocate(bytes), *const b = device->allocate(bytes);
  device->fill(a, std::byte{1}, bytes);
  device->fill(b, std::byte{2}, bytes);
  Clock::duration ours{}, theirs{};
  const int times = static_cast<int>(std::max<std::size_t>(1, (1 << 20) / bytes));
  const auto timed = [&](auto one) {
    const auto begin = Clock::now();
    for (int i = 0; i < times; ++i) one();
    return Clock::now() - begin;
  };
  const auto device_copy = [&] { device->copy(b, a, bytes); };
  const auto plain_copy = [&] {
    std::memcpy(b, a, bytes);
    benchmark::ClobberMemory();
  };
  bool first = false;  // they take turns to be first: the second finds the caches warm
  for (auto _ : state) {
    first = !first;
    if (!first) theirs += timed(plain_copy);
    const auto took = timed(device_copy);
    if (first) theirs += timed(plain_copy);
    ours += took;
    state.SetIterationTime(seconds(took));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes) * times);
  state.counters["of_memcpy"] = seconds(theirs) / seconds(ours);
}
BENCHMARK(copy)->Name("copy/cached")->Arg(4 << 10)->Arg(64 << 10)->Arg(512 << 10)->UseManualTime();
BENCHMARK(copy)->Name("copy/memory")->Arg(64 << 20)->Arg(256 << 20)->UseManualTime();

// Submits a thousand operations that do nothing, and waits for them.
void launch(benchmark::State& state, const char* name) {
  const auto device = device::open(name);
  const auto stream = device->stream();
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) stream->submit([] {});
    stream->synchronize();
  }
  state.counters["per_operation"] =
      benchmark::Counter(1000, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(launch, host, "host")->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(launch, simulated, "sim:trn2.48xlarge")->UseRealTime()->Unit(benchmark::kMicrosecond);

// A matrix product on a simulated device, alternating with the same product by sim/core without a device.
void program(benchmark::State& state) {
  const sim::ChipSpec chip = sim::chip_named("trn2");
  sim::core::Arguments a(sim::core::shipped_named("matmul").parameters);
  for (const char* name : {"M", "K", "N"}) a.set(name, std::to_string(state.range(0)));
  const sim::core::NeuronCoreProgram p = sim::core::shipped_named("matmul").build(a, chip);
  const auto device = device::open("sim:trn2.48xlarge");
  const auto loaded = device->load(device::write_neff("matmul", sim::core::print(p), 1));
  std::vector<device::Binding> bound;
  for (const device::ProgramOperand& o : loaded->operands())
    bound.push_back({o.name, device->allocate(o.bytes), o.bytes});
  Clock::duration ours{}, theirs{};
  for (auto _ : state) {
    const auto begin = Clock::now();
    loaded->run(bound);
    const auto middle = Clock::now();
    {
      sim::core::CoreMemory memory(p, chip);
      for (const device::Binding& b : bound)
        if (b.name != "c") std::memcpy(memory.hbm(b.name).data(), b.data, b.bytes);
      benchmark::DoNotOptimize(sim::core::run(p, chip, {.memory = &memory}));
    }
    theirs += Clock::now() - middle;
    ours += middle - begin;
    state.SetIterationTime(seconds(middle - begin));
  }
  state.counters["of_core_alone"] = seconds(ours) / seconds(theirs);
}
BENCHMARK(program)->Name("program/matmul")->Arg(512)->Arg(1024)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
