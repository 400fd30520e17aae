// Measures how fast NeuronCore programs are built, timed and computed; computing is compared with the host's own
// product.
#include <benchmark/benchmark.h>

#include <chrono>
#include <vector>

#include "kernels/layers/matmul.h"
#include "sim/core/programs/shipped_programs.h"
#include "sim/core/run/run.h"

namespace {

using namespace trellis::sim;
using namespace trellis::sim::core;

Arguments matmul_of(std::int64_t size, const char* stage) {
  Arguments a(shipped_named("matmul").parameters);
  for (const char* name : {"M", "K", "N"}) a.set(name, std::to_string(size));
  a.set("stage", stage);
  return a;
}

void built(benchmark::State& state) {
  const ChipSpec chip = chip_named("trn2");
  const Arguments a = matmul_of(state.range(0), "fully_optimised");
  for (auto _ : state) benchmark::DoNotOptimize(shipped_named("matmul").build(a, chip));
}
BENCHMARK(built)->Name("matmul/build")->Arg(4096)->Unit(benchmark::kMillisecond);

void timed(benchmark::State& state, const char* stage) {
  const ChipSpec chip = chip_named("trn2");
  const NeuronCoreProgram p = shipped_named("matmul").build(matmul_of(state.range(0), stage), chip);
  double done = 0;
  for (auto _ : state) {
    const RunTotals t = run(p, chip);
    done += static_cast<double>(t.instructions + t.descriptors);
  }
  state.counters["per_s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(timed, fully_optimised, "fully_optimised")->Arg(4096)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(timed, tiled, "tiled")->Arg(4096)->Unit(benchmark::kMillisecond);

// Instructions of one engine only; none moves bytes.
void small_instructions(benchmark::State& state) {
  const ChipSpec chip = chip_named("trn2");
  ProgramBuilder b("small", chip);
  const TensorOperand x = b.tile("x", DType::f32, 128, 64), y = b.tile("y", DType::f32, 128, 64);
  const Attribute one{Key::value, 1};
  for (int i = 0; i < 100'000; ++i)
    b.add("memset", i % 2 == 0 ? Engine::vector : Engine::gpsimd, {i % 2 == 0 ? x : y}, {}, {one});
  const NeuronCoreProgram p = b.finish();
  double done = 0;
  for (auto _ : state) done += static_cast<double>(run(p, chip).instructions);
  state.counters["per_s"] = benchmark::Counter(done, benchmark::Counter::kIsRate);
}
BENCHMARK(small_instructions)->Unit(benchmark::kMillisecond);

// Alternates with the host's product, so that changes of the machine's speed affect both.
void computed(benchmark::State& state) {
  const ChipSpec chip = chip_named("trn2");
  const std::int64_t size = state.range(0);
  const Arguments a = matmul_of(size, "fully_optimised");
  const NeuronCoreProgram p = shipped_named("matmul").build(a, chip);
  CoreMemory memory(p, chip);
  shipped_named("matmul").fill(a, memory, 1);
  const auto n = static_cast<std::size_t>(size);
  std::vector<std::uint16_t> host(n * n);
  double simulated = 0, plain = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(run(p, chip, {.memory = &memory}).time);
    const auto middle = std::chrono::steady_clock::now();
    trellis::kernels::matmul({n, n, n}, DType::bf16, {memory.hbm("a").data(), n, true}, {memory.hbm("b").data(), n},
                             DType::bf16, host.data(), n);
    const auto end = std::chrono::steady_clock::now();
    simulated += std::chrono::duration<double>(middle - start).count();
    plain += std::chrono::duration<double>(end - middle).count();
  }
  state.counters["times_the_host"] = simulated / plain;
}
BENCHMARK(computed)->Name("matmul/compute")->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
