#include "ccl/plan/schedule_message_hash.h"

#include <span>
#include <stdexcept>

#include "ccl/plan/contributing_ranks.h"
#include "ccl/plan/hash_combine.h"
#include "schedule/proof/reference_interpreter.h"

namespace trellis::ccl {
namespace {

using schedule::Rank;
using schedule::StepId;
using schedule::StepWiring;

// The sum of one chunk of the inputs of several ranks.
struct Value {
  std::uint64_t of = 0;  // a hash of the set of these ranks
  std::int64_t chunk = 0;
};

std::uint64_t word(std::int64_t number) { return static_cast<std::uint64_t>(number); }

}  // namespace

// The messages' hashes are added up, because their order among all ranks says nothing; `tag` has their order between
// two ranks.
std::uint64_t message_hash(const schedule::Schedule& s) {
  StepWiring wiring;
  if (const auto fault = StepWiring::connect(s, wiring)) throw std::invalid_argument(fault->text);
  auto memory = schedule::memory_of<Value>(s, [](Rank r, std::int64_t chunk) { return Value{origin_of(r), chunk}; });
  const schedule::ScheduleMemoryView<Value> view(s, wiring, memory);
  std::uint64_t hash = word(s.task.pieces);
  const auto sum = [](std::span<const Value* const> sources) {
    Value v{0, sources.front()->chunk};
    for (const Value* source : sources) v.of += source->of;
    return v;
  };
  schedule::interpret(s, wiring, memory, sum, [&](StepId send, StepId receive) {
    if (receive == StepWiring::none) return;
    const schedule::Step& from = view.step(send);
    const schedule::Step& to = view.step(receive);
    std::uint64_t message = hash_combine(word(wiring.rank(send)), word(wiring.rank(receive)));
    message = hash_combine(hash_combine(message, to.channel), word(to.end.tag));
    for (std::int32_t i = 0; i < from.from.count; ++i) {
      const Value& v = view.cell(wiring.rank(send), from.from, i);
      message = hash_combine(hash_combine(message, v.of), word(v.chunk));
    }
    hash += message;
  });
  return hash;
}

}  // namespace trellis::ccl
