#include "sim/cluster/workload/play.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/cluster/price/simulation_run.h"
#include "sim/cluster/workload/algorithm_chooser.h"
#include "sim/cluster/workload/compute_rates.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

// What is left of a computation with memory traffic when a period begins that overlaps with it.
struct Rest {
  std::uint32_t part = 0;
  double bytes = 0, rate = 0;  // of each rank
  Time start = 0, time = 0;    // from the start of the period; `time`: its duration if undisturbed
};

// A sequence of collectives each of which begins before all earlier ones have ended, with starts relative to the first,
// and the computations that share memory with them.
struct Period {
  std::vector<std::uint32_t> parts;
  std::vector<Time> starts;
  std::vector<Rest> rests;
};

// How long each collective took, and how much each computation was delayed by them.
struct Took {
  std::vector<Time> collectives, delays;
};

class Player {
 public:
  Player(const Workload& workload, const Machine& machine, const PlayOptions& options)
      : workload_(workload), machine_(machine), options_(options), choices_(machine, options) {
    if (workload.graph->ranks > machine.ranks())
      text::refuse("{} is for {} ranks: {} has {}", workload.graph->name, workload.graph->ranks, machine.name(),
                   machine.ranks());
    machine.overheads(options.era);
    if (workload.folded && (options.noise || !machine.spec().defects.empty()))
      throw FoldedRanksDiffer(options.noise ? "noise" : "a defect of " + machine.name());
    everyone_.resize(static_cast<std::size_t>(workload.graph->ranks));
    std::iota(everyone_.begin(), everyone_.end(), 0);
    set_durations();
  }

  // Durations follow from starts, and starts from durations. What happens before an instant depends on nothing later,
  // so each round makes at least one more start right. The first round that changes nothing is the result.
  PlayResult play() {
    PlayResult played;
    played.parts.resize(workload_.parts.size());
    if (stopped_) return {.time = forever};
    do {
      ++played.rounds;
      set_starts(played);
    } while (!stopped_ && change_durations(played));
    if (stopped_) return {.time = forever};
    played.simulated = simulated_;
    for (std::size_t i = 0; i < played.parts.size(); ++i)
      if (chosen_[i] != nullptr) played.parts[i].algorithm = chosen_[i]->words;
    return played;
  }

 private:
  const std::vector<Rank>& members(const WorkloadTask& part) const {
    return part.members.empty() ? everyone_ : part.members;
  }
  static bool runs(const WorkloadTask& part, std::size_t size) { return !part.computes && size > 1; }

  void set_durations() {
    computations_ = computations_of(workload_, machine_, options_);
    durations_.resize(workload_.parts.size());
    chosen_.resize(workload_.parts.size());
    for (std::uint32_t i = 0; i < workload_.parts.size(); ++i) {
      const WorkloadTask& part = workload_.parts[i];
      if (part.computes) {
        durations_[i] = compute_time(part);
        if (part.task->bytes > 0 && durations_[i] > 0 && machine_.hbm(0) != no_resource) sharing_.push_back(i);
      } else if (runs(part, members(part).size())) {
        chosen_[i] = &chosen(part);
        durations_[i] = chosen_[i]->alone;
        stopped_ = stopped_ || chosen_[i]->pattern == nullptr || durations_[i] == forever;
        if (stopped_) return;
        collectives_.push_back(i);
      }
    }
    alone_ = durations_;
  }

  const ChosenAlgorithm& chosen(const WorkloadTask& part) {
    if (!part.groups) return choices_.choose(part, members(part));
    const schedule::CollectiveOperation o = part.operation();
    auto& known = chosen_of_groups_[{part.groups.get(), o.collective, part.task->bytes, o.root, o.peer,
                                     part.algorithm(), part.schedule.get()}];
    if (known == nullptr) {
      known = &choices_.choose(part, part.members);
      for (const std::vector<Rank>& group : *part.groups)
        if (&choices_.choose(part, group) != known)
          throw FoldedRanksDiffer(part.task->name + ", of which groups have different algorithms");
    }
    return *known;
  }

  // Throws if the task's operations have no engines that time them, and the task has neither FLOPs nor bytes, which a
  // rate would time.
  void expect_amounts(const WorkloadTask& part) const {
    if (part.task->work.empty() || part.task->flops > 0 || part.task->bytes > 0) return;
    const bool chip = !machine_.spec().chip.empty();
    text::refuse("{}: its operations are timed by the engines of a chip: {}, and its FLOPs and bytes are not given",
                 part.task->name, chip ? "rates are stated instead" : machine_.name() + " has none");
  }

  Time compute_time(const WorkloadTask& part) const {
    const ComputeRates& computation = computations_.at(memory_slowness(workload_, part, machine_));
    Time time = part.task->time;
    if (computation.seconds.empty()) expect_amounts(part);
    if (!computation.seconds.empty() && !part.task->work.empty()) {
      double seconds = 0;
      for (const schedule::RepeatedOperation& w : part.task->work) seconds += computation.seconds[w.shape] * w.count;
      return slowed(part, std::max(time, transfer_time(seconds, 1.0)));
    }
    const auto add = [&](double amount, double rate, const char* what) {
      if (amount <= 0) return;
      if (rate <= 0)
        text::refuse("{}: {} says nothing of {}: state the rate, or the task's time", part.task->name, machine_.name(),
                     what);
      time = std::max(time, transfer_time(amount, rate));
    };
    add(part.task->flops, computation.flops, "FLOPs a second");
    add(part.task->bytes, computation.memory, "memory");
    return slowed(part, time);
  }

  Time slowed(const WorkloadTask& part, Time time) const {
    double slowness = 1;
    for (std::uint32_t cell : part.cells)
      for (Rank r : workload_.cells[cell].ranks) slowness = std::max(slowness, machine_.slowness(r));
    return slowness == 1 ? time : time_of_picoseconds(static_cast<double>(time) * slowness);
  }

  void set_starts(PlayResult& played) const {
    played.time = 0;
    for (std::size_t i = 0; i < played.parts.size(); ++i) {
      PlayedTask& part = played.parts[i];
      part.start = 0, part.cause = -1;
      for (std::uint32_t before : workload_.parts[i].after)
        if (played.parts[before].end > part.start) part.start = played.parts[before].end, part.cause = before;
      part.end = later(part.start, durations_[i]);
      played.time = std::max(played.time, part.end);
    }
  }

  // Adds the computations that overlap a period, each with what is left of it by then.
  void add_rests(Period& period, const PlayResult& played, Time from, Time until,
                 const std::vector<Time>& delays) const {
    for (std::size_t k = 0; k < sharing_.size(); ++k) {
      const WorkloadTask& part = workload_.parts[sharing_[k]];
      const PlayedTask& when = played.parts[sharing_[k]];
      if (when.start >= until || when.end <= from) continue;
      const Time alone = alone_[sharing_[k]], done = std::max<Time>(0, from - when.start - delays[k]);
      if (done >= alone) continue;
      const double most = machine_.spec().figures.rate("hbm.rate") / machine_.cores();
      period.rests.push_back(
          {.part = static_cast<std::uint32_t>(k),
           .bytes = part.task->bytes * static_cast<double>(alone - done) / static_cast<double>(alone),
           .rate = std::min(most, part.task->bytes / in_seconds(alone)),
           .start = std::max<Time>(0, when.start - from),
           .time = alone - done});
    }
  }

  bool change_durations(const PlayResult& played) {
    bool changed = false;
    std::vector<Time> delays(sharing_.size(), 0);
    std::ranges::stable_sort(collectives_, {}, [&](std::uint32_t i) { return played.parts[i].start; });
    for (std::size_t first = 0; first < collectives_.size();) {
      Period period;
      const Time from = played.parts[collectives_[first]].start;
      Time until = from;
      for (; first < collectives_.size(); ++first) {
        const PlayedTask& part = played.parts[collectives_[first]];
        if (part.start >= until && !period.parts.empty() && part.start > from) break;
        period.parts.push_back(collectives_[first]);
        period.starts.push_back(part.start - from);
        until = std::max(until, part.end);
      }
      add_rests(period, played, from, until, delays);
      const Took& took = run(period);
      if (stopped_) return false;
      for (std::size_t i = 0; i < period.parts.size(); ++i) changed |= set(period.parts[i], took.collectives[i]);
      for (std::size_t i = 0; i < period.rests.size(); ++i) delays[period.rests[i].part] += took.delays[i];
    }
    for (std::size_t k = 0; k < sharing_.size(); ++k) changed |= set(sharing_[k], alone_[sharing_[k]] + delays[k]);
    return changed;
  }

  bool set(std::uint32_t part, Time duration) {
    const bool changes = durations_[part] != duration;
    durations_[part] = duration;
    return changes;
  }

  std::vector<HbmLoad> loads_of(const Period& period) const {
    std::vector<HbmLoad> loads;
    for (const Rest& rest : period.rests)
      for (std::uint32_t cell : workload_.parts[sharing_[rest.part]].cells)
        for (Rank r : workload_.cells[cell].ranks) loads.push_back({r, rest.bytes, rest.rate, rest.start});
    return loads;
  }

  // Rates are integers, so a delay below this relative size is rounding.
  static Time delay(const Rest& rest, Time ended) {
    const Time late = ended - rest.start - rest.time;
    return late <= (rest.time - 1) / 1'000'000 ? 0 : late;
  }

  // A run at another time gets other random delays.
  std::optional<std::uint64_t> noise(const Period& period) const {
    if (!options_.noise) return {};
    return *options_.noise * workload_.parts.size() + period.parts.front();
  }

  // The same collectives at the same distances take as long as before, so the result is cached.
  const Took& run(const Period& period) {
    Key key;
    for (std::size_t i = 0; i < period.parts.size(); ++i) {
      const WorkloadTask& part = workload_.parts[period.parts[i]];
      key.emplace_back(chosen_[period.parts[i]]->pattern.get(), part.task->bytes, number_of(part), period.starts[i]);
    }
    for (const Rest& rest : period.rests) {
      const auto& cells = workload_.parts[sharing_[rest.part]].cells;
      const std::size_t who = cell_numbers_.try_emplace(cells, cell_numbers_.size()).first->second;
      key.emplace_back(nullptr, rest.bytes, who, rest.start);
      key.emplace_back(nullptr, rest.rate, who, rest.time);
    }
    if (options_.noise) key.emplace_back(nullptr, 0, period.parts.front(), 0);
    const auto found = took_.find(key);
    if (found != took_.end()) return found->second;
    SimulationRun run(
        machine_, collectives_of(period),
        {.era = options_.era, .loads = loads_of(period), .noise = noise(period), .stopped = options_.stopped});
    stopped_ = run.run() == forever;
    Took took;
    std::size_t collective = 0, load = 0;
    for (std::size_t i = 0; i < period.parts.size(); ++i) {
      took.collectives.push_back(run.ended(collective) - period.starts[i]);
      for (std::size_t g = groups_of(period.parts[i]); g > 0; --g, ++collective)
        if (!stopped_ && run.ended(collective) - period.starts[i] != took.collectives.back())
          throw FoldedRanksDiffer(workload_.parts[period.parts[i]].task->name);
    }
    for (const Rest& rest : period.rests) {
      Time first = forever, last = 0;
      for (std::uint32_t cell : workload_.parts[sharing_[rest.part]].cells)
        for (std::size_t r = 0; r < workload_.cells[cell].ranks.size(); ++r, ++load)
          first = std::min(first, run.load_ended(load)), last = std::max(last, run.load_ended(load));
      if (workload_.folded && first != last && !stopped_)
        throw FoldedRanksDiffer(workload_.parts[sharing_[rest.part]].task->name);
      took.delays.push_back(delay(rest, last));
    }
    ++simulated_;
    return took_.emplace(std::move(key), std::move(took)).first->second;
  }

  std::size_t groups_of(std::uint32_t part) const {
    const auto& groups = workload_.parts[part].groups;
    return groups ? groups->size() : 1;
  }

  std::vector<SimulatedCollective> collectives_of(const Period& period) const {
    std::vector<SimulatedCollective> collectives;
    for (std::size_t i = 0; i < period.parts.size(); ++i) {
      const WorkloadTask& part = workload_.parts[period.parts[i]];
      const ChosenAlgorithm& choice = *chosen_[period.parts[i]];
      SimulatedCollective collective{
          .pattern = choice.pattern.get(), .bytes = part.task->bytes, .chunk_bytes = choice.chunk_bytes};
      collective.start = period.starts[i];
      if (static_cast<Rank>(members(part).size()) != machine_.ranks() || !part.members.empty())
        collective.members = members(part);
      if (!part.groups) collectives.push_back(collective);
      for (std::size_t g = 0; part.groups && g < part.groups->size(); ++g) {
        collective.members = (*part.groups)[g];
        collectives.push_back(collective);
      }
    }
    return collectives;
  }

  std::size_t number_of(const WorkloadTask& part) {
    return numbers_.try_emplace({part.groups.get(), members(part)}, numbers_.size()).first->second;
  }

  using Key = std::vector<std::tuple<const CompiledSchedule*, double, std::size_t, Time>>;

  const Workload& workload_;
  const Machine& machine_;
  const PlayOptions& options_;
  AlgorithmChooser choices_;
  std::vector<Rank> everyone_;
  std::map<double, ComputeRates> computations_;
  std::vector<Time> durations_;
  std::vector<const ChosenAlgorithm*> chosen_;
  std::vector<std::uint32_t> collectives_;
  using Groups = std::vector<std::vector<Rank>>;
  std::map<std::pair<const Groups*, std::vector<Rank>>, std::size_t> numbers_;
  std::map<std::tuple<const Groups*, schedule::Collective, double, Rank, Rank, std::string, const void*>,
           const ChosenAlgorithm*>
      chosen_of_groups_;
  std::map<std::vector<std::uint32_t>, std::size_t> cell_numbers_;
  std::map<Key, Took> took_;
  std::vector<std::uint32_t> sharing_;  // computations with memory traffic
  std::vector<Time> alone_;             // of each part, if undisturbed
  std::int64_t simulated_ = 0;
  bool stopped_ = false;
};

using Stretches = std::vector<std::pair<Time, Time>>;

Time length(Stretches& stretches) {
  std::ranges::sort(stretches);
  Time sum = 0, until = 0;
  for (const auto& [start, end] : stretches) {
    sum += std::max<Time>(0, end - std::max(start, until));
    until = std::max(until, end);
  }
  return sum;
}

void account(const Workload& workload, PlayResult& played) {
  std::vector<Stretches> compute(workload.cells.size()), comm(workload.cells.size());
  for (std::size_t i = 0; i < workload.parts.size(); ++i) {
    std::vector<Stretches>& busy = workload.parts[i].computes ? compute : comm;
    for (std::uint32_t cell : workload.parts[i].cells)
      busy[cell].emplace_back(played.parts[i].start, played.parts[i].end);
  }
  for (std::size_t cell = 0; cell < workload.cells.size(); ++cell) {
    PlayedTimeBreakdown one{.compute = length(compute[cell]), .comm = length(comm[cell])};
    compute[cell].insert(compute[cell].end(), comm[cell].begin(), comm[cell].end());
    const Time busy = length(compute[cell]);
    one.exposed = busy - one.compute;
    one.idle = played.time - busy;
    played.cells.push_back(one);
    played.exposed_most = std::max(played.exposed_most, one.exposed);
    played.exposed_mean += static_cast<double>(one.exposed) * static_cast<double>(workload.cells[cell].ranks.size()) /
                           static_cast<double>(workload.graph->ranks);
  }
  if (played.parts.empty()) return;
  const auto last = std::ranges::max_element(played.parts, {}, &PlayedTask::end) - played.parts.begin();
  for (std::int64_t at = last; at >= 0; at = played.parts[static_cast<std::size_t>(at)].cause)
    played.path.push_back(static_cast<std::uint32_t>(at));
  std::ranges::reverse(played.path);
}

}  // namespace

PlayResult play(const Workload& workload, const Machine& machine, const PlayOptions& options) {
  PlayResult played = Player(workload, machine, options).play();
  if (played.time != forever) account(workload, played);
  return played;
}

PlayResult price(const ExecutionGraph& graph, const Machine& machine, const PlayOptions& options) {
  return play(workload_of(lent(graph)), machine, options);
}

}  // namespace trellis::sim
