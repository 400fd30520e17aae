#include "tests/ccl/ranks/truth.h"

#include <cstring>

#include "ccl/check.h"
#include "ccl/layout.h"
#include "ccl/planner.h"
#include "kernels/convert.h"
#include "kernels/divide.h"
#include "kernels/random.h"
#include "schedule/algorithm.h"
#include "schedule/interpret.h"

namespace trellis::ccl {
namespace {

using Bytes = std::vector<std::byte>;
using schedule::Buffer;

}  // namespace

Bytes input_of(const Call& call, Rank rank, Rank ranks, std::uint64_t seed) {
  Bytes bytes(extents_of(call, rank, ranks).input);
  const std::size_t size = kernels::size_of(call.type);
  const kernels::RandomKey key = kernels::random_key({.seed = seed, .tensor = static_cast<std::uint64_t>(rank)});
  for (std::size_t i = 0; i < bytes.size() / size; ++i) {
    const auto word = static_cast<std::int32_t>(kernels::random32(key, i) % 2001) - 1000;
    kernels::store(call.type, bytes.data() + i * size, is_float(call.type) ? word / 64.0 : word % 100);
  }
  return bytes;
}

std::vector<Bytes> outputs_of(const Call& call, Rank ranks, bool in_place, const std::string& text, std::uint64_t seed,
                              const Config& config, std::uint64_t operation) {
  const Choice choice = choice_named(text);
  const schedule::Schedule s = schedule::make(choice.algorithm, {.collective = call.collective,
                                                                 .dims = {ranks},
                                                                 .root = call.root,
                                                                 .peer = call.peer,
                                                                 .pairs = call.pairs,
                                                                 .in_place = in_place,
                                                                 .channels = choice.channels,
                                                                 .segments = choice.segments});
  const std::size_t size = kernels::size_of(call.type);
  const bool scales = call.op.kind == kernels::Reduction::scaled_sum;
  std::vector<Layout> layouts;
  std::vector<Counts> counts;
  for (Rank r = 0; r < ranks; ++r) counts.push_back(counts_of(call, r, ranks));
  for (Rank r = 0; r < ranks; ++r)
    layouts.emplace_back(s.task, s.programs[static_cast<std::size_t>(r)], r, counts[static_cast<std::size_t>(r)],
                         64 / size);
  std::vector<Bytes> inputs;
  for (Rank r = 0; r < ranks; ++r) {
    Bytes mine = input_of(call, r, ranks, seed);
    const void* const sources[] = {mine.data()};
    if (scales && schedule::reduces(call.collective))
      kernels::reduce(kernels::Reduction::scaled_sum, call.type, sources, mine.data(), mine.size() / size,
                      {.factor = call.op.factor});
    inputs.push_back(std::move(mine));
  }
  auto memory = schedule::memory_of<Bytes>(s, [&](Rank r, std::int64_t chunk) {
    const auto run = layouts[static_cast<std::size_t>(r)].of({static_cast<std::int32_t>(chunk), 1, Buffer::input});
    const Bytes& all = inputs[static_cast<std::size_t>(r)];
    return Bytes(all.begin() + static_cast<std::ptrdiff_t>(run.first * size),
                 all.begin() + static_cast<std::ptrdiff_t>((run.first + run.elements) * size));
  });
  const bool sums = scales || call.op.kind == kernels::Reduction::avg;
  schedule::interpret(s, memory, [&](std::span<const Bytes* const> values) {
    Bytes out(values.front()->size());
    std::vector<const void*> sources;
    for (const Bytes* v : values) sources.push_back(v->data());
    kernels::reduce(sums ? kernels::Reduction::sum : call.op.kind, call.type, sources, out.data(), out.size() / size,
                    {.rounding = config.rounding, .random = {.seed = config.seed, .step = operation}});
    return out;
  });
  std::vector<Bytes> outputs(static_cast<std::size_t>(ranks));
  for (Rank r = 0; r < ranks; ++r) {
    Bytes& out = outputs[static_cast<std::size_t>(r)];
    const schedule::Cells cells = schedule::cells(s.task, r);
    for (std::int64_t i = 0; i < schedule::output_chunks(s.task, r); ++i) {
      const Bytes& chunk = memory[static_cast<std::size_t>(r)][static_cast<std::size_t>(cells.at(Buffer::output, i))];
      out.insert(out.end(), chunk.begin(), chunk.end());
    }
    if (call.op.kind == kernels::Reduction::avg && schedule::reduces(call.collective))
      kernels::divide(call.type, out.data(), out.size() / size, static_cast<std::uint32_t>(ranks));
  }
  return outputs;
}

}  // namespace trellis::ccl
