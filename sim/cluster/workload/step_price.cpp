#include "sim/cluster/workload/step_price.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>

#include "schedule/graph/match_exchanges.h"
#include "sim/cluster/operation/core_program_timer.h"
#include "sim/cluster/workload/compute_rates.h"
#include "sim/cluster/workload/exchange_pricer.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

using schedule::GraphTask;
using schedule::RankClassTask;

// How long the graph's operations take. Programs are simulated with usual memory: with a slower one, their times grow
// as those of the formula do.
std::vector<OperationTime> times_by_shape(const ExecutionGraph& graph, const Machine& machine,
                                          CoreProgramTimer* programs, double memory_slowness) {
  const EngineRates usual = engines_of(machine), engines = engines_of(machine, memory_slowness);
  std::vector<OperationTime> times;
  for (const schedule::OperationShape& s : graph.shapes) {
    const auto by_program = programs == nullptr ? std::nullopt : programs->of(s, usual);
    times.push_back(by_program ? *by_program : operation_time(s, engines));
    if (!by_program || memory_slowness == 1) continue;
    const OperationTime slow = operation_time(s, engines);
    times.back().engines = slow.engines;
    times.back().total *= slow.total / operation_time(s, usual).total;
  }
  if (programs != nullptr) programs->keep();
  return times;
}

}  // namespace

struct StepPricer::State {
  State(const ExecutionGraph& g, const Machine& machine, const StepOptions& options, schedule::RepeatedTaskStretches s)
      : graph(g), stretches(std::move(s)), matched(match(g)), exchanges(g, matched, machine, options) {
    if (!matched.fault.empty()) text::refuse("{}: {}", g.name, matched.fault);
    for (const schedule::RankClass& c : g.classes) {
      slowness.push_back(1);
      double memory = 1;
      for (Rank r : c.ranks) {
        slowness.back() = std::max(slowness.back(), machine.slowness(r));
        memory = std::max(memory, machine.memory_slowness(r));
      }
      const auto [found, fresh] = by_memory.try_emplace(memory);
      if (fresh) found->second = times_by_shape(g, machine, options.programs.get(), memory);
      operations.push_back(&found->second);
    }
  }

  const ExecutionGraph& graph;
  schedule::RepeatedTaskStretches stretches;
  schedule::MatchResult matched;
  ExchangePricer exchanges;
  std::map<double, std::vector<OperationTime>> by_memory;     // by the slowness of a class's memory, and shape
  std::vector<const std::vector<OperationTime>*> operations;  // by class, and shape
  std::vector<double> slowness;                               // by class
};

namespace {

// One pass over the graph's tasks in topological order.
template <class State>
class Walk {
 public:
  Walk(State& state, const StepFactors& factors, std::optional<std::uint64_t> noise = {})
      : graph_(state.graph),
        stretches_(state.stretches),
        matched_(state.matched),
        exchanges_(state.exchanges),
        operations_(state.operations) {
    price_.factors = factors;
    if (noise) random_.emplace(*noise);
    exchanges_.begin();
    for (std::size_t c = 0; c < graph_.classes.size(); ++c) {
      slowness_.push_back(state.slowness[c] * factors.software * factors.hosts);
      price_.tasks.emplace_back(graph_.classes[c].tasks.size());
      last_.emplace_back(graph_.streams.size(), none);
      price_.classes.push_back(nothing());
    }
    passed_.resize(stretches_.tasks.size());
  }

  // A lower bound on what each class takes.
  std::vector<RankClassLocalTime> work() {
    std::vector<RankClassLocalTime> all;
    const auto update = static_cast<std::size_t>(std::ranges::find(graph_.phases, "update") - graph_.phases.begin());
    for (std::uint32_t c = 0; c < graph_.classes.size(); ++c) {
      RankClassLocalTime& own = all.emplace_back();
      std::map<std::int32_t, Time> once;
      for (std::uint32_t t = 0; t < graph_.classes[c].tasks.size(); ++t) {
        const GraphTask& task = graph_.classes[c].tasks[t];
        if (task.kind != GraphTask::Kind::compute) continue;
        const std::int32_t stretch = stretches_.at(c, t);
        const Time took = stretch < 0 ? computed(task, c, price_.classes[c]) : passed(c, stretch);
        if (took == forever) return {};
        own.all += took;
        if (stretch < 0) continue;
        const auto [found, fresh] = once.try_emplace(stretch, took);
        if (!fresh && found->second > 0) own.each += found->second, found->second = 0;
      }
      if (update < graph_.phases.size()) own.update = price_.classes[c].compute[update];
    }
    return all;
  }

  StepPrice run() {
    for (const auto& ends : matched_.order)
      if (!place(ends)) return {.time = forever};
    for (std::size_t c = 0; c < graph_.classes.size(); ++c)
      price_.classes[c].idle = price_.time - price_.classes[c].busy();
    price_.low = static_cast<Time>(static_cast<double>(price_.time) / price_.factors.spread);
    price_.high = static_cast<Time>(static_cast<double>(price_.time) * price_.factors.spread);
    price_.exchanges = exchanges_.prices();
    for (Passed& each : passed_) price_.stretches.push_back(std::move(each.spent));
    find_path();
    return std::move(price_);
  }

 private:
  static constexpr std::uint32_t none = static_cast<std::uint32_t>(-1);

  // What one pass of a stretch takes, computed once for all of its passes; with noise, for each pass anew.
  struct Passed {
    bool known = false;
    Time time = 0;
    StepTimeBreakdown spent;
    std::vector<ExchangePrice*> exchanges;
  };

  StepTimeBreakdown nothing() const {
    return {.compute = std::vector<Time>(graph_.phases.size() + 1, 0),
            .exposed = std::vector<Time>(graph_.communicators.size(), 0),
            .engines = std::vector<Time>(4, 0)};
  }

  const GraphTask& task(RankClassTask e) const { return graph_.classes[e.rank_class].tasks[e.task]; }
  TaskTiming& placed(RankClassTask e) { return price_.tasks[e.rank_class][e.task]; }

  // Returns when the endpoint's own class reaches its task. While the main stream waits for an exchange of another
  // stream, that exchange is exposed.
  Time ready(RankClassTask e) {
    TaskTiming& own = placed(e);
    const GraphTask& t = task(e);
    const auto wait_for = [&](std::uint32_t before) {
      const Time end = price_.tasks[e.rank_class][before].end;
      if (end <= own.start && own.cause_class >= 0) return;
      own.start = std::max(own.start, end), own.cause_class = static_cast<std::int32_t>(e.rank_class);
      own.cause = before;
    };
    const std::uint32_t previous = last_[e.rank_class][t.stream];
    if (graph_.streams[t.stream].ordered && previous != none) wait_for(previous);
    const Time free = own.start;
    for (std::uint32_t before : t.after) wait_for(before);
    if (t.stream == 0 && own.start > free && own.cause_class >= 0) {
      const GraphTask& awaited = graph_.classes[e.rank_class].tasks[own.cause];
      if (awaited.kind != GraphTask::Kind::compute)
        price_.classes[e.rank_class].exposed[awaited.communicator] += own.start - free;
    }
    last_[e.rank_class][t.stream] = e.task;
    return own.start;
  }

  Time computed(const GraphTask& t, std::uint32_t of, StepTimeBreakdown& spent) const {
    double seconds = 0;
    for (const schedule::RepeatedOperation& w : t.work) {
      const OperationTime& o = (*operations_[of])[w.shape];
      seconds += o.total * w.count;
      const double parts[] = {o.engines.tensor, o.engines.vector, o.engines.scalar, o.engines.memory};
      for (std::size_t i = 0; i < 4; ++i) spent.engines[i] += transfer_time(parts[i] * w.count, 1.0);
    }
    const Time time = static_cast<Time>(static_cast<double>(t.time + transfer_time(seconds, 1.0)) * slowness_[of]);
    const std::size_t phase = t.phase < graph_.phases.size() ? t.phase : graph_.phases.size();
    if (t.stream == 0) spent.compute[phase] += time;
    return time;
  }

  // How long an exchange takes; on the main stream less, where the compiler hides a part of it.
  Time took(std::uint32_t of, const ExchangePrice& exchange, const GraphTask& t, const GraphTask& other) {
    Time time = exchange.together;
    if (random_) {
      const std::vector<Time>& drawn = exchanges_.noisy(of, t, other);
      if (drawn.empty()) return forever;
      time = drawn[(*random_)() % drawn.size()];
    }
    if (time == forever || t.stream != 0) return time;
    const auto factor = price_.factors.exposed.find(graph_.communicators[t.communicator].name);
    return factor == price_.factors.exposed.end() ? time
                                                  : static_cast<Time>(static_cast<double>(time) * factor->second);
  }

  Time exchanged(const std::vector<RankClassTask>& ends) {
    const GraphTask& t = task(ends[0]);
    ExchangePrice& exchange = exchanges_.price_of(ends[0].rank_class, t, task(ends.back()));
    ++exchange.count;
    return took(ends[0].rank_class, exchange, t, task(ends.back()));
  }

  // The time of a stretch's tasks from its start, computed as place() does for the graph. `forever` if it was stopped.
  Time walk(std::uint32_t of, const std::vector<GraphTask>& tasks, Passed& p) {
    std::vector<Time> ends, last(graph_.streams.size(), 0);
    for (const GraphTask& t : tasks) {
      const Time free = graph_.streams[t.stream].ordered ? last[t.stream] : 0;
      Time start = free;
      const GraphTask* awaited = nullptr;
      for (std::uint32_t before : t.after)
        if (ends[before] > start) start = ends[before], awaited = &tasks[before];
      if (t.stream == 0 && awaited != nullptr && awaited->kind != GraphTask::Kind::compute)
        p.spent.exposed[awaited->communicator] += start - free;
      Time time = 0;
      if (t.kind == GraphTask::Kind::compute) {
        time = computed(t, of, p.spent);
      } else {
        p.exchanges.push_back(&exchanges_.price_of(of, t, t));
        time = took(of, *p.exchanges.back(), t, t);
        if (time == forever) return forever;
        if (t.stream == 0) p.spent.exposed[t.communicator] += time;
      }
      ends.push_back(start + time), last[t.stream] = start + time;
    }
    return last[0];
  }

  // Adds one more pass of the stretch to the class's times, and returns how long it takes; `forever` if it was stopped.
  Time passed(std::uint32_t of, std::int32_t stretch) {
    Passed& p = passed_[static_cast<std::size_t>(stretch)];
    if (!p.known || random_) {
      p = {.known = true, .spent = nothing()};
      p.time = walk(of, *stretches_.tasks[static_cast<std::size_t>(stretch)], p);
    }
    if (p.time == forever) return forever;
    price_.classes[of].add(p.spent);
    for (ExchangePrice* each : p.exchanges) ++each->count;
    return p.time;
  }

  bool place(const std::vector<RankClassTask>& ends) {
    const GraphTask& t = task(ends[0]);
    if (t.kind == GraphTask::Kind::compute) {
      const std::uint32_t of = ends[0].rank_class;
      const std::int32_t stretch = stretches_.at(of, ends[0].task);
      TaskTiming& own = placed(ends[0]);
      own.stretch = stretch;
      const Time start = ready(ends[0]);
      const Time took = stretch < 0 ? computed(t, of, price_.classes[of]) : passed(of, stretch);
      if (took == forever) return false;
      own.end = start + took;
      price_.time = std::max(price_.time, own.end);
      return true;
    }
    const Time took = exchanged(ends);
    if (took == forever) return false;
    return t.kind == GraphTask::Kind::collective ? gather(ends, took) : pass(ends, took);
  }

  // A collective begins when its last member has reached it, and ends for all members at once.
  bool gather(const std::vector<RankClassTask>& ends, Time took) {
    RankClassTask last = ends[0];
    for (RankClassTask e : ends)
      if (ready(e) > placed(last).start) last = e;
    const Time start = placed(last).start;
    for (RankClassTask e : ends) {
      TaskTiming& own = placed(e);
      if (own.start < start) own.cause_class = placed(last).cause_class, own.cause = placed(last).cause;
      own.start = start, own.end = start + took;
      if (task(e).stream == 0) price_.classes[e.rank_class].exposed[task(e).communicator] += took;
    }
    price_.time = std::max(price_.time, start + took);
    return true;
  }

  // A message leaves when its sender reaches it. The receiver's task ends when the message has arrived.
  bool pass(const std::vector<RankClassTask>& ends, Time took) {
    const bool first_sends = task(ends[0]).kind == GraphTask::Kind::send;
    const RankClassTask from = ends[first_sends ? 0 : 1], to = ends[first_sends ? 1 : 0];
    const Time sent = ready(from), free = ready(to), arrives = sent + took;
    placed(from).end = arrives;
    TaskTiming& taken = placed(to);
    taken.end = std::max(free, arrives);
    if (arrives > free) {
      taken.start = std::max(free, sent);
      if (sent > free) taken.cause_class = static_cast<std::int32_t>(from.rank_class), taken.cause = from.task;
    }
    if (task(from).stream == 0) price_.classes[from.rank_class].exposed[task(from).communicator] += took;
    if (task(to).stream == 0) price_.classes[to.rank_class].exposed[task(to).communicator] += taken.end - taken.start;
    price_.time = std::max(price_.time, std::max(arrives, taken.end));
    return true;
  }

  void find_path() {
    std::int32_t of = -1;
    std::uint32_t at = 0;
    for (std::size_t c = 0; c < price_.tasks.size(); ++c)
      for (std::uint32_t t = 0; t < price_.tasks[c].size(); ++t)
        if (price_.tasks[c][t].end == price_.time) of = static_cast<std::int32_t>(c), at = t;
    const std::size_t most = std::transform_reduce(price_.tasks.begin(), price_.tasks.end(), std::size_t{0},
                                                   std::plus<>(), [](const auto& all) { return all.size(); });
    while (of >= 0 && price_.path.size() <= most) {
      price_.path.emplace_back(static_cast<std::uint32_t>(of), at);
      const TaskTiming& t = price_.tasks[static_cast<std::size_t>(of)][at];
      of = t.cause_class, at = t.cause;
    }
    std::ranges::reverse(price_.path);
  }

  const ExecutionGraph& graph_;
  const schedule::RepeatedTaskStretches& stretches_;
  const schedule::MatchResult& matched_;
  ExchangePricer& exchanges_;
  const std::vector<const std::vector<OperationTime>*>& operations_;
  StepPrice price_;
  std::optional<std::mt19937_64> random_;         // of a step with noise
  std::vector<Passed> passed_;                    // by stretch
  std::vector<double> slowness_;                  // by class
  std::vector<std::vector<std::uint32_t>> last_;  // by class and stream
};

}  // namespace

Time StepTimeBreakdown::busy() const {
  return std::accumulate(exposed.begin(), exposed.end(), std::accumulate(compute.begin(), compute.end(), Time{0}));
}

void StepTimeBreakdown::add(const StepTimeBreakdown& other) {
  const auto each = [](std::vector<Time>& to, const std::vector<Time>& more) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += more[i];
  };
  each(compute, other.compute), each(exposed, other.exposed), each(engines, other.engines);
  idle += other.idle;
}

StepPricer::StepPricer(const ExecutionGraph& graph, const Machine& machine, const StepOptions& options,
                       schedule::RepeatedTaskStretches stretches) {
  if (machine.spec().chip.empty())
    text::refuse("{} has no chip: expected a machine whose engines are known, as trn1.32xlarge", machine.name());
  if (graph.ranks > machine.ranks())
    text::refuse("{} is for {} ranks: {} has {}", graph.name, graph.ranks, machine.name(), machine.ranks());
  state_ = std::make_unique<State>(graph, machine, options, std::move(stretches));
}
StepPricer::~StepPricer() = default;
StepPricer::StepPricer(StepPricer&&) noexcept = default;

StepPrice StepPricer::price(const StepFactors& factors) { return Walk(*state_, factors).run(); }

StepPrice price_step(const ExecutionGraph& graph, const Machine& machine, const StepOptions& options) {
  return StepPricer(graph, machine, options).price(factors_of(graph, machine, options));
}

StepPrice StepPricer::noisy(const StepFactors& factors, std::uint64_t seed) {
  return Walk(*state_, factors, seed).run();
}

std::vector<OperationKindTime> StepPricer::kinds(const StepFactors& factors, std::uint32_t of) const {
  const State& s = *state_;
  std::vector<double> counts(s.graph.shapes.size(), 0);
  const auto count = [&](const GraphTask& t) {
    for (const schedule::RepeatedOperation& w : t.work) counts[w.shape] += w.count;
  };
  const std::vector<GraphTask>& tasks = s.graph.classes[of].tasks;
  for (std::uint32_t t = 0; t < tasks.size(); ++t) {
    const std::int32_t stretch = s.stretches.at(of, t);
    if (stretch < 0)
      count(tasks[t]);
    else
      for (const GraphTask& each : *s.stretches.tasks[static_cast<std::size_t>(stretch)]) count(each);
  }
  const std::vector<OperationTime>& operations = *s.operations[of];
  std::map<std::string, OperationKindTime> kinds;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    OperationKindTime& kind = kinds[s.graph.shapes[i].kind];
    const double seconds = operations[i].total * counts[i] * s.slowness[of] * factors.software * factors.hosts;
    kind.kind = s.graph.shapes[i].kind, kind.seconds += seconds;
    if (operations[i].by_program) kind.by_programs += seconds;
  }
  std::vector<OperationKindTime> all;
  for (auto& [name, kind] : kinds) all.push_back(std::move(kind));
  std::ranges::stable_sort(all, std::greater{}, &OperationKindTime::seconds);
  return all;
}

std::vector<RankClassLocalTime> StepPricer::work(const StepFactors& factors) { return Walk(*state_, factors).work(); }

}  // namespace trellis::sim
