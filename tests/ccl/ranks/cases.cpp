#include "tests/ccl/ranks/cases.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <numeric>

#include "ccl/plan/call_check.h"
#include "measure/expected_results.h"
#include "schedule/algorithms/algorithm.h"
#include "tests/ccl/ranks/run.h"

namespace trellis::ccl {
namespace {

using Bytes = std::vector<std::byte>;

std::string text(const Case& c) {
  return fmt::format("{} by {} of {} {} {}{}", schedule::name(c.call.operation.collective), c.algorithm, c.call.count,
                     name(c.call.type), name(c.call.op.kind), c.in_place ? " in place" : "");
}

bool same_everywhere(Collective c) {
  using enum Collective;
  return c == all_reduce || c == all_gather || c == all_gather_v || c == broadcast;
}

void give_counts(Call& call, Rank ranks) {
  using enum Collective;
  const std::size_t count = call.count;
  if (call.operation.collective == all_gather_v || call.operation.collective == reduce_scatter_v)
    for (Rank q = 0; q < ranks; ++q) call.counts.push_back(count + static_cast<std::size_t>(q) % 3 * 7);
  if (call.operation.collective == all_to_all_v)
    call.counts = call.arriving_counts = std::vector<std::size_t>(static_cast<std::size_t>(ranks), count);
  if (call.operation.collective == barrier) call.count = 0;
}

}  // namespace

std::vector<Case> cases_for(Rank ranks, std::span<const std::size_t> counts, const Kind& kind) {
  using enum Collective;
  std::vector<Case> cases;
  for (const auto& [name, algorithm] : schedule::algorithms())
    for (Collective collective : algorithm.serves)
      for (bool in_place : {false, true})
        for (std::size_t count : counts) {
          Case c;
          c.algorithm = name;
          c.in_place = in_place;
          c.call.operation.collective = collective;
          c.call.count = count;
          if (collective == send_recv || collective == permute || (collective == all_to_all_v && in_place)) continue;
          const schedule::Request r{.operation = {.collective = collective, .in_place = in_place}, .dims = {ranks}};
          if (!schedule::refusal(algorithm, r).empty()) continue;
          if (schedule::task_of(algorithm, r).even)
            c.call.count = count * static_cast<std::size_t>(schedule::task_of(algorithm, r).pieces);
          kind(c.call, cases.size());
          give_counts(c.call, ranks);
          cases.push_back(c);
        }
  return cases;
}

// Uses one buffer for input and output where the call is in place.
void run_case(Communicator& comm, const Case& c, std::uint64_t seed) {
  Call call = c.call;
  const BufferBytes e = extents_of(call, comm.rank(), comm.ranks());
  const Bytes input = measure::random_input(call, comm.rank(), comm.ranks(), seed);
  Bytes memory(e.input + e.output, std::byte{0x5A});
  std::byte* in = memory.data();
  std::byte* out = memory.data() + e.input;
  if (c.in_place && e.input != 0 && e.output != 0) {
    std::size_t own = std::min(e.input, e.output) * static_cast<std::size_t>(comm.rank());
    if (schedule::uneven(call.operation.collective))
      own = kernels::size_of(call.type) *
            std::accumulate(call.counts.begin(), call.counts.begin() + comm.rank(), std::size_t{0});
    out = in = memory.data();
    if (e.input < e.output) in += own;
    if (e.output < e.input) out += own;
  }
  if (e.input != 0) std::memcpy(in, input.data(), e.input);
  call.input = in;
  call.output = out;
  const auto before = comm.operations();
  comm.run(call);
  const std::vector<Call> calls(static_cast<std::size_t>(comm.ranks()), c.call);
  const auto outputs = measure::true_outputs(measure::schedule_of(c.call, comm.ranks(), c.in_place, c.algorithm), calls,
                                             seed, comm.config(), before + 1);
  const Bytes& wanted = outputs[static_cast<std::size_t>(comm.rank())];
  if (wanted.size() != e.output || (e.output != 0 && std::memcmp(wanted.data(), out, e.output) != 0))
    throw std::runtime_error(text(c) + ": wrong");
  if (!c.in_place && e.input != 0 && std::memcmp(in, input.data(), e.input) != 0)
    throw std::runtime_error(text(c) + ": the input was changed");
  if (same_everywhere(call.operation.collective) && wanted != outputs.front())
    throw std::runtime_error(text(c) + ": other bits than rank 0 has");
}

std::string run_cases(std::string_view transport, Rank ranks, std::span<const std::size_t> counts, const Kind& kind,
                      const Config& config) {
  std::map<std::string, std::vector<Case>> by_algorithm;
  for (const Case& c : cases_for(ranks, counts, kind)) by_algorithm[c.algorithm].push_back(c);
  std::string wrong;
  for (const auto& [algorithm, cases] : by_algorithm) {
    Config own = config;
    own.timeout = std::chrono::seconds(60);
    own.algorithm = algorithm;
    wrong += run_ranks(
        transport, ranks,
        [&](Communicator& comm) {
          for (std::size_t i = 0; i < cases.size(); ++i) run_case(comm, cases[i], i);
        },
        own);
  }
  return wrong;
}

}  // namespace trellis::ccl
