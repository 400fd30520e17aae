#include "tools/train/run/step_profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>

#include "sim/hardware/timeline/timeline.h"
#include "tools/answer/timeline_file.h"
#include "tools/program/output.h"
#include "tools/program/table.h"
#include "tools/train/run/profile_picture.h"
#include "train/trainer/agreement.h"
#include "train/whole/rank_step.h"

namespace trellis::tools {
namespace {

using train::Operation;

constexpr train::Rank most_ranks = 16;  // that are shown

// One timed operation, as ranks send it, by the clock of rank 0.
struct Sent {
  std::int64_t operation = 0, begin_ns = 0, end_ns = 0;
};

std::int64_t ns_of(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t.time_since_epoch()).count();
}

train::Rank ranks_shown(const ccl::Communicator& world) { return std::min(world.ranks(), most_ranks); }

// How far rank 0's clock is ahead of this rank's: a host's clock counts from its boot. Each rank that is shown asks
// rank 0 for its time many times, and takes the answer of the shortest round trip as the time in the middle of that
// trip: the error is at most half of the trip.
std::int64_t clock_offset(ccl::Communicator& world) {
  constexpr int trips = 32;
  std::int64_t offset = 0, shortest = std::numeric_limits<std::int64_t>::max();
  for (train::Rank r = 1; r < ranks_shown(world); ++r)
    for (int trip = 0; trip < trips && (world.rank() == 0 || world.rank() == r); ++trip) {
      std::int64_t there = 0;
      if (world.rank() == 0) {
        world.recv(&there, 1, kernels::DType::i64, r);
        there = ns_of(std::chrono::steady_clock::now());
        world.send(&there, 1, kernels::DType::i64, r);
        continue;
      }
      const std::int64_t begin = ns_of(std::chrono::steady_clock::now());
      world.send(&there, 1, kernels::DType::i64, 0);
      world.recv(&there, 1, kernels::DType::i64, 0);
      const std::int64_t took = ns_of(std::chrono::steady_clock::now()) - begin;
      if (took < shortest) shortest = took, offset = there - (begin + took / 2);
    }
  return offset;
}

std::vector<Sent> sent(const std::vector<train::Runner::Timed>& timed, std::int64_t offset) {
  std::vector<Sent> all;
  for (const auto& t : timed)
    all.push_back({static_cast<std::int64_t>(t.operation), ns_of(t.begin) + offset, ns_of(t.end) + offset});
  return all;
}

// The operations of the ranks that are shown, broadcast to all.
std::vector<std::vector<Sent>> gathered(ccl::Communicator& world, std::vector<Sent> mine) {
  const train::Rank ranks = ranks_shown(world);
  std::vector<std::vector<Sent>> all;
  for (train::Rank r = 0; r < ranks; ++r) {
    std::int64_t count = r == world.rank() ? static_cast<std::int64_t>(mine.size()) : 0;
    world.broadcast(&count, &count, 1, kernels::DType::i64, r);
    std::vector<Sent> of_rank = r == world.rank() ? mine : std::vector<Sent>(static_cast<std::size_t>(count));
    world.broadcast(of_rank.data(), of_rank.data(), of_rank.size() * 3, kernels::DType::i64, r);
    all.push_back(std::move(of_rank));
  }
  return all;
}

std::string kind_of(const Operation& o) {
  if (o.kind == Operation::Kind::compute) return o.shape.kind;
  if (o.kind == Operation::Kind::wait) return fmt::format("wait, {}", name(o.exchange.axis));
  return fmt::format("{}, {}", name(o.exchange.kind), name(o.exchange.axis));
}

SpanKind shown_as(const Operation& o) {
  if (o.kind == Operation::Kind::exchange) return SpanKind::exchange;
  if (o.kind == Operation::Kind::wait) return SpanKind::wait;
  return static_cast<SpanKind>(o.phase);
}
static_assert(static_cast<int>(SpanKind::update) == static_cast<int>(train::Phase::update));

class Drawing {
 public:
  explicit Drawing(std::int64_t begin_ns) : begin_(begin_ns) {}

  void rank(train::Rank rank, const train::RankStep& step, const std::vector<Sent>& ran) {
    const std::string group = fmt::format("rank {}", rank);
    const std::uint32_t computing = timeline.track(group, "computes");
    std::map<train::Axis, std::uint32_t> tracks;
    std::map<int, std::size_t> begun;  // the exchange's span, by ticket
    for (const Sent& s : ran) {
      const Operation& o = step.program.operations.at(static_cast<std::size_t>(s.operation));
      std::uint32_t track = computing;
      if (o.kind == Operation::Kind::exchange) {
        const auto [found, fresh] = tracks.try_emplace(o.exchange.axis, 0);
        if (fresh) found->second = timeline.track(group, fmt::format("{} axis", name(o.exchange.axis)));
        track = found->second;
      }
      const bool computes = o.kind == Operation::Kind::compute;
      const sim::Span span{.track = track,
                           .label = timeline.label_of(o.name),
                           .start = time(s.begin_ns),
                           .end = time(s.end_ns),
                           .ready = time(s.begin_ns),
                           .bytes = computes ? step.program.bytes_touched(o) : step.program.bytes_exchanged(o),
                           .flops = o.flops};
      const auto at = static_cast<std::size_t>(timeline.add(span));
      shown.push_back(shown_as(o));
      // An exchange with a ticket overlaps other operations: its span lasts until the wait for that ticket has ended.
      if (o.kind == Operation::Kind::exchange && o.ticket != 0) begun[o.ticket] = at;
      if (const auto found = begun.find(o.ticket); o.kind == Operation::Kind::wait && found != begun.end()) {
        timeline.spans[found->second].end = span.end;
        begun.erase(found);
      }
    }
    for (const auto& [ticket, at] : begun) timeline.spans[at].end = time(ran.back().end_ns);  // the next step waits
  }
  sim::Timeline timeline;
  std::vector<SpanKind> shown;  // the kind of each span

 private:
  sim::Time time(std::int64_t ns) const { return sim::time_of_picoseconds(static_cast<double>(ns - begin_) * sim::ns); }
  std::int64_t begin_;
};

std::string table_of(const train::RankStep& step, const std::vector<Sent>& ran) {
  struct Sum {
    std::int64_t count = 0;
    double seconds = 0, flops = 0;
  };
  std::map<std::string, Sum> sums;
  double whole = 0;
  for (const Sent& s : ran) {
    const Operation& o = step.program.operations.at(static_cast<std::size_t>(s.operation));
    const double seconds = static_cast<double>(s.end_ns - s.begin_ns) / 1e9;
    Sum& sum = sums[kind_of(o)];
    ++sum.count, sum.seconds += seconds, sum.flops += o.flops, whole += seconds;
  }
  std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
  std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  Table table("operations of rank 0",
              {left("operation"), {"times"}, {"time", "s"}, {"% of the step"}, {"rate", "FLOP/s"}});
  for (const auto& [kind, sum] : sorted)
    table.add({kind, sum.count, sum.seconds, 100 * sum.seconds / whole, sum.flops / sum.seconds});
  return table.text();
}

// The exchanges that overlap computation: the time from the call to the end of the wait, and how much of it the rank
// was held up. If only the next step waits for an exchange, the wait of this step for the same exchange of the step
// before is counted instead.
std::string overlaps_of(const train::RankStep& step, const std::vector<Sent>& ran) {
  struct Sum {
    std::int64_t count = 0;
    double beside = 0, held_up = 0;
  };
  const auto operation = [&](const Sent& s) -> const Operation& {
    return step.program.operations.at(static_cast<std::size_t>(s.operation));
  };
  std::map<std::string, Sum> sums;
  std::map<int, std::pair<Sum*, std::int64_t>> begun;  // by ticket: the sum of its kind, and its beginning
  for (const Sent& s : ran)
    if (const Operation& o = operation(s); o.kind == Operation::Kind::exchange && o.ticket != 0) {
      Sum& sum = sums[kind_of(o)];
      ++sum.count, sum.held_up += static_cast<double>(s.end_ns - s.begin_ns);
      begun[o.ticket] = {&sum, s.begin_ns};
    }
  for (const Sent& s : ran) {
    const Operation& o = operation(s);
    const auto found = begun.find(o.ticket);
    if (o.kind != Operation::Kind::wait || found == begun.end()) continue;
    auto& [sum, from] = found->second;
    sum->held_up += static_cast<double>(s.end_ns - s.begin_ns);
    sum->beside +=
        static_cast<double>(o.ahead ? ran.back().end_ns - from + s.end_ns - ran.front().begin_ns : s.end_ns - from);
  }
  if (sums.empty()) return "";
  Table table(
      "exchanges of rank 0 beside computation",
      {left("exchange"), {"times"}, {"until awaited", "s"}, {"of that held up", "s"}, {"% behind computation"}});
  for (const auto& [kind, sum] : sums)
    table.add({kind, sum.count, sum.beside / 1e9, sum.held_up / 1e9, 100 * (1 - sum.held_up / sum.beside)});
  return table.text();
}

}  // namespace

void StepProfiler::on_train_batch_start(train::TrainState& state, const train::Batch&) {
  if (++seen_ == after_) state.job.runner().time_operations(&timed_);
}

void StepProfiler::on_train_batch_end(train::TrainState& state, const train::StepRecord& record) {
  if (seen_ != after_) return;
  state.job.runner().time_operations(nullptr);
  const auto all = gathered(state.world, sent(timed_, clock_offset(state.world)));
  const auto written = [&] {
    std::int64_t begin = all[0].front().begin_ns;
    for (const auto& of_rank : all) begin = std::min(begin, of_rank.front().begin_ns);
    Drawing drawing(begin);
    for (std::size_t r = 0; r < all.size(); ++r) {
      const auto rank = static_cast<train::Rank>(r);
      drawing.rank(rank, r == 0 ? state.job.step() : train::lay_out(state.config.step, state.world.ranks(), rank),
                   all[r]);
    }
    table_ = table_of(state.job.step(), all[0]) + overlaps_of(state.job.step(), all[0]);
    const std::string title =
        fmt::format("step {} of {}, {:.1f} ms", record.step, state.config.step.name, 1e3 * record.seconds);
    if (is_picture(path_)) return write_output(path_, profile_picture(drawing.timeline, drawing.shown, title));
    write_timeline(path_, drawing.timeline, {.title = title});
  };
  train::refuse_together(state.world, state.world.rank() != 0 ? "" : train::fault_of(written));
}

bool StepProfiler::is_picture(const std::string& path) { return path.ends_with(".svg"); }

void StepProfiler::expect_file(const std::string& path) {
  if (is_picture(path)) return expect_writable(path);
  expect_timeline_file(path);
}

}  // namespace trellis::tools
