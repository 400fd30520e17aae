#include "sim/cluster/choose/pricer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "schedule/proof/algorithm_refutation.h"
#include "text/refuse.h"

namespace trellis::sim {
namespace {

void expect_ranks(const Machine& machine, Rank count) {
  if (count < 1 || count > machine.ranks())
    text::refuse("{} ranks of {}: expected 1 to {}", count, machine.name(), machine.ranks());
}

std::vector<Rank> every(Rank stride, Rank count) {
  std::vector<Rank> members(static_cast<std::size_t>(count));
  for (Rank i = 0; i < count; ++i) members[static_cast<std::size_t>(i)] = i * stride;
  return members;
}

}  // namespace

Rank RankGroup::ranks() const { return std::accumulate(dims.begin(), dims.end(), Rank{1}, std::multiplies<>()); }

std::vector<RankGroup> groups_of(const Machine& machine) {
  const std::vector<Rank> dims = machine.dims();
  std::vector<RankGroup> all = {{"all", dims}};
  Rank inner = 1;
  for (std::size_t i = 0; i + 1 < dims.size(); ++i) {
    inner *= dims[i];
    const Rank outer = machine.ranks() / inner;
    const auto cut = dims.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (inner > 1 && outer > 1) {
      all.push_back({fmt::format("inner-{}", inner), {dims.begin(), cut}, every(1, inner)});
      all.push_back({fmt::format("across-{}", outer), {cut, dims.end()}, every(inner, outer), true});
    }
  }
  std::ranges::stable_sort(all, [](const RankGroup& a, const RankGroup& b) { return a.ranks() > b.ranks(); });
  return all;
}

// As many of each dimension as are needed: 32 ranks of 4x4x4 are 4x4x2.
RankGroup first_ranks(const Machine& machine, Rank count) {
  expect_ranks(machine, count);
  RankGroup group{.name = fmt::format("first-{}", count), .dims = {}};
  Rank left = count;
  for (const Rank dim : machine.dims()) {
    if (left % dim != 0 && dim % left != 0) {
      group.dims = {count};
      left = 1;
    }
    if (left == 1) break;
    group.dims.push_back(std::min(left, dim));
    left /= group.dims.back();
  }
  if (group.dims.empty()) group.dims = {1};
  if (count < machine.ranks()) group.members = every(1, count);
  return group;
}

RankGroup first_in_a_row(const Machine& machine, Rank count) {
  if (count == 0) count = machine.ranks();
  expect_ranks(machine, count);
  return {.name = "", .dims = {count}, .members = count < machine.ranks() ? every(1, count) : std::vector<Rank>{}};
}

RankGroup group_named(const Machine& machine, std::string_view name) {
  const std::vector<RankGroup> all = groups_of(machine);
  std::vector<std::string> names;
  for (const RankGroup& g : all) {
    if (g.name == name) return g;
    names.push_back(g.name);
  }
  text::refuse("{} has no group '{}': expected {}", machine.name(), name, fmt::join(names, ", "));
}

Pricer::Pricer(const Machine& machine, RankGroup group, Settings settings)
    : machine_(machine), group_(std::move(group)), settings_(std::move(settings)) {
  if (!settings_.shelf) settings_.shelf = std::make_shared<ScheduleCache>();
}

schedule::Request Pricer::request(const AlgorithmConfig& w) const {
  schedule::CollectiveOperation operation = settings_.operation;
  if (operation.collective != schedule::Collective::send_recv) operation.peer = 0;
  if (operation.peer < 0) operation.peer = group_.ranks() - 1;
  return schedule::request_by(w, {.operation = std::move(operation), .dims = group_.dims});
}

std::string Pricer::refusal(const AlgorithmConfig& w) const {
  const schedule::Request wanted = request(w);
  if (wanted.ranks() != group_.ranks())
    return fmt::format("{} are {} ranks, and here are {}", fmt::join(wanted.dims, "x"), wanted.ranks(), group_.ranks());
  return schedule::refusal(schedule::algorithm_named(w.algorithm), wanted);
}

void Pricer::expect_right(const AlgorithmConfig& w) {
  const auto [known, fresh] = refutations_.try_emplace(w);
  if (fresh) known->second = schedule::refutation(schedule::algorithm_named(w.algorithm), request(w));
  if (!known->second.empty()) throw schedule::RefutedAlgorithm(known->second);
}

PriceOptions Pricer::options(double bytes, Time limit) const {
  return {.bytes = schedule::carries_data(settings_.operation.collective) ? bytes : 0,
          .element = settings_.element,
          .era = settings_.era,
          .fold = settings_.fold,
          .limit = limit,
          .stopped = settings_.stopped,
          .members = group_.members};
}

CompiledSchedule::Stopped Pricer::poll() const {
  if (!settings_.stopped) return {};
  return [this] { return stopped(); };
}

std::shared_ptr<const CompiledSchedule> Pricer::compiled(const AlgorithmConfig& config) const {
  std::shared_ptr<const CompiledSchedule> known = settings_.shelf->compiled(config);
  if (known) return known;
  known =
      std::make_shared<const CompiledSchedule>(schedule::algorithm_named(config.algorithm), request(config), poll());
  settings_.shelf->keep(config, known);
  return known;
}

std::shared_ptr<const ProgramPrefix> Pricer::steps(const AlgorithmConfig& config, Rank rank, std::size_t least) const {
  return settings_.shelf->steps(config, schedule::algorithm_named(config.algorithm), request(config), rank, least, [&] {
    if (stopped()) throw CompilationStopped();
  });
}

std::shared_ptr<const CompiledSchedule> Pricer::sized(const AlgorithmConfig& config, double bytes) const {
  const auto elements = std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes / settings_.element));
  std::shared_ptr<const CompiledSchedule> known = settings_.shelf->compiled(config, elements);
  if (known) return known;
  known = std::make_shared<const CompiledSchedule>(
      pattern_for(schedule::algorithm_named(config.algorithm), request(config), options(bytes)));
  settings_.shelf->keep(config, known, elements);
  return known;
}

// The pattern depends on the size only where there are fewer elements than chunks.
const CompiledSchedule& Pricer::pattern(const AlgorithmConfig& config, double bytes) {
  const schedule::Algorithm& algorithm = schedule::algorithm_named(config.algorithm);
  const schedule::Request wanted = request(config);
  const bool few = bytes < settings_.element * static_cast<double>(schedule::data_chunks(task_of(algorithm, wanted)));
  Made& kept = patterns_[config];
  if (!kept.pattern || ((few || kept.pattern->sized()) && kept.bytes != bytes))
    kept = {bytes, few ? sized(config, bytes) : compiled(config)};
  return *kept.pattern;
}

const CompiledSchedule& Pricer::uncounted(const AlgorithmConfig& config) {
  Made& kept = patterns_[config];
  if (!kept.pattern || kept.pattern->sized()) kept = {0, compiled(config)};
  return *kept.pattern;
}

Price Pricer::price(const AlgorithmConfig& config, double bytes, bool explain, Time limit) {
  expect_right(config);
  PriceOptions how = options(bytes, limit);
  how.explain = explain;
  return sim::price(pattern(config, bytes), machine_, how);
}

Price Pricer::unproved_price(const AlgorithmConfig& config, double bytes, Time limit) {
  return sim::price(pattern(config, bytes), machine_, options(bytes, limit));
}

Time Pricer::least(const AlgorithmConfig& config, double bytes, Time limit) {
  return least_time(pattern(config, bytes), machine_, options(bytes, limit));
}

// Adds the rank's steps to the bound. Returns whether all of them were added.
bool Pricer::look_at(Rank rank, const AlgorithmConfig& config, RankLowerBound& bound, std::int64_t most_steps,
                     Time limit) {
  constexpr std::int64_t few = 1 << 12, many = 1 << 16;  // steps cached at first; and at most, if the bound stays low
  const auto goes_on = [&] { return bound.steps() < most_steps && (limit == forever || bound.least() <= limit); };
  for (std::int64_t wanted = few; wanted <= many; wanted *= 4) {
    const auto written = steps(config, rank, static_cast<std::size_t>(std::min(wanted, most_steps)));
    const schedule::Program& program = written->program;
    for (auto i = static_cast<std::size_t>(bound.steps()); i < program.steps.size(); ++i) {
      bound.add(program, program.steps[i]);
      if (!goes_on()) return false;
    }
    if (written->whole) return true;
  }
  // More steps are not cached: generates the program again, and drops each step once it is added to the bound.
  std::int64_t seen = 0;
  return watch_program(schedule::algorithm_named(config.algorithm), request(config), rank,
                       [&](const schedule::Program& p) {
                         if (++seen <= bound.steps()) return true;
                         bound.add(p, p.steps.back());
                         if (bound.steps() % 1024 == 0 && stopped()) throw CompilationStopped();
                         return goes_on();
                       });
}

Pricer::Outline Pricer::outline(const AlgorithmConfig& config, double bytes, std::int64_t most_steps, Time limit) {
  const schedule::Task task = task_of(schedule::algorithm_named(config.algorithm), request(config));
  ResourceLoads loads(machine_);
  RankLowerBound bound(0, task, machine_, options(bytes), routes_from(0), loads);
  const bool whole = look_at(0, config, bound, most_steps, limit);
  return {bound.least(), bound.moves() * task.ranks, bound.steps(), whole};
}

Time Pricer::least_of_chip(const AlgorithmConfig& config, double bytes, Time limit) {
  const schedule::Task task = task_of(schedule::algorithm_named(config.algorithm), request(config));
  const PriceOptions how = options(bytes);
  const Rank cores = machine_.cores(), chip = how.place(0) / cores;
  ResourceLoads loads(machine_);
  Time least = 0;
  for (Rank r = 0; r < task.ranks && least <= limit; ++r) {
    if (how.place(r) / cores != chip) continue;
    RankLowerBound bound(r, task, machine_, how, routes_from(r), loads);
    look_at(r, config, bound, any_steps, limit);
    least = std::max(least, bound.least());
  }
  return least > limit ? forever : least;
}

RankRoutes& Pricer::routes_from(Rank rank) {
  const Rank place = options(0).place(rank);
  return routes_.try_emplace(place, machine_, place).first->second;
}

std::vector<AlgorithmConfig> configs_of(const Pricer& pricer, const std::vector<std::string>& algorithms,
                                        const std::vector<std::int32_t>& channels,
                                        const std::vector<std::int32_t>& segments) {
  std::vector<std::string> names = algorithms;
  if (names.empty())
    for (const auto& [name, algorithm] : schedule::algorithms()) names.push_back(name);
  std::vector<AlgorithmConfig> configs;
  for (const std::string& name : names)
    for (const std::int32_t c : channels)
      for (const std::int32_t s : segments)
        if (const AlgorithmConfig config{name, c, s}; pricer.refusal(config).empty()) configs.push_back(config);
  return configs;
}

}  // namespace trellis::sim
