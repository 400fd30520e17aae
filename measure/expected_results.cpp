#include "measure/expected_results.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>

#include "ccl/plan/call_check.h"
#include "ccl/plan/chunk_layout.h"
#include "ccl/plan/contributing_ranks.h"
#include "ccl/plan/planner.h"
#include "ccl/plan/schedule_file.h"
#include "kernels/reduce/divide.h"
#include "kernels/types/convert.h"
#include "kernels/types/random.h"
#include "schedule/algorithms/algorithm.h"
#include "schedule/proof/reference_interpreter.h"
#include "text/refuse.h"

namespace trellis::measure {
namespace {

using Bytes = std::vector<std::byte>;
using ccl::Call;
using ccl::Rank;
using schedule::Buffer;
using schedule::Schedule;
using schedule::Slice;
using schedule::StepId;

bool scales(const Call& c) {
  return c.op.kind == kernels::Reduction::scaled_sum && schedule::reduces(c.operation.collective);
}
bool averages(const Call& c) {
  return c.op.kind == kernels::Reduction::avg && schedule::reduces(c.operation.collective);
}

// A chunk's value as a formula: a rank's contribution, or a sum of contributions. Null: the previous content of the
// memory, which a schedule may move as long as no output depends on it.
struct Formula {
  std::set<Rank> of;        // ranks whose contributions are in it
  std::int64_t chunk = 0;   // of their inputs
  std::size_t first = 0;    // element of their inputs
  Bytes contribution = {};  // when it is a single contribution
  std::vector<std::shared_ptr<const Formula>> sum = {};
};
using Value = std::shared_ptr<const Formula>;

Value sum_of(std::span<const Value* const> sources) {
  if (std::ranges::any_of(sources, [](const Value* v) { return *v == nullptr; })) return nullptr;
  Formula f{.chunk = (*sources.front())->chunk, .first = (*sources.front())->first};
  for (const Value* v : sources) f.sum.push_back(*v), f.of.insert((*v)->of.begin(), (*v)->of.end());
  return std::make_shared<const Formula>(std::move(f));
}

// Final memory of all ranks, and every value that was ever sent.
struct Run {
  schedule::Memory<Value> memory;
  std::set<std::pair<std::set<Rank>, std::int64_t>> sent = {};
};

void follow(const Schedule& s, Run& run) {
  schedule::StepWiring wiring;
  if (const auto fault = schedule::StepWiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
  const schedule::ScheduleMemoryView<Value> view(s, wiring, run.memory);
  const auto note_sent = [&](StepId send, StepId receive) {
    if (receive == schedule::StepWiring::none) return;
    const Slice& from = view.step(send).from;
    for (std::int32_t i = 0; i < from.count; ++i)
      if (const Value& v = view.cell(wiring.rank(send), from, i); v != nullptr) run.sent.emplace(v->of, v->chunk);
  };
  schedule::interpret(s, wiring, run.memory, sum_of, note_sent);
}

// Evaluates a formula to bytes.
struct Evaluation {
  const Call& call;
  const ccl::Config& config;
  std::uint64_t operation;
  const Run& run;
  bool narrows;  // f32 is sent as bf16

  kernels::Random random(const std::set<Rank>& of, std::size_t first) const {
    kernels::Random bits{.seed = config.seed, .step = operation, .first = first};
    for (Rank r : of) bits.tensor += ccl::origin_of(r);
    return bits;
  }

  // Computes a formula's bytes. With `narrows`, a value that any rank sends is rounded to bf16, on all ranks.
  Bytes operator()(const Formula& f) const {
    Bytes value = f.sum.empty() ? f.contribution : added(f);
    if (!narrows || !run.sent.contains({f.of, f.chunk})) return value;
    const kernels::RandomKey key = kernels::random_key(random(f.of, 0));
    for (std::size_t i = 0; i < value.size() / sizeof(float); ++i) {
      float x = 0;
      std::memcpy(&x, value.data() + i * sizeof x, sizeof x);
      std::uint16_t code = kernels::bf16_nearest(x);
      if (config.rounding == kernels::Rounding::truncate) code = kernels::bf16_truncated(x);
      if (config.rounding == kernels::Rounding::stochastic)
        code = kernels::bf16_stochastic(x, kernels::random16(key, f.first + i));
      x = kernels::widen_bf16(code);
      std::memcpy(value.data() + i * sizeof x, &x, sizeof x);
    }
    return value;
  }

  Bytes added(const Formula& f) const {
    std::vector<Bytes> values;
    for (const Value& v : f.sum) values.push_back((*this)(*v));
    std::vector<const void*> sources;
    for (const Bytes& v : values) sources.push_back(v.data());
    Bytes out(values.front().size());
    kernels::reduce(scales(call) || averages(call) ? kernels::Reduction::sum : call.op.kind, call.type, sources,
                    out.data(), out.size() / kernels::size_of(call.type),
                    {.rounding = config.rounding, .random = random(f.of, f.first)});
    return out;
  }
};

// A rank's contribution as it enters the sum: its input, scaled when the operator says so.
Bytes contribution_of(const Call& call, Rank rank, Rank ranks, std::uint64_t seed, const ccl::Config& config,
                      std::uint64_t operation) {
  Bytes mine = random_input(call, rank, ranks, seed);
  const void* const sources[] = {mine.data()};
  if (scales(call))
    kernels::reduce(kernels::Reduction::scaled_sum, call.type, sources, mine.data(),
                    mine.size() / kernels::size_of(call.type),
                    {.rounding = config.rounding,
                     .random = {.seed = config.seed, .step = operation, .tensor = ccl::origin_of(rank)},
                     .factor = call.op.factor});
  return mine;
}

bool narrows(const Call& call, const ccl::Config& config) {
  using enum kernels::Reduction;
  const bool adds = call.op.kind == sum || call.op.kind == avg || call.op.kind == scaled_sum;
  return config.wire == kernels::DType::bf16 && call.type == kernels::DType::f32 &&
         (adds || !schedule::reduces(call.operation.collective));
}

}  // namespace

Schedule schedule_of(const Call& call, Rank ranks, bool in_place, const std::string& text) {
  const ccl::AlgorithmConfig choice = schedule::algorithm_config_named(text);
  const bool shared = in_place && !scales(call);
  if (ccl::is_file(choice)) return ccl::schedule_from_file(choice, shared);
  return schedule::make(choice.algorithm,
                        schedule::request_by(choice, {.operation = ccl::operation_of(call, shared), .dims = {ranks}}));
}

bool interpretable(const Schedule& s) {
  constexpr std::int64_t most_cells = std::int64_t{1} << 20;
  std::int64_t all = 0;
  for (Rank r = 0; r < s.ranks(); ++r)
    all += schedule::cells(s.task, r).scratch + s.programs[static_cast<std::size_t>(r)].scratch;
  return all <= most_cells;
}

Bytes random_input(const Call& call, Rank rank, Rank ranks, std::uint64_t seed) {
  Bytes bytes(ccl::extents_of(call, rank, ranks).input);
  const std::size_t size = kernels::size_of(call.type);
  const kernels::RandomKey key = kernels::random_key({.seed = seed, .tensor = static_cast<std::uint64_t>(rank)});
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    const auto word = static_cast<std::int32_t>(kernels::random32(key, i) % 2001) - 1000;
    kernels::store(call.type, bytes.data() + i * size, is_float(call.type) ? word / 64.0 : word % 100);
  }
  return bytes;
}

std::vector<Bytes> true_outputs(const Schedule& s, std::span<const Call> calls, std::uint64_t seed,
                                const ccl::Config& config, std::uint64_t operation) {
  const Call& call = calls.front();
  const auto ranks = static_cast<Rank>(calls.size());
  const std::size_t size = kernels::size_of(call.type);
  std::vector<ccl::ChunkLayout> layouts;
  std::vector<ccl::BlockCounts> counts;
  std::vector<Bytes> inputs;
  for (Rank r = 0; r < ranks; ++r) counts.push_back(ccl::counts_of(calls[static_cast<std::size_t>(r)], r, ranks));
  for (Rank r = 0; r < ranks; ++r) {
    const auto rank = static_cast<std::size_t>(r);
    layouts.emplace_back(s.task, s.programs[rank], r, counts[rank], 64 / size);
    inputs.push_back(contribution_of(calls[rank], r, ranks, seed, config, operation));
  }
  Run run{schedule::memory_of<Value>(s, [&](Rank r, std::int64_t chunk) {
    const auto at = layouts[static_cast<std::size_t>(r)].of({static_cast<std::int32_t>(chunk), 1, Buffer::input});
    const auto begin = inputs[static_cast<std::size_t>(r)].begin() + static_cast<std::ptrdiff_t>(at.first * size);
    return std::make_shared<const Formula>(
        Formula{{r}, chunk, at.first, Bytes(begin, begin + static_cast<std::ptrdiff_t>(at.elements * size))});
  })};
  follow(s, run);
  const Evaluation evaluate{call, config, operation, run, narrows(call, config)};
  std::vector<Bytes> outputs;
  for (Rank r = 0; r < ranks; ++r) {
    Bytes& out = outputs.emplace_back();
    const schedule::Cells cells = schedule::cells(s.task, r);
    for (std::int64_t i = 0; i < schedule::output_chunks(s.task, r); ++i) {
      const Value& value =
          run.memory[static_cast<std::size_t>(r)][static_cast<std::size_t>(cells.at(Buffer::output, i))];
      if (value == nullptr) text::refuse("the schedule is wrong: rank {} out[{}] holds nothing", r, i);
      const Bytes chunk = evaluate(*value);
      out.insert(out.end(), chunk.begin(), chunk.end());
    }
    if (averages(call)) kernels::divide(call.type, out.data(), out.size() / size, static_cast<std::uint32_t>(ranks));
  }
  return outputs;
}

}  // namespace trellis::measure
