#include "ccl/plan/contributing_ranks.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "schedule/proof/reference_interpreter.h"

namespace trellis::ccl {
namespace {

using schedule::Buffer;
using schedule::Op;
using schedule::Rank;
using schedule::Slice;
using schedule::Step;
using schedule::StepId;
using schedule::StepWiring;

struct Value {
  std::uint64_t of = 0;
  std::int32_t chunk = 0;  // its number in the input; sums add up chunks of the same number
  bool fresh = false;      // not rounded yet: the caller's value, or just added up
  auto key() const { return std::tuple(of, chunk); }
};

class Walk {
 public:
  Walk(const schedule::Schedule& s, Rank rank) : schedule_(s), rank_(rank) {
    if (const auto fault = StepWiring::connect(s, wiring_)) throw std::invalid_argument(fault->text);
    seen_.resize(s.programs[static_cast<std::size_t>(rank)].steps.size());
  }

  ProgramContributors done() {
    const auto sum = [](std::span<const Value* const> sources) {
      Value v{0, sources.front()->chunk};
      for (const Value* source : sources) v.of += source->of;
      return v;
    };
    schedule::interpret(
        schedule_, wiring_, memory_, sum, [&](StepId id, StepId receive) { before(id, receive); },
        [&](StepId id, StepId receive) { after(receive == StepWiring::none ? id : receive); });
    std::ranges::sort(sent_);
    ProgramContributors out;
    for (const Seen& seen : seen_) {
      StepContributors& step = out.steps.emplace_back();
      step.from = origins(seen.from);
      step.to = origins(seen.to);
      for (const auto& more : seen.further) step.further.push_back(origins(more));
    }
    std::vector<Value> output;
    for (std::int64_t i = 0; i < schedule::output_chunks(schedule_.task, rank_); ++i)
      output.push_back(view_.cell(rank_, {static_cast<std::int32_t>(i), 1, Buffer::output}, 0));
    out.output = origins(output);
    return out;
  }

 private:
  // The values that a step of this rank has read and, if it adds, made.
  struct Seen {
    std::vector<Value> from, to;
    std::vector<std::vector<Value>> further;
  };

  std::vector<Value> values(Rank r, const Slice& x) const {
    std::vector<Value> all;
    for (std::int32_t i = 0; i < x.count; ++i) all.push_back(view_.cell(r, x, i));
    return all;
  }

  Seen* seen(StepId id) {
    return wiring_.rank(id) == rank_ ? &seen_[static_cast<std::size_t>(wiring_.step(id))] : nullptr;
  }

  void before(StepId id, StepId receive) {
    const std::vector<Value> from = values(wiring_.rank(id), view_.step(id).from);
    if (Seen* const step = seen(id)) {
      step->from = from;
      if (view_.step(id).op == Op::reduce)
        for (const Slice& more : view_.further(id)) step->further.push_back(values(rank_, more));
    }
    if (receive == StepWiring::none) return;
    for (const Value& v : from) sent_.push_back(v.key());
    if (Seen* const step = seen(receive); step != nullptr && view_.step(receive).op == Op::recv_reduce)
      step->from = values(rank_, view_.step(receive).from);
  }

  // What is stored is rounded, so a value that a rank keeps no longer needs rounding.
  void after(StepId id) {
    const Step& step = view_.step(id);
    const Rank r = wiring_.rank(id);
    if (Seen* const mine = seen(id); mine != nullptr && (step.op == Op::reduce || step.op == Op::recv_reduce)) {
      mine->to = values(r, step.to);
      for (Value& v : mine->to) v.fresh = true;
    }
    const auto stored = [&](const Slice& x) {
      for (std::int32_t i = 0; i < x.count; ++i) view_.cell(r, x, i).fresh = false;
    };
    stored(step.to);
    if (step.op == Op::copy)
      for (const Slice& also : view_.further(id)) stored(also);
  }

  std::vector<ChunkContributors> origins(const std::vector<Value>& values) const {
    std::vector<ChunkContributors> all;
    for (const Value& v : values)
      all.push_back(v.fresh ? ChunkContributors{v.of, v.chunk, std::ranges::binary_search(sent_, v.key())}
                            : ChunkContributors{});
    return all;
  }

  const schedule::Schedule& schedule_;
  const Rank rank_;
  StepWiring wiring_;
  schedule::Memory<Value> memory_ = schedule::memory_of<Value>(schedule_, [](Rank r, std::int64_t chunk) {
    return Value{origin_of(r), static_cast<std::int32_t>(chunk), true};
  });
  schedule::ScheduleMemoryView<Value> view_{schedule_, wiring_, memory_};
  std::vector<Seen> seen_;
  std::vector<std::tuple<std::uint64_t, std::int32_t>> sent_;
};

}  // namespace

// Values are spread over 64 bits, so that sums of them differ for different sets of ranks.
std::uint64_t origin_of(Rank rank) {
  std::uint64_t h = (static_cast<std::uint64_t>(rank) + 1) * 0x9E37'79B9'7F4A'7C15;
  h = (h ^ h >> 30) * 0xBF58'476D'1CE4'E5B9;
  h = (h ^ h >> 27) * 0x94D0'49BB'1331'11EB;
  return h ^ h >> 31;
}

ProgramContributors origins_of(const schedule::Schedule& s, Rank rank) { return Walk(s, rank).done(); }

}  // namespace trellis::ccl
