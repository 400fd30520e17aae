#include "ccl/plan/origins.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>

#include "schedule/proof/interpret.h"

namespace trellis::ccl {
namespace {

using schedule::Buffer;
using schedule::Op;
using schedule::Rank;
using schedule::Slice;
using schedule::Step;
using schedule::StepId;
using schedule::Wiring;

struct Value {
  std::uint64_t of = 0;
  std::int32_t chunk = 0;  // of the input; sums join chunks of one number
  bool fresh = false;      // not rounded yet: the caller's value, or just added up
  auto key() const { return std::tuple(of, chunk); }
};

class Walk {
 public:
  Walk(const schedule::Schedule& s, Rank rank) : schedule_(s), rank_(rank) {
    if (const auto fault = Wiring::connect(s, wiring_)) throw std::invalid_argument(fault->text);
    for (Rank r = 0; r < s.ranks(); ++r) cells_.push_back(schedule::cells(s.task, r));
    memory_ = schedule::memory_of<Value>(s, [](Rank r, std::int64_t chunk) {
      return Value{origin_of(r), static_cast<std::int32_t>(chunk), true};
    });
    seen_.resize(s.programs[static_cast<std::size_t>(rank)].steps.size());
  }

  Origins done() {
    const bool whole =
        schedule::Dataflow(schedule_, wiring_)
            .run([&](StepId id) { local(id); }, [&](StepId send, StepId receive) { transfer(send, receive); });
    if (!whole) throw std::invalid_argument("some step of the schedule can never start");
    std::ranges::sort(sent_);
    Origins out;
    for (const Seen& seen : seen_) {
      StepOrigins& step = out.steps.emplace_back();
      step.from = origins(seen.from);
      step.to = origins(seen.to);
      for (const auto& more : seen.further) step.further.push_back(origins(more));
    }
    std::vector<Value> output;
    for (std::int64_t i = 0; i < schedule::output_chunks(schedule_.task, rank_); ++i)
      output.push_back(cell(rank_, {static_cast<std::int32_t>(i), 1, Buffer::output}, 0));
    out.output = origins(output);
    return out;
  }

 private:
  // By a step of this rank.
  struct Seen {
    std::vector<Value> from, to;
    std::vector<std::vector<Value>> further;
  };

  Value& cell(Rank r, const Slice& x, std::int32_t i) {
    const auto rank = static_cast<std::size_t>(r);
    return memory_[rank][static_cast<std::size_t>(cells_[rank].at(x.buffer, std::int64_t{x.first} + i))];
  }

  std::vector<Value> values(Rank r, const Slice& x) {
    std::vector<Value> all;
    for (std::int32_t i = 0; i < x.count; ++i) all.push_back(cell(r, x, i));
    return all;
  }

  void put(Rank r, const Slice& to, const std::vector<Value>& values) {
    for (std::int32_t i = 0; i < to.count; ++i) {
      cell(r, to, i) = values[static_cast<std::size_t>(i)];
      cell(r, to, i).fresh = false;
    }
  }

  static void add(std::vector<Value>& sum, const std::vector<Value>& more) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i].of += more[i].of;
  }

  void made(Rank r, StepId id, std::vector<Value> sum) {
    for (Value& v : sum) v.fresh = true;
    if (r == rank_) seen_[static_cast<std::size_t>(wiring_.step(id))].to = std::move(sum);
  }

  void local(StepId id) {
    const Rank r = wiring_.rank(id);
    const schedule::Program& program = schedule_.programs[static_cast<std::size_t>(r)];
    const Step& step = program.steps[static_cast<std::size_t>(wiring_.step(id))];
    Seen seen;
    seen.from = values(r, step.from);
    std::vector<Value> result = seen.from;
    if (step.op == Op::reduce)
      for (const Slice& more : program.further(step)) add(result, seen.further.emplace_back(values(r, more)));
    put(r, step.to, result);
    if (step.op == Op::copy)
      for (const Slice& also : program.further(step)) put(r, also, result);
    if (r == rank_) seen_[static_cast<std::size_t>(wiring_.step(id))] = std::move(seen);
    if (step.op == Op::reduce) made(r, id, std::move(result));
  }

  void transfer(StepId send, StepId receive) {
    const Rank a = wiring_.rank(send), b = wiring_.rank(receive);
    const Step& from =
        schedule_.programs[static_cast<std::size_t>(a)].steps[static_cast<std::size_t>(wiring_.step(send))];
    const Step& to =
        schedule_.programs[static_cast<std::size_t>(b)].steps[static_cast<std::size_t>(wiring_.step(receive))];
    std::vector<Value> arriving = values(a, from.from);
    for (const Value& v : arriving) sent_.push_back(v.key());
    if (a == rank_) seen_[static_cast<std::size_t>(wiring_.step(send))].from = arriving;
    if (to.op == Op::recv) return put(b, to.to, arriving);
    std::vector<Value> sum = values(b, to.from);
    if (b == rank_) seen_[static_cast<std::size_t>(wiring_.step(receive))].from = sum;
    add(sum, arriving);
    put(b, to.to, sum);
    made(b, receive, std::move(sum));
  }

  std::vector<Origin> origins(const std::vector<Value>& values) const {
    std::vector<Origin> all;
    for (const Value& v : values)
      all.push_back(v.fresh ? Origin{v.of, v.chunk, std::ranges::binary_search(sent_, v.key())} : Origin{});
    return all;
  }

  const schedule::Schedule& schedule_;
  const Rank rank_;
  Wiring wiring_;
  std::vector<schedule::Cells> cells_;
  schedule::Memory<Value> memory_;
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

Origins origins_of(const schedule::Schedule& s, Rank rank) { return Walk(s, rank).done(); }

}  // namespace trellis::ccl
